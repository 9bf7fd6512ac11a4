"""What users of Langfuse, MLflow, Opik and Evidently reported of monitors, each as a test that this one does better."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rageval_spec.drawing.openmetrics import render_families
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.monitoring.service import MonitorLoop
from rageval_spec.spec import load
from tests.exchange.langfuse.server import LangfuseServer, set_keys
from tests.models.chat_endpoint import ChatServer, completion, refusal, say_yes
from tests.models.endpoint import Answer
from tests.monitoring.feeds.polling import Clock, judge_due, poll
from tests.monitoring.feeds.test_spans import as_json, root, step
from tests.monitoring.feeds.tool_fakes import fake_langfuse
from tests.monitoring.seen_traces import BEGAN, open_ledger

GOOD, BAD = "Ada Lovelace wrote the first program.", "Bob Marley baked seven cakes in Paris."
HOUR = 3600.0
OVERLAP = "{use: faithfulness, judge: overlap}"
CHAT = "{use: faithfulness, judge: short}"
SPEC = """
version: 1
name: bot
systems:
  live: {system}
models: {{tiny: {{use: chat, model: tiny, base_url: "{url}/v1", retries: 0, price: {{input: 1000, output: 1000}}}}}}
judges: {{short: {{use: binary, model: tiny, per: answer}}}}
metrics: [{metrics}]
monitor:
  every: 1m
  settle: 1s
  windows: [{{name: hour, length: 1h}}]
  alerts: [coverage, {{metric: faithfulness, warning: 0.7, window: hour}}{alerts}]
{others}
"""


class Watched:
    """A monitor in a folder, with its clock and the growing file that it reads."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, Clock()
        self.clock.now = BEGAN // HOUR * HOUR
        self.count = 0

    def write_spec(
        self,
        metrics: str = OVERLAP,
        *,
        system: str = "{use: file, path: app.jsonl, follow: true}",
        url: str = "http://127.0.0.1:9",
        alerts: str = "",
        others: str = "",
    ) -> None:
        text = SPEC.format(metrics=metrics, system=system, url=url, alerts=alerts, others=others)
        (self.folder / "spec.yaml").write_text(text)
        (self.folder / "app.jsonl").touch()

    def serve(self, *answers: str) -> None:
        """Write answers to the log, with the time as it is."""
        with (self.folder / "app.jsonl").open("a") as file:
            for answer in answers:
                self.count += 1
                started = self.clock.now + self.count / 1000
                row = {"id": f"t{self.count}", "question": "Who wrote it?", "answer": answer, "contexts": [GOOD]}
                file.write(json.dumps({**row, "started": _write(started)}) + "\n")

    @contextmanager
    def open(self) -> Iterator[MonitorLoop]:
        with open_monitor(load(self.folder / "spec.yaml"), self.clock) as loop:
            yield loop

    def go_on(self, loop: MonitorLoop, seconds: float, step: float = 60.0) -> None:
        """Let time pass, and do what a monitor does meanwhile."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            loop.poll()
            self.clock.now += step
            while loop.judge_due():
                pass
            loop.look()


def _write(moment: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).isoformat()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A chat model that can be told to fail."""
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = ChatServer()
    yield server
    server.close()


def count(loop: MonitorLoop, metric: str = "faithfulness") -> dict[str, int]:
    """The states of all traces, those that none is in left out; they must add up."""
    found = loop.ledger.count(loop.judge.series[metric].id)
    assert sum(found.values()) + loop.ledger.count_before(loop.judge.series[metric].id) == loop.ledger.count_traces()
    return {state: number for state, number in found.items() if number}


def firing(loop: MonitorLoop) -> list[str]:
    """What fires, as people are told it."""
    rows = loop.ledger.connection.execute("SELECT message FROM rageval_alerts WHERE state = 'firing' ORDER BY alert")
    return [json.loads(message)["summary"] for (message,) in rows]


