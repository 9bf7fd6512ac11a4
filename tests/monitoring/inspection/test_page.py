"""The page of a monitor: what it shows, and that it is safe to open."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import sleep

import pytest
from click.testing import CliRunner

from rageval_spec.commands.monitor.command import monitor
from rageval_spec.data.alerts import WorstAnswer
from rageval_spec.data.outcomes import Interval
from rageval_spec.monitoring.alerts import AlertBook, Look
from rageval_spec.monitoring.assembly import make_page, make_watch, open_ledger, open_monitor
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.wording import format_number
from tests.browser import open_page, start_browser
from tests.monitoring.inspection.watched import BAD, GOOD, NOON, SOURCE, SPEC, judge, load_spec, write_traces
from tests.sample_evaluation import HOSTILE

LATER = NOON + 7200


def draw(spec: Spec, now: float = LATER) -> str:
    with open_ledger(spec) as ledger:
        parts = build_parts(spec)
        return make_page(spec, make_watch(spec, ledger, parts), parts, spec.folder / "monitor.html").draw(now).decode()


def read(page: str) -> str:
    """The texts of a page, with single spaces."""
    body = page[page.index("<body") :]
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", body).split()))


def record(spec: Spec, at: float, verdict: str = "holds", **others: object) -> None:
    evidence = {"metric": "faithfulness", "value": 0.5, "interval": Interval(0.4, 0.6), "samples": 60}
    look = Look("faithfulness:1", "faithfulness below 0.8", verdict, "critical", "it fell", evidence)  # type: ignore[arg-type]
    with open_ledger(spec) as ledger:
        AlertBook(ledger.connection, spec.name).record([replace(look, **others)], [], at)  # type: ignore[arg-type]


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    write_traces(
        tmp_path, {"id": "good"}, {"id": "bad", "answer": BAD}, {"id": "none", "answer": None, "error": "down"}
    )
    spec = load_spec(tmp_path)
    judge(spec)
    return spec


def test_it_shows_windows_the_ledger_and_the_worst_answers(spec: Spec) -> None:
    text = read(draw(spec))
    assert "No alert is firing 3 traces seen. Made 2025-11-25 14:00:00 UTC" in text
    missing = "the 7 days before has no judged trace"
    window = rf"faithfulness hour 0\.519 \[[\d., ]+\] {missing} 2 100% 1 filtered 2025-11-25 12:00:00 to 13:00:00 UTC"
    assert re.search(window, text)
    assert (
        "faithfulness day no data the window has no judged trace 0 2025-11-24 00:00:00 to 2025-11-25 00:00:00 UTC"
        in text
    )
    assert "The numbers add up: each series accounts for all 3 traces that were seen." in text
    assert "faithfulness 2 0 1 0 0 0 0 3 " in text
    worst = text[text.index("Worst answers") :]
    assert "0.037 Can I return shoes, bad? Trace bad" in worst and f"Answer {BAD}" in worst and SOURCE in worst
    assert "good" not in worst


def test_what_users_disliked_is_shown_and_what_they_liked_best_is_not(tmp_path: Path) -> None:
    values = {"thumbs": (0.0, 1.0, 1.0), "stars": (1.0, 5.0, 3.0)}
    said = [[{"name": name, "value": some[at]} for name, some in values.items()] for at in range(3)]
    write_traces(tmp_path, *({"id": f"q{at}", "feedback": one} for at, one in enumerate(said)))
    spec = load_spec(tmp_path)
    judge(spec)
    text = read(draw(spec))
    worst = text[text.index("Worst answers") :]
    shown = re.findall(r"(feedback\.\w+|\d\.\d{3}) (?:Can I return shoes, )?(q\d)?", worst)
    assert [one for one in shown if one[1] or one[0].startswith("feedback")] == [
        ("feedback.thumbs", ""), ("0.000", "q0"), ("feedback.stars", ""), ("1.000", "q0"), ("3.000", "q2"),
    ]  # fmt: skip


def test_the_trend_of_a_percentile_is_one_and_bad_latency_is_high(tmp_path: Path) -> None:
    write_traces(tmp_path, *({"id": f"q{n}", "seconds": float(n)} for n in range(1, 21)))
    spec = load_spec(tmp_path, spec=SPEC.replace("judge: overlap}]", "judge: overlap}, latency@p95]"))
    judge(spec)
    text = read(draw(spec))
    assert re.search(r"latency@p95 by hour, seconds 19\.", text)
    assert text[text.index("Worst answers") :].startswith("Worst answers latency@p95 20.000 Can I return shoes, q20?")


def test_equal_values_are_not_sure_and_axes_stay_within_what_can_be(tmp_path: Path) -> None:
    write_traces(tmp_path, *({"id": f"q{n}", "seconds": 2.0} for n in range(300)))
    metrics = SPEC.replace("judge: overlap}]", "judge: overlap}, error_rate, latency]")
    spec = load_spec(tmp_path, spec=metrics)
    judge(spec)
    page = draw(spec)
    text = read(page)
    assert "error_rate by hour 0.000 [0.000, 0.012]" in text
    assert re.search(r"latency by hour, seconds 2\.000 (?!\[)", text)
    axes = [float(one) for one in re.findall(r'text-anchor="end">(-?[\d.]+)<', page)]
    assert len(axes) >= 6 and min(axes) == 0
    assert "-0.05" not in page


def test_it_says_that_numbers_do_not_add_up(spec: Spec) -> None:
    with open_ledger(spec) as ledger:
        ledger.connection.execute("UPDATE rageval_panes SET judged = judged + 4")
    told = "The numbers do not add up: 3 traces were seen, but faithfulness for 7 are accounted for."
    assert told in read(draw(spec))


def test_an_empty_monitor_has_a_page(tmp_path: Path) -> None:
    text = read(draw(load_spec(tmp_path)))
    assert "0 traces seen" in text and "No series has begun yet." in text and "No window has ended yet." in text


def test_alerts_have_a_state_a_time_and_a_mark_in_the_trend(spec: Spec) -> None:
    write_traces(spec.folder, {"id": "later", "at": NOON + 5400})
    judge(spec, LATER)
    record(spec, NOON + 1800, evidence={"metric": "faithfulness", "moved": {"traffic": "another language"}})
    page = draw(spec, LATER + 600)
    assert "1 alert firing" in page and page.count('class="mark"') == 1
    text = read(page)
    assert (
        "firing faithfulness below 0.8 critical, since 2025-11-25 12:30:00 UTC it fell traffic: another language"
        in text
    )
    assert "▼ Alert 2025-11-25 12:30: faithfulness below 0.8" in text
    record(spec, LATER, "clear")
    ended = read(draw(spec, LATER + 600))
    assert (
        "resolved faithfulness below 0.8 critical, since 2025-11-25 12:30:00 UTC until 2025-11-25 14:00:00 UTC" in ended
    )
    assert "No alert is firing" in ended and "▼ Alert 2025-11-25 12:30" in ended


def test_an_alert_that_does_not_hold_long_enough_is_pending(spec: Spec) -> None:
    record(spec, NOON, for_seconds=600)
    assert "pending faithfulness below 0.8 critical, since 2025-11-25 12:00:00 UTC The condition holds, but" in read(
        draw(spec)
    )


def test_a_trend_breaks_where_a_new_series_began_and_where_there_was_no_data(spec: Spec) -> None:
    write_traces(spec.folder, {"id": "next", "at": NOON + 3600})
    judge(spec, NOON + 7200)
    changed = load_spec(spec.folder, "judges: {overlap: {use: overlap, threshold: 0.9}}\n")
    for hour in (3, 4):
        write_traces(spec.folder, *({"id": f"h{hour}-{n}", "at": NOON + hour * 3600} for n in range(2)))
    judge(changed, NOON + 6 * 3600)
    page = draw(changed, NOON + 6 * 3600)
    chart = page[page.index("<svg") : page.index("</svg>")]
    assert [len(one.split()) for one in re.findall(r'polyline class="line" points="([^"]*)"', chart)] == [2, 2]
    assert chart.count('class="break"') == 1
    assert "warning 0.800" in chart and "critical 0.600" in chart
    assert "New series from 2025-11-25 15:00: the judge changed" in read(page)


def test_a_judge_that_is_rolled_back_is_shown_with_its_own_numbers(spec: Spec) -> None:
    judge(load_spec(spec.folder, "judges: {overlap: {use: overlap, threshold: 0.9}}\n"), NOON + 3600)
    write_traces(spec.folder, *({"id": f"next {n}", "at": NOON + 7200} for n in range(2)))
    judge(load_spec(spec.folder), NOON + 7200)
    text = read(draw(spec, NOON + 7200))
    assert "The numbers add up" in text
    with open_ledger(spec) as ledger:
        assert ledger.current_series()["faithfulness"] == 1


def test_redacted_columns_are_on_no_part_of_the_page(spec: Spec) -> None:
    record(
        spec, NOON, evidence={"metric": "faithfulness", "moved": {"traffic": "2 of a new kind: Can I return shoes?"}}
    )
    redacted = replace(spec, redact=("question", "answer", "contexts", "error", "columns"))
    page = draw(redacted)
    assert "Trace bad" in read(page) and "traffic: 2 of a new kind" in read(page)
    assert not any(text in page for text in (BAD, SOURCE, "Can I return", "2025-11-25T"))


def test_what_is_in_traces_stays_text(tmp_path: Path) -> None:
    spec = load_spec(tmp_path)
    write_traces(tmp_path, {"id": HOSTILE, "question": HOSTILE, "answer": f"{HOSTILE} \x1b[31m", "contexts": [HOSTILE]})
    judge(spec)
    record(spec, NOON, name=HOSTILE, summary=HOSTILE)
    page = draw(spec)
    assert html.escape(HOSTILE, quote=False)[:8] in page and HOSTILE not in page
    assert "\x1b" not in page and "style=" not in page and "<script" not in page


def test_messages_that_nobody_took_are_told(spec: Spec) -> None:
    with open_ledger(spec) as ledger:
        look = Look("a", "it fell", "holds")
        AlertBook(ledger.connection, spec.name).record([look], ["slack"], NOON)
    assert "Not delivered to slack: it fell: not tried yet" in read(draw(spec))


def test_a_monitor_writes_it_at_each_look_and_a_command_at_any_time(tmp_path: Path) -> None:
    write_traces(tmp_path, {"id": "bad", "answer": BAD})
    judge(load_spec(tmp_path, "  page: out/monitor.html\n"))
    assert "Made 2025-11-25 13:01:00 UTC" in (tmp_path / "out" / "monitor.html").read_text()  # the second run for cron
    place = tmp_path / "now.html"
    done = CliRunner().invoke(monitor, ["page", str(tmp_path / "spec.yaml"), "-o", str(place)])
    assert done.output == f"wrote {place}\n" and "1 trace seen" in place.read_text()


def test_a_page_that_cannot_be_written_does_not_stop_the_monitor(tmp_path: Path) -> None:
    write_traces(tmp_path, {"id": "bad", "answer": BAD})
    (tmp_path / "taken").write_text("a file")
    spec = load_spec(tmp_path, "  page: taken/monitor.html\n")
    judge(spec)
    with open_ledger(spec) as ledger:
        assert ledger.count(1)["judged"] == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_without_a_request_and_without_a_fault(spec: Spec, scheme: str) -> None:
    path = spec.folder / "monitor.html"
    path.write_text(draw(spec))
    with (
        start_browser() as browser,
        open_page(browser, path, viewport={"width": 390, "height": 800}, color_scheme=scheme) as opened,
    ):
        opened.page.get_by_text("Can I return shoes, bad?").first.click()
        assert opened.page.get_by_text(BAD).is_visible()
        assert opened.page.evaluate("document.documentElement.scrollWidth") == 390
        assert opened.seen == [] and len(opened.requests) == 1


DESK = "  every: 5s\n  page: monitor.html\n  notify: [{use: command, name: desk, run: ['false']}]\n"
FAILED = "Not delivered to desk: coverage of faithfulness: false ended with exit code 1"


def serve_error(folder: Path) -> Spec:
    write_traces(folder, {"id": "none", "answer": None, "error": "down"})
    return load_spec(folder, DESK)


def test_it_is_written_after_the_messages_of_its_look_were_tried(tmp_path: Path) -> None:
    spec = serve_error(tmp_path)
    judge(spec, NOON + 600)
    text = read((tmp_path / "monitor.html").read_text())
    assert FAILED in text and "not tried yet" not in text


def test_a_monitor_that_goes_on_writes_it_after_the_messages_too(tmp_path: Path) -> None:
    spec, time, stop = serve_error(tmp_path), [NOON + 600], Event()

    def wait(seconds: float) -> None:
        time[0] += seconds
        sleep(0.02)  # messages are sent in a thread, which looks each second
        if FAILED in read((tmp_path / "monitor.html").read_text() if time[0] > NOON + 605 else "<body"):
            stop.set()
        assert time[0] < NOON + 1200, "no page says what became of the message"

    with open_monitor(spec, lambda: time[0]) as loop:
        loop.run(stop, wait)
    assert "not tried yet" not in (tmp_path / "monitor.html").read_text()


def test_its_windows_are_those_of_the_alerts_where_labels_correct_them(tmp_path: Path) -> None:
    write_traces(tmp_path, *({"id": f"t{at}"} for at in range(40)))
    said = "".join(f"t{at},faithfulness,{at % 2}\n" for at in range(40))
    (tmp_path / "labels.csv").write_text("query_id,metric,value\n" + said)
    corrected = SPEC.replace("judge: overlap}", "judge: overlap, labels: people}")
    spec = load_spec(tmp_path, "labels: {people: {use: csv, path: labels.csv}}\n", corrected)
    judge(spec)
    with open_monitor(spec, lambda: LATER) as loop:
        seen = loop.watch.read_windows(LATER)[0]
    assert seen.value is not None and seen.value < 0.7
    assert f"faithfulness hour {format_number(seen.value)} " in read(draw(spec))


AB = "  ab: {by: variant, metric: faithfulness}\n  windows: [{name: hour, length: 1h}, {name: last 10, queries: 10}]\n"


def test_it_shows_the_experiment_and_how_windows_differ_from_the_baseline(tmp_path: Path) -> None:
    for day, bad in ((1, ""), (0, "a")):
        for arm in "ab":
            whole = {"metadata": {"variant": arm}, "answer": BAD if arm == bad else GOOD}
            began = NOON - 86_400 * day
            write_traces(tmp_path, *({"id": f"{arm}{day}-{at}", "at": began + at * 50, **whole} for at in range(60)))
    spec = load_spec(tmp_path, AB)
    judge(spec)
    text = read(draw(spec))
    assert re.search(r"A/B test b is better faithfulness by variant .* a 0\.519 120 50% b 1\.000 120 50%", text)
    assert re.search(r"b less a \+0\.48\d \[0\.\d+, 0\.\d+\], p [=<] 0\.\d+ Shares of the traces as set, p = 1", text)
    assert re.search(r"hour 0\.519 \[[\d., ]+\] -0\.48\d \[[-\d., ]+\] the 7 days before 120 100%", text)
    assert re.search(r"last 10 \d\.\d+ \[[\d., ]+\] -?[\d.]+ \[[-\d., ]+\] the 7 days before 10 100% 2025", text)
    done = CliRunner().invoke(monitor, ["plan", str(tmp_path / "spec.yaml")])
    assert "A/B test: faithfulness by variant: b is better: 0.519 of 120 judged traces (a)" in done.output


def test_an_experiment_whose_traces_are_lost_or_that_has_not_begun_says_so(tmp_path: Path) -> None:
    write_traces(tmp_path, *({"id": f"t{at}", "metadata": {"variant": "b" if at % 10 else "a"}} for at in range(300)))
    spec = load_spec(tmp_path, AB)
    judge(spec)
    text = read(draw(spec))
    assert "A/B test not comparable" in text and "Shares of the traces traces are lost, p < 0.0001" in text
    alone = load_spec(tmp_path, AB.replace("variant", "region"))
    assert "region has 0 values; a test needs two" in read(draw(alone))


def test_a_firing_alert_opens_its_answers_and_a_resolved_one_does_not(spec: Spec) -> None:
    worst = tuple(WorstAnswer(name, "cut", "cut", 0.037, "because") for name in ("bad", "gone"))
    record(spec, NOON, evidence={"metric": "faithfulness", "worst": worst})
    alert = read(draw(spec)).partition("A/B test")[0].partition("Last windows")[0]
    assert "it fell 0.037 Can I return shoes, bad? Trace bad" in alert
    assert f"Answer {BAD} Reason because Context 1 {SOURCE}" in alert and "gone" not in alert and "cut" not in alert
    redacted = read(draw(replace(spec, redact=("answer",)))).partition("Last windows")[0]
    assert BAD not in redacted and "because" not in redacted and SOURCE in redacted
    record(spec, NOON + 60, "clear")
    assert "Can I return shoes" not in read(draw(spec)).partition("Last windows")[0]


def test_coverage_tells_the_most_frequent_reason(spec: Spec) -> None:
    with open_ledger(spec) as ledger:
        ledger.connection.execute(
            "UPDATE rageval_judgements SET state = 'failed', reason = ? WHERE trace_id = 'good'", (f"{HOSTILE} 429",)
        )
        ledger.connection.execute("UPDATE rageval_panes SET judged = judged - 1, failed = failed + 1")
    page = draw(spec)
    assert re.search(r"1 50% 1 filtered, 1 failed .*429 2025-11-25", read(page)) and HOSTILE not in page
    assert "429" not in read(draw(replace(spec, redact=("answer",))))


def test_forty_metrics_and_long_hostile_texts_stay_below_a_megabyte(tmp_path: Path) -> None:
    names = "".join(f", {{use: faithfulness, judge: overlap, as: m{at}}}" for at in range(39))
    long = (HOSTILE + "\x00\u202e\u0627\u0644\u0639\u0631\u0628\u064a\u0629 ") * 200
    rows = [
        {
            "id": f"t{at}",
            "at": NOON - 3600 * at,
            "question": f"{at} {long}",
            "answer": f"{BAD} {at}",
            "contexts": [long] * 9,
        }
        for at in range(4)
    ]
    write_traces(tmp_path, *rows)
    spec = load_spec(tmp_path, spec=SPEC.replace("judge: overlap}]", "judge: overlap}" + names + "]"))
    judge(spec)
    page = draw(spec)
    assert len(page.encode()) < 1_000_000
    assert page.count('<details class="answer">') == 120
    assert "characters more)" in page and "9 more contexts" in page
    assert not any(text in page for text in (HOSTILE, "\x00", "\u202e"))


def test_counting_what_waits_reads_no_settled_trace(spec: Spec) -> None:
    asked: list[str] = []
    with open_ledger(spec) as ledger:
        execute = ledger.connection.execute
        ledger.connection.execute = lambda text, *others: (asked.append(text), execute(text, *others))[1]  # type: ignore[method-assign, func-returns-value]
        ledger.count_waiting()
        (plan,) = execute(f"EXPLAIN QUERY PLAN {asked[0]}", (spec.name,))
    assert "rageval_traces_due" in plan[-1]
