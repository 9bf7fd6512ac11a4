"""What alerts come to where there is little, nothing, or something odd to see."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.monitoring.alerts import AlertBook, Look
from rageval_spec.monitoring.ledger import LEASE, Judgement, Ledger, SampledTrace, SeenTrace
from rageval_spec.monitoring.looks.looking import Watch
from rageval_spec.monitoring.looks.windows import WindowReader
from rageval_spec.monitoring.traces.trace_judging import NO_QUESTION, Series
from rageval_spec.spec.blocks.monitor import MonitorNode, WindowNode
from rageval_spec.statistics.intervals import Resampling
from tests.monitoring.looks.test_levels import ERRORS, P95
from tests.monitoring.seen_traces import BEGAN, fill, make_trace, open_ledger, seen

START = BEGAN // 3600 * 3600
RANDOM = np.random.default_rng(11)


def make(
    folder: Path, alerts: Sequence[Any], name: str = "error_rate", metric: Any = None
) -> tuple[Ledger, Series, Watch]:
    ledger = open_ledger(folder)
    series = Series(ledger.find_series(name, "", {}, BEGAN), name, metric)
    node = MonitorNode.model_validate({"alerts": alerts})
    return ledger, series, Watch(node, ledger, WindowReader(ledger, 60, Resampling()), {name: series}, 300)


def look(watch: Watch, now: float) -> Look:
    (found,) = watch.look(now)
    return found


def test_no_data_neither_fires_nor_resolves(tmp_path: Path) -> None:
    _, _, watch = make(tmp_path, [{"metric": "error_rate", "warning": 0.1}], metric=ERRORS.metric)
    assert look(watch, START).verdict == "undecided"


def test_a_few_bad_answers_decide_nothing(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, [{"metric": "error_rate", "warning": 0.1}], metric=ERRORS.metric)
    fill(ledger, series.id, [1.0] * 9, began=START)
    assert look(watch, START + 3900).verdict == "undecided"


def test_the_worst_of_two_bounds_that_are_surely_broken_counts(tmp_path: Path) -> None:
    alert = {"metric": "error_rate", "warning": 0.05, "critical": 0.3, "window": "hour"}
    ledger, series, watch = make(tmp_path, [alert], metric=ERRORS.metric)
    fill(ledger, series.id, [1.0, 0.0, 0.0, 0.0] * 50, began=START, step=15)
    found = look(watch, START + 3900)
    assert (found.verdict, found.severity, found.evidence["bound"]) == ("holds", "warning", 0.05)
    assert found.name == "error_rate above 0.050 (hour)"
    fill(ledger, series.id, [1.0, 1.0, 1.0, 0.0] * 50, began=START + 3600, step=15, prefix="n")
    assert look(watch, START + 7500).severity == "critical"


def test_the_bound_that_is_broken_is_told_beside_a_name_with_the_other_one(tmp_path: Path) -> None:
    alert = {"metric": "error_rate", "warning": 0.05, "critical": 0.3, "window": "hour"}
    ledger, series, watch = make(tmp_path, [alert], metric=ERRORS.metric)
    fill(ledger, series.id, [1.0, 1.0, 1.0, 0.0] * 50, began=START, step=15)
    found = look(watch, START + 3900)
    assert found.name == "error_rate above 0.050 (hour)"
    assert "of 200 judged traces, above its critical bound of 0.300, in window hour" in found.summary


def test_a_bound_that_is_perhaps_broken_is_listed_as_not_yet_certain(tmp_path: Path) -> None:
    alert = {"metric": "error_rate", "warning": 0.05, "window": "hour"}
    ledger, series, watch = make(tmp_path, [alert], metric=ERRORS.metric)
    fill(ledger, series.id, [1.0, 1.0, 1.0, *[0.0] * 27], began=START, step=15)
    book = AlertBook(ledger.connection, "bot")
    book.record(watch.look(START + 3900), [], START + 3900)
    ((name, reason),) = book.list_waiting()
    assert name == "error_rate above 0.050 (hour)"
    assert reason.startswith("error_rate is 0.100 [")
    assert reason.endswith(
        "of 30 judged traces, above 0.050, in window hour (2025-11-24 16:00 to 17:00 UTC): not yet certain"
    )


def test_a_percentile_of_a_quarter_of_an_hour(tmp_path: Path) -> None:
    alert = {"metric": "latency@p95", "warning": 5, "critical": 10, "window": "15m"}
    ledger, series, watch = make(tmp_path, [alert], P95.name, P95.metric)
    fill(ledger, series.id, RANDOM.uniform(1, 2, 60).tolist(), began=START, step=15)
    assert look(watch, START + 1020).verdict == "clear"
    slow = np.where(np.arange(60) % 4 == 0, 20.0, 1.5).tolist()
    fill(ledger, series.id, slow, began=START + 900, step=15, prefix="n")
    found = look(watch, START + 1920)
    assert (found.verdict, found.severity) == ("holds", "critical")
    assert found.evidence["window"] == "15m"


def test_a_metric_that_judged_nothing_is_not_covered(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    assert [one.verdict for one in watch.look(START + 3000)] == ["undecided", "clear"]
    ledger.see([seen(f"t{at}", START, START) for at in range(5)], "live", None)
    claimed = ledger.claim(START + 60, 10, 300)
    made = [Judgement(series.id, one.trace_id, "failed", None, 1.0, "HTTP 401") for one in claimed]
    ledger.settle([SampledTrace(one, 1.0) for one in claimed], made, START + 60)
    found, _ = watch.look(START + 3000)
    assert (found.verdict, found.severity) == ("holds", "critical")
    assert found.summary == (
        "error_rate judged none of 5 traces of the hour before 2025-11-24 16:50 UTC: 5 failed. "
        "The most frequent reason, of 5: HTTP 401"
    )


def see_unasked(ledger: Ledger, series: int, began: float) -> None:
    """Traces in which nothing was asked, such as those of health checks."""
    trace = replace(make_trace(f"health{began}"), question="")
    ledger.see([SeenTrace(trace, began, began)], "live", None)
    (claimed,) = ledger.claim(began, 10, 300)
    told = Judgement(series, trace.id, "filtered", None, 1.0, NO_QUESTION)
    ledger.settle([SampledTrace(claimed, 1.0)], [told], began)


def test_traces_in_which_nothing_was_asked_are_a_fault_until_a_question_was_judged(tmp_path: Path) -> None:
    """Questions that nobody recognises must not pass unseen, and health checks at night must wake nobody."""
    ledger, series, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    see_unasked(ledger, series.id, START)
    found, _ = watch.look(START + 3000)
    told = "error_rate judged none of 1 trace of the hour before 2025-11-24 16:50 UTC: 1 filtered. "
    told += f"The most frequent reason, of 1: {NO_QUESTION}"
    assert (found.verdict, found.summary) == ("holds", told)
    fill(ledger, series.id, [0.0], began=START + 3600)
    see_unasked(ledger, series.id, START + 10_000)
    found, _ = watch.look(START + 10_100)
    assert found.verdict == "undecided"


def test_an_hour_without_traffic_is_a_fault_where_there_always_was_some(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    for day in range(7):
        fill(ledger, series.id, [0.0] * 25, began=START + day * 86_400, prefix=f"{day}-")
        assert watch.look(START + (day + 1) * 86_400 - 7200)[0].verdict == "undecided"
    found, _ = watch.look(START + 7 * 86_400 + 3600)
    assert found.verdict == "holds"
    assert found.summary == (
        "error_rate judged nothing in the hour before 2025-12-01 17:00 UTC; "
        "at this time of each of the last 7 days it judged 25 traces or more"
    )
    assert watch.look(START + 7 * 86_400 + 7200)[0].verdict == "undecided"


def test_what_a_killed_monitor_held_is_not_late_before_its_lease_ends(tmp_path: Path) -> None:
    """With `every: 10s`, six looks are over long before another process may take the traces."""
    ledger, _, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    watch = replace(watch, every=10)
    ledger.see([seen("t1", START, START)], "live", None)
    ledger.claim(START, 10, LEASE)
    assert watch.look(START + LEASE + 59)[-1].verdict == "clear"
    assert watch.look(START + LEASE + 61)[-1].summary.startswith("1 trace waited too long to be judged")
    assert replace(watch, every=300).look(START + 1790)[-1].verdict == "clear"


def test_a_change_of_clicks_says_what_clicks_are_worth(tmp_path: Path) -> None:
    alert = {"metric": "feedback.clicks", "drift": {"high": "20%"}}
    ledger, series, watch = make(tmp_path, [alert], "feedback.clicks")
    now = fill(ledger, series.id, (RANDOM.random(300) < 0.8).astype(float).tolist()) + 30
    assert look(watch, now).verdict == "clear"
    now = fill(ledger, series.id, (RANDOM.random(100) < 0.2).astype(float).tolist(), began=now, prefix="n") + 30
    found = look(watch, now)
    assert found.verdict == "holds"
    assert "People click what stands first whether or not it is better" in found.summary


def test_the_end_of_a_change_has_the_numbers_of_now_and_the_old_level(tmp_path: Path) -> None:
    alert = {"metric": "error_rate", "drift": {"low": "2pp"}}
    ledger, series, watch = make(tmp_path, [alert], metric=ERRORS.metric)
    book = AlertBook(ledger.connection, "bot")

    def record(now: float) -> list[AlertMessage]:
        return book.record(watch.look(now, {row.alert for row in book.read() if row.state == "firing"}), ["hook"], now)

    now = fill(ledger, series.id, [0.0] * 100) + 30
    assert record(now) == []
    now = fill(ledger, series.id, [1.0, 0.0] * 30, began=now, prefix="bad") + 30
    (fired,) = record(now)
    now = fill(ledger, series.id, [0.0] * 900, began=now, prefix="good") + 30
    (ended,) = record(now)
    assert (fired.bound, ended.bound, ended.state, ended.moved) == (0.0, 0.0, "resolved", {})
    assert ended.value == 0.0 and ended.samples is not None and ended.samples >= 900
    assert ended.summary.startswith("error_rate is 0.000 [")
    assert ended.summary.endswith(f" of {ended.samples} judged traces, near its level of 0.000 again")


def test_a_series_that_begins_anew_ends_a_change_with_a_new_level(tmp_path: Path) -> None:
    alert = {"metric": "error_rate", "drift": {"low": "2pp"}}
    ledger, series, watch = make(tmp_path, [alert], metric=ERRORS.metric)
    book = AlertBook(ledger.connection, "bot")
    now = fill(ledger, series.id, [0.0] * 100) + 30
    watch.look(now)
    now = fill(ledger, series.id, [1.0, 0.0] * 30, began=now, prefix="bad") + 30
    (fired,) = book.record(watch.look(now), ["hook"], now)
    other = replace(series, id=ledger.find_series("error_rate", "another", {}, now))
    now = fill(ledger, other.id, [1.0, 0.0] * 50, began=now, prefix="new") + 30
    (ended,) = book.record(replace(watch, series={"error_rate": other}).look(now, [fired.name]), ["hook"], now)
    assert ended.summary == (
        "error_rate changed: changes are now measured from a new level of 0.500; the level that it moved from was 0.000"
    )
    assert (ended.value, ended.samples, ended.bound) == (None, None, 0.5)


def test_two_windows_of_one_metric_have_names_of_their_own(tmp_path: Path) -> None:
    alerts = [{"metric": "error_rate", "warning": 0.1, "window": one} for one in ("hour", "day")]
    _, _, watch = make(tmp_path, alerts, metric=ERRORS.metric)
    found = watch.look(START)
    assert [one.name for one in found] == ["error_rate above 0.100 (hour)", "error_rate above 0.100 (day)"]
    assert len({one.alert for one in found}) == 2


def test_what_an_alert_waits_for_is_told(tmp_path: Path) -> None:
    alerts = [
        {"metric": "error_rate", "warning": 0.1, "window": "hour"},
        {"metric": "error_rate", "drift": {"low": "2pp"}},
        {"metric": "feedback.thumbs", "warning": 0.5},
    ]
    ledger, series, watch = make(tmp_path, alerts, metric=ERRORS.metric)
    fill(ledger, series.id, [1.0] * 9, began=START)
    assert [one.summary for one in watch.look(START + 3900)] == [
        "error_rate has 9 judged traces in window hour (2025-11-24 16:00 to 17:00 UTC); 10 are needed",
        "error_rate has 9 of the 30 judged traces that a baseline needs, in the 7 days before",
        "no trace has feedback.thumbs yet",
    ]


def test_a_window_is_told_with_its_time_and_how_far_it_is_from_the_baseline(tmp_path: Path) -> None:
    alert = {"metric": "error_rate", "warning": 0.1, "window": "hour"}
    ledger, series, watch = make(tmp_path, [alert], metric=ERRORS.metric)
    fill(ledger, series.id, [0.0] * 200, began=START - 200 * 60)
    fill(ledger, series.id, [1.0, 0.0] * 30, began=START, prefix="n")
    told = look(watch, START + 3900).summary
    assert ", above 0.100, in window hour (2025-11-24 16:00 to 17:00 UTC); +0.500 [" in told
    assert told.endswith("] against the 7 days before")
    name = look(watch, START + 3900).alert
    (again,) = watch.look(START + 3900, firing=[name])
    assert "against" not in again.summary


def test_the_last_queries_are_named_as_such(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, [{"metric": "error_rate", "warning": 0.1}], metric=ERRORS.metric)
    node = MonitorNode.model_validate(
        {
            "windows": [{"name": "last", "queries": 50}],
            "alerts": [{"metric": "error_rate", "warning": 0.1, "window": "last"}],
        }
    )
    fill(ledger, series.id, [0.0, 1.0] * 30, began=START)
    told = look(replace(watch, node=node), START + 3900)
    assert told.name == "error_rate above 0.100 (last)"
    assert told.evidence["worst"][0].trace_id == "t59", "the newest trace is one of the last 50"
    assert ", in the last 50 judged traces" in told.summary


def test_a_judge_that_is_down_is_no_coverage_long_before_its_deadline(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    fill(ledger, series.id, [0.0], began=START - 7200)
    ledger.see([seen(f"w{at}", START, START) for at in range(5)], "live", None)
    claimed = ledger.claim(START + 60, 10, 300)
    for tries, verdict in ((3, "undecided"), (4, "holds")):
        made = [
            Judgement(series.id, one.trace_id, "waiting", None, 1.0, "HTTP 503", tries=tries, retry_at=START + 9e3)
            for one in claimed
        ]
        ledger.settle([SampledTrace(one, 1.0) for one in claimed], made, START + 60)
        ledger.retry([(one, START) for one in made], START + 90)
        found, _ = watch.look(START + 3000)
        assert found.verdict == verdict
    assert "judged none of 5 traces" in found.summary and "5 waiting" in found.summary
    assert found.summary.endswith("The most frequent reason, of 5: HTTP 503. Its last value is of 2025-11-24 14:00 UTC")


def test_what_failed_and_waits_to_be_tried_again_is_not_covered(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, [], metric=ERRORS.metric)
    fill(ledger, series.id, [0.0] * 5, began=START)
    ledger.see([seen(f"w{at}", START, START) for at in range(10)], "live", None)
    claimed = ledger.claim(START + 600, 10, 300)
    made = [
        Judgement(series.id, one.trace_id, "waiting", None, 1.0, "HTTP 500", tries=1, retry_at=START + 9e3)
        for one in claimed
    ]
    ledger.settle([SampledTrace(one, 1.0) for one in claimed], made, START + 600)
    numbers = watch.reader.read(series, WindowNode(name="hour", length="1h"), START + 3900)
    assert numbers.coverage == 5 / 15
    assert numbers.counts["waiting"] == 10


def test_the_worst_answers_link_to_their_traces(tmp_path: Path) -> None:
    alert = {"metric": "error_rate", "warning": 0.1, "window": "hour"}
    ledger, series, watch = make(tmp_path, [alert], metric=ERRORS.metric)
    fill(ledger, series.id, [1.0, 0.0] * 30, began=START)
    found = look(replace(watch, find_page=lambda link: f"https://tool/{link.trace_id}"), START + 3900)
    assert found.evidence["worst"][0].link == f"https://tool/{found.evidence['worst'][0].trace_id}"