def test_a_trace_is_not_judged_before_it_is_complete(watched: Watched) -> None:
    """mlflow#21870: scorers ran on traces that had not ended, and so without their answers."""
    watched.write_spec(system="{use: otel, path: app.jsonl, follow: true}")
    path = watched.folder / "app.jsonl"
    with watched.open() as loop:
        path.write_bytes(as_json(step(1)))
        watched.go_on(loop, 240)
        assert loop.ledger.count_traces() == 0
        path.write_bytes(path.read_bytes() + as_json(root(1)))
        watched.go_on(loop, 600)
        assert count(loop) == {"filtered": 1}  # it has no contexts; what matters is that it was judged whole, and once
        assert loop.ledger.connection.execute("SELECT is_whole, reopened FROM rageval_traces") == [(1, 0)]


def test_a_trace_that_ended_late_is_not_skipped_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """langfuse#9062: the next question to the tool began after the last trace that was seen."""
    set_keys(monkeypatch)
    server, ledger, judged = LangfuseServer(), open_ledger(tmp_path / "history"), list[str]()
    tool = fake_langfuse(server)
    feed = tool.open(tmp_path, ledger, 60)
    for minute in range(0, 60, 2):
        now = BEGAN + 60 * minute
        tool.write(2 + minute, now, 1.0, "soon")
        if minute == 40:
            tool.write(1, BEGAN, 40 * 60.0, "late")
        poll(feed, ledger, now)
        judged += judge_due(ledger, now)
    server.close()
    assert judged.count("t1") == 1


@pytest.mark.parametrize("fault", ["the judge refuses", "nobody recognises the questions", "the rows are broken"])
def test_evaluators_that_silently_never_ran_are_an_alert(watched: Watched, model: ChatServer, fault: str) -> None:
    """langfuse#15681, langfuse#13202: evaluators were active, traces came, and nothing was ever judged or said."""
    system = (
        "{use: otel, path: app.jsonl, follow: true}"
        if "questions" in fault
        else "{use: file, path: app.jsonl, follow: true}"
    )
    watched.write_spec(CHAT, url=model.url, system=system)
    model.chat = lambda number, body: refusal("wrong key", 401)
    with watched.open() as loop:
        if fault == "the judge refuses":
            watched.serve(*(f"{GOOD} {number}" for number in range(5)))
        elif fault == "nobody recognises the questions":
            (watched.folder / "app.jsonl").write_bytes(as_json(root(1)._replace(attributes={"prompt_of_ours": "Who?"})))
        else:
            (watched.folder / "app.jsonl").write_text("Who wrote it? Ada.\n" * 5)
        watched.go_on(loop, 1200)
        told = {
            "the judge refuses": "faithfulness judged none of 5 traces of the hour before ",
            "nobody recognises the questions": "faithfulness judged none of 1 trace of the hour before ",
            "the rows are broken": "rows of live could not be read since ",
        }[fault]
        assert [one[: len(told)] for one in firing(loop)] == [told]


@pytest.mark.parametrize(
    "fault", [refusal("overloaded", 503), Answer(completion("perhaps"))], ids=["503", "unreadable"]
)
def test_a_retry_tries_again_and_its_value_counts(watched: Watched, model: ChatServer, fault: Answer) -> None:
    """langfuse#16491, mlflow#24404: retries were recorded, and no judge was asked, or its value was lost."""
    watched.write_spec(CHAT, url=model.url, others="  retry_for: 2m")
    model.chat = lambda number, body: fault
    with watched.open() as loop:
        watched.serve(GOOD)
        watched.go_on(loop, 60)
        first = len(model.calls)
        assert count(loop) == {"waiting": 1}
        watched.go_on(loop, HOUR)
        asked = len(model.calls)
        assert (count(loop), asked >= 2 * first) == ({"failed": 1}, True)
        model.chat = say_yes
        assert loop.ledger.retry_failed(watched.clock.now) == {"failed": 1}
        watched.go_on(loop, 60)
        assert (count(loop), len(model.calls)) == ({"judged": 1}, asked + 1)
        sums = loop.ledger.connection.execute("SELECT SUM(judged), SUM(failed), SUM(weighted) FROM rageval_panes")
        assert sums == [(1, 0, 1.0)]


def test_scores_of_two_versions_of_a_judge_are_two_series(watched: Watched, model: ChatServer) -> None:
    """semantic-conventions-genai#33: nothing told the scores of two versions of a judge apart."""
    watched.write_spec(url=model.url)
    watched.serve(*[BAD] * 40)
    with watched.open() as loop:
        watched.go_on(loop, 120)
        assert count(loop) == {"judged": 40}
    watched.write_spec(CHAT, url=model.url)
    with watched.open() as loop:
        watched.serve(*(f"{GOOD} {number}" for number in range(3)))
        watched.go_on(loop, 120)
        assert count(loop) == {"judged": 3}
        series = loop.judge.series["faithfulness"].id
        ask = loop.ledger.connection.execute
        assert ask("SELECT DISTINCT value FROM rageval_judgements WHERE series = ?", (series,)) == [(1.0,)]
        assert ask("SELECT COUNT(*) FROM rageval_series") == [(2,)]


def test_what_a_metric_never_saw_is_a_number_of_its_own(watched: Watched) -> None:
    """It came before the metric began, or while the spec did not have it."""
    for metrics, before in ((OVERLAP, 0), (f"{OVERLAP}, latency", 2), (OVERLAP, 2), (f"{OVERLAP}, latency", 4)):
        watched.write_spec(metrics, others='  serve: "127.0.0.1:8000"')
        with watched.open() as loop:
            watched.serve(GOOD, GOOD)
            watched.go_on(loop, 120)
            assert loop.publish is not None
            numbers = {family.name: family.samples for family in loop.publish(watched.clock.now)}
        ((_, seen),) = numbers["rageval_traces_seen"]
        shown = [(labels["metric"], labels["state"], number) for labels, number in numbers["rageval_traces"]]
        for name in {metric for metric, *_ in shown}:
            assert sum(int(number or 0) for metric, _, number in shown if metric == name) == seen
            assert (name, "before", before if name == "latency" else 0) in shown


def test_no_data_is_not_a_score_of_zero(watched: Watched) -> None:
    """An hour without traffic, or with answers that cannot be scored, is a number nowhere, and below no bound."""
    watched.write_spec(others='  serve: "127.0.0.1:8000"')
    with watched.open() as loop:
        assert loop.publish is not None
        for answers in ((), (GOOD,), ()):
            watched.serve(*answers)
            watched.go_on(loop, 2 * HOUR, step=600)
            assert firing(loop) == []
            shown = render_families(loop.publish(watched.clock.now)).decode()
            assert "rageval_window_samples" in shown
            assert ("rageval_window_value{" in shown) == bool(answers)
        assert count(loop) == {"judged": 1}
        assert loop.ledger.connection.execute("SELECT COUNT(*) FROM rageval_judgements WHERE value = 0") == [(0,)]


def test_cost_has_a_ceiling_and_what_is_over_it_is_counted(watched: Watched, model: ChatServer) -> None:
    """opik#7312: online evaluation went on spending, whatever came in."""
    watched.write_spec(CHAT, url=model.url, others='  budget: {cost: "3.00 per 1h"}')
    reply = completion() | {"usage": {"prompt_tokens": 95, "completion_tokens": 5, "total_tokens": 100}}
    model.chat = lambda number, body: Answer(reply)
    with watched.open() as loop:
        for minute in range(20):
            watched.serve(*(f"{GOOD} {minute} {number}" for number in range(5)))
            watched.go_on(loop, 60)
        counts = count(loop)
        spent = loop.ledger.connection.execute("SELECT SUM(cost) FROM rageval_spending")[0][0]
    assert spent == pytest.approx(0.1 * len(model.calls))
    assert 0 < len(model.calls) <= 30
    assert counts == {"judged": len(model.calls), "over_budget": 100 - len(model.calls)}


def test_a_failure_that_finds_no_budget_waits_until_there_is_some(watched: Watched, model: ChatServer) -> None:
    """The first tries and some of the second ones take the whole budget, and all of them fail."""
    watched.write_spec(CHAT, url=model.url, others='  budget: {calls: "8 per 1h"}')
    model.chat = lambda number, body: refusal("overloaded", 500)
    with watched.open() as loop:
        watched.serve(*(f"{GOOD} {number}" for number in range(20)))
        watched.go_on(loop, 60)
        counts, tried = count(loop), count(loop)["waiting"]
        assert counts == {"waiting": tried, "over_budget": 20 - tried}
        watched.go_on(loop, HOUR / 2)
        assert (count(loop), len(model.calls)) == (counts, 8)
        model.chat = say_yes
        watched.go_on(loop, 1.5 * HOUR)
        assert count(loop) == {"judged": tried, "over_budget": 20 - tried}


def test_what_found_the_budget_spent_can_be_tried_later(watched: Watched, model: ChatServer) -> None:
    """What a call costs is not known yet, so no trace is left out at random."""
    watched.write_spec(CHAT, url=model.url, others='  budget: {cost: "3.00 per 1h"}')
    reply = completion() | {"usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}}
    with watched.open() as loop:
        model.chat = lambda number, body: Answer(reply)
        watched.serve(*(f"{GOOD} {number}" for number in range(20)))
        watched.go_on(loop, 60)
        counts = count(loop)
        assert set(counts) == {"judged", "over_budget"}
        assert loop.ledger.retry_failed(watched.clock.now) == {"over_budget": counts["over_budget"]}
        watched.go_on(loop, 120)
        assert count(loop) == {"judged": counts["judged"], "waiting": counts["over_budget"]}
        model.chat = say_yes
        watched.go_on(loop, 2 * HOUR)
        assert count(loop) == {"judged": 20}


def test_a_quiet_fortnight_wakes_nobody(watched: Watched) -> None:
    """evidently#50: every check is a test of its own, and with many checks one of them always fails."""
    alerts = ", {metric: faithfulness, drift: {low: 5%, medium: 10%, high: 15%}}"
    watched.write_spec(alerts=alerts, others="  baseline: {window: 3d}\n  false_alarms: 1 per 90d")
    # The stated number allows an alarm in one of six such fortnights; of seeds 0 to 29, one (3) has one.
    chance, told = random.Random(4), list[str]()
    with watched.open() as loop:
        for _ in range(14 * 4):
            watched.serve(*(GOOD if chance.random() < 0.9 else BAD for _ in range(20)))
            watched.go_on(loop, 1.5 * HOUR, step=1.5 * HOUR)
            told += firing(loop)
            watched.clock.now += 4.5 * HOUR
        assert count(loop) == {"judged": 14 * 4 * 20}
    assert told == []


def test_two_systems_with_the_same_ids_are_not_taken_for_one_another(watched: Watched) -> None:
    """Both answer the same requests, as in a comparison of two versions; a later answer replaced an earlier one."""
    watched.write_spec(
        system="{use: file, path: app.jsonl, follow: true}\n  next: {use: file, path: b.jsonl, follow: true}"
    )
    watched.serve(GOOD, GOOD)
    text = (watched.folder / "app.jsonl").read_text()
    (watched.folder / "b.jsonl").write_text(text.replace(GOOD, BAD, 1) + text.replace("Who wrote it?", "When?"))
    with watched.open() as loop:
        watched.go_on(loop, 120)
        assert count(loop) == {"judged": 6}
        ids = {name for (name,) in loop.ledger.connection.execute("SELECT trace_id FROM rageval_traces")}
        assert {"t1", "t2", "next/t1", "next/t2"} < ids
        assert loop.ledger.forget(trace_id="next/t1") == 1
