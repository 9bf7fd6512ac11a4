"""Values on the traces that they are of: at least once, across kills, and accounted for."""

from __future__ import annotations

import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count as count_from
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rageval_spec.cli import cli
from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import UsageError
from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.monitoring.outputs import couriers
from rageval_spec.monitoring.outputs.outbox import DestinationState
from rageval_spec.monitoring.outputs.sending import LEASE
from rageval_spec.monitoring.service import MonitorLoop
from rageval_spec.spec import load
from tests.endpoints.api_server import Asked
from tests.exchange.langfuse.server import LangfuseServer, set_keys
from tests.exchange.mlflow.conftest import mlflow as mlflow
from tests.exchange.mlflow.sending import make_traces as make_mlflow_traces
from tests.exchange.mlflow.server import MlflowServer
from tests.exchange.otel.collector import Collector, attributes, collecting
from tests.exchange.otel.rotel import rotel_forwarding
from tests.exchange.phoenix.conftest import phoenix as phoenix
from tests.exchange.phoenix.sending import make_traces
from tests.exchange.phoenix.server import PhoenixServer
from tests.models.endpoint import Answer
from tests.monitoring.outputs.prometheus_server import wait_for


def write(folder: Path, traces: list[Trace], send: list[Any]) -> Path:
    lines = (json.dumps(trace.to_row()) + "\n" for trace in traces)
    (folder / "traces.jsonl").write_text("".join(lines), encoding="utf-8")
    content = {
        "version": 1,
        "name": "bot",
        "systems": {"live": {"use": "file", "path": "traces.jsonl", "follow": True}},
        "metrics": [{"use": "faithfulness", "judge": "overlap"}, "error_rate"],
        "monitor": {"settle": "1s", "send": send},
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def go_round(path: Path, after: float, watch: Callable[[MonitorLoop], None] = lambda _: None) -> MonitorLoop:
    """One round of the monitor `after` seconds from now; the database is closed then."""
    with open_monitor(load(path)) as loop:
        now = loop.clock()
        loop.poll()
        loop.clock = lambda: now + after
        watch(loop)
        loop.run_once()
        assert loop.outbox is not None
        COUNTED[:] = loop.outbox.count().values()
    return loop


COUNTED: list[DestinationState] = []


def count(_: MonitorLoop) -> DestinationState:
    """What became of the values of the last round."""
    (found,) = COUNTED
    return found


def list_scores(server: PhoenixServer) -> dict[tuple[str, str], float]:
    """The scores by span and name."""
    return {(key[1], key[3]): body["result"]["score"] for key, body in server.annotations.items()}


def test_values_come_to_the_spans_in_phoenix(phoenix: PhoenixServer, tmp_path: Path) -> None:
    loop = go_round(write(tmp_path, make_traces(), ["phoenix"]), 10)
    assert count(loop) == DestinationState(0, 9)
    scores = list_scores(phoenix)
    assert len(scores) == 9
    assert scores[f"{1:014x}01", "error_rate"] == 0.0
    assert scores[f"{5:014x}01", "error_rate"] == 1.0
    (body,) = (
        body for key, body in phoenix.annotations.items() if key[1] == f"{1:014x}01" and key[3] == "faithfulness"
    )
    assert body["metadata"]["evaluation"] == "bot"
    assert body["annotator_kind"] == "LLM"


def test_what_was_not_taken_waits_and_the_next_process_sends_it(phoenix: PhoenixServer, tmp_path: Path) -> None:
    path, reply = write(tmp_path, make_traces(), ["phoenix"]), phoenix.reply
    phoenix.reply = lambda _: Answer(b"no", 401)
    loop = go_round(path, 10)
    assert (count(loop).waiting, count(loop).sent) == (9, 0)
    assert "401" in loop.progress.complaints[f"monitor.send phoenix {phoenix.url}"]
    assert "401" in str(count(loop).failure)
    assert len(phoenix.asked) == 1
    phoenix.reply = reply
    assert count(go_round(path, 20)) == DestinationState(0, 9)
    assert len(phoenix.annotations) == 9


KILLED = """
import os, signal, sys
from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.monitoring.outputs.outbox import Outbox
from rageval_spec.spec import load
Outbox.settle = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with open_monitor(load(sys.argv[1])) as loop:
    now = loop.clock()
    loop.poll()
    loop.clock = lambda: now + 10
    loop.run_once()
"""


def test_a_process_that_is_killed_after_sending_sends_the_same_again(phoenix: PhoenixServer, tmp_path: Path) -> None:
    path = write(tmp_path, make_traces(), ["phoenix"])
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)]).returncode == -9
    before = dict(phoenix.annotations)
    assert before
    assert count(go_round(path, 20)).waiting == 9, "the killed process holds the lease"
    assert count(go_round(path, 20 + LEASE)) == DestinationState(0, 9)
    assert len(phoenix.annotations) == 9
    assert before.keys() < phoenix.annotations.keys()
    asked = len(phoenix.asked)
    assert count(go_round(path, 30 + LEASE)).sent == 9
    assert len(phoenix.asked) == asked


def test_a_value_that_the_tool_refuses_does_not_hold_up_the_others(phoenix: PhoenixServer, tmp_path: Path) -> None:
    reply = phoenix.reply

    def refuse(asked: Asked) -> Answer:
        return Answer(b"bad span", 422) if f"{3:014x}01" in asked.body.decode() else reply(asked)

    phoenix.reply = refuse
    loop = go_round(write(tmp_path, make_traces(), ["phoenix"]), 10)
    found = count(loop)
    assert (found.waiting, found.sent, found.left_out) == (0, 7, 2)
    assert found.reason is not None
    assert "bad span" in found.reason


def test_spans_that_are_gone_and_traces_of_other_tools_are_counted(phoenix: PhoenixServer, tmp_path: Path) -> None:
    phoenix.spans = [one for one in phoenix.spans if one["context"]["span_id"] != f"{1:014x}01"]
    foreign = replace(make_traces()[0], link=TraceLink("langsmith", "abc"), question="Another?")
    loop = go_round(write(tmp_path, [*make_traces(), foreign], ["phoenix"]), 10)
    found = count(loop)
    assert (found.waiting, found.sent, found.left_out) == (0, 7, 4)
    assert "the trace is of langsmith, not of phoenix" in str(found.reason) or "no longer there" in str(found.reason)


def test_traces_of_opentelemetry_are_found_in_a_tool_by_their_ids(phoenix: PhoenixServer, tmp_path: Path) -> None:
    traces = [replace(one, link=replace(one.link, tool="otel")) for one in make_traces()]
    assert count(go_round(write(tmp_path, traces, ["phoenix"]), 10)).sent == 9
    assert len(list_scores(phoenix)) == 9


def test_a_value_that_is_judged_again_while_it_is_sent_stays_in_the_outbox(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    reply, database = phoenix.reply, tmp_path / ".rageval" / "history.db"

    def judge_again(asked: Asked) -> Answer:
        phoenix.reply = reply
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE rageval_outbox SET queued = queued + 1")
        return reply(asked)

    phoenix.reply = judge_again
    path = write(tmp_path, make_traces(), ["phoenix"])
    assert count(go_round(path, 10)).waiting == 9
    assert count(go_round(path, 20)).waiting == 0
    sent = [len(asked.content["data"]) for asked in phoenix.asked if asked.route.endswith("span_annotations")]
    assert len(phoenix.annotations) == 9
    assert sum(sent) > 9


def test_the_running_monitor_sends_beside_its_work(
    phoenix: PhoenixServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(couriers, "PAUSE", 0.01)
    stop, rounds, waits = Event(), count_from(), count_from()
    with open_monitor(load(write(tmp_path, make_traces(), ["phoenix"]))) as loop:
        now = loop.clock()
        loop.clock = lambda: now + 10 * next(rounds)

        def wait(_: float) -> None:
            stop.wait(0.02)
            if len(phoenix.annotations) == 9 or next(waits) > 500:
                stop.set()

        loop.run(stop, wait)
        assert len(phoenix.annotations) == 9


def test_langfuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)
    server = LangfuseServer()
    traces = [replace(one, link=TraceLink("langfuse", f"t{number}", f"o{number}")) for number, one in
              enumerate(make_traces())]  # fmt: skip
    loop = go_round(write(tmp_path, traces, [{"use": "langfuse", "url": server.url}]), 10)
    server.close()
    assert count(loop).sent == len(server.scores) == 9
    named = {(one["subject"]["id"], one["subject"]["traceId"], one["name"]) for one in server.scores.values()}
    assert ("o0", "t0", "faithfulness") in named


def test_mlflow_gets_feedback_and_no_runs(mlflow: MlflowServer, tmp_path: Path) -> None:
    loop = go_round(write(tmp_path, make_mlflow_traces(), ["mlflow"]), 10)
    assert count(loop) == DestinationState(0, 5)
    assert sum(map(len, mlflow.assessments.values())) == 5
    assert mlflow.runs == {}


def test_otlp_log_records_belong_to_the_spans(tmp_path: Path) -> None:
    with collecting() as collector:
        loop = go_round(write(tmp_path, make_traces(), [{"use": "otel", "endpoint": collector.url}]), 10)
    assert count(loop).sent == 9
    records = collector.records()
    assert len(records) == 9
    first = next(one for one in records if attributes(one)["gen_ai.evaluation.name"] == "faithfulness")
    assert first.event_name == "gen_ai.evaluation.result"
    assert len(first.trace_id) == 16
    assert len(first.span_id) == 8


def test_langfuse_replaces_values_of_traces_that_the_monitor_received_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It replaces a score only if its time is the same, too, so that must not be the time of sending."""
    set_keys(monkeypatch)
    server = LangfuseServer()
    started = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    traces = [replace(one, link=TraceLink("otel", f"{number:032x}", f"{number:016x}"), started=started)
              for number, one in enumerate(make_traces(), 1)]  # fmt: skip
    path = write(tmp_path, traces, [{"use": "langfuse", "url": server.url}])
    found = count(go_round(path, 10))
    assert found == DestinationState(0, 9)
    server.close()
    assert {one["timestamp"][:19] for one in server.scores.values()} == {started[:19]}


def test_one_tool_cannot_be_named_twice(phoenix: PhoenixServer, tmp_path: Path) -> None:
    path = write(tmp_path, make_traces(), ["phoenix", {"use": "phoenix", "url": phoenix.url}])
    with pytest.raises(UsageError, match=f"monitor.send names phoenix {phoenix.url} twice"), open_monitor(load(path)):
        pass


def test_a_page_says_what_a_tool_did_not_take(phoenix: PhoenixServer, tmp_path: Path) -> None:
    path = write(tmp_path, make_traces(), ["phoenix"])
    phoenix.reply = lambda _: Answer(b"no", 401)
    go_round(path, 10)
    page = tmp_path / "monitor.html"
    CliRunner().invoke(cli, ["monitor", "page", str(path), "-o", str(page)], catch_exceptions=False)
    assert f"Sent to phoenix {phoenix.url}: 0 values sent, 9 waiting; it has taken nothing since" in page.read_text()


def test_values_of_traces_that_have_no_ids_of_opentelemetry_go_without_texts_that_the_spec_leaves_out(
    tmp_path: Path,
) -> None:
    traces = [replace(one, link=TraceLink("file", f"t{number}")) for number, one in enumerate(make_traces())]
    with collecting() as collector:
        path = write(tmp_path, traces, [{"use": "otel", "endpoint": collector.url, "signals": ["traces"]}])
        path.write_text(path.read_text() + "redact: [question]\n")
        assert count(go_round(path, 10)) == DestinationState(0, 9)
    assert traces[0].question.encode() not in b"".join(one.SerializeToString() for one in collector.requests)


def list_metrics(collector: Collector) -> dict[str, Any]:
    found = (one for request in collector.requests for one in getattr(request, "resource_metrics", ()))
    return {metric.name: metric for one in found for scope in one.scope_metrics for metric in scope.metrics}


def test_otlp_metrics_are_the_families_of_the_metrics_page(tmp_path: Path) -> None:
    with collecting() as collector:
        send = [{"use": "otel", "endpoint": collector.url, "signals": ["metrics"]}]
        loop = go_round(write(tmp_path, make_traces(), send), 10)
    assert collector.paths == ["/v1/metrics"]
    found = list_metrics(collector)
    shown = [one for one in loop.published if any(value is not None for _, value in one.samples)]
    assert {*found} == {one.name.replace("_", ".", 1) for one in shown}
    assert found["rageval.traces_seen"].sum.is_monotonic
    assert [point.as_double for point in found["rageval.traces_seen"].sum.data_points] == [5]
    judged = [point.as_double for point in found["rageval.traces"].gauge.data_points
              if attributes(point) == {"monitor": "bot", "metric": "error_rate", "state": "judged"}]  # fmt: skip
    assert judged == [5]
    assert "rageval.values_sent" not in found, "only values that are sent are counted"


def test_a_real_collector_passes_values_and_totals_on(tmp_path: Path) -> None:
    with collecting() as collector, rotel_forwarding(collector.url) as url:
        send = [{"use": "otel", "endpoint": url, "signals": ["logs", "metrics"]}]
        assert count(go_round(write(tmp_path, make_traces(), send), 10)).sent == 9
        wait_for(lambda: len(collector.records()) == 9 and "/v1/metrics" in collector.paths, "it passes all on")
    assert list_metrics(collector)["rageval.traces_seen"].sum.is_monotonic
    assert {one.event_name for one in collector.records()} == {"gen_ai.evaluation.result"}


def test_datadogs_agent_gets_the_numbers(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(5)
        address = f"127.0.0.1:{agent.getsockname()[1]}"
        go_round(write(tmp_path, make_traces(), [{"use": "dogstatsd", "address": address}]), 10)
        agent.setblocking(False)
        lines: list[str] = []
        with suppress(BlockingIOError):
            while True:
                lines += agent.recv(65536).decode().split("\n")
    assert "rageval.traces:5|g|#monitor:bot,metric:error_rate,state:judged" in lines
    assert "rageval.traces_seen:5|g|#monitor:bot" in lines


def test_a_tool_that_takes_nothing_is_an_alert_until_it_does(phoenix: PhoenixServer, tmp_path: Path) -> None:
    path, reply = write(tmp_path, make_traces(), ["phoenix"]), phoenix.reply
    phoenix.reply = lambda _: Answer(b"no", 401)
    states: list[str | None] = []

    def go(after: float) -> None:
        with open_monitor(load(path)) as loop:
            book = AlertBook(loop.ledger.connection, "bot")
            now = loop.clock() + after
            loop.clock = lambda: now
            loop.run_once()
            states.append({row.alert: row.state for row in book.read()}.get(f"coverage:send:phoenix {phoenix.url}"))

    for number in range(6):
        go(60 * number)
    phoenix.reply = reply
    for number in range(6, 8):
        go(60 * number)
    assert states == [None] * 5 + ["firing", "firing", "resolved"]


def test_the_end_of_a_run_says_what_was_sent(phoenix: PhoenixServer, tmp_path: Path) -> None:
    path = write(tmp_path, make_traces(), ["phoenix"])
    go_round(path, 10)
    shown = CliRunner().invoke(cli, ["monitor", "run", str(path), "--once"], catch_exceptions=False).output
    assert f"phoenix {phoenix.url}: 9 values sent, 0 waiting\n" in shown


@pytest.mark.parametrize(
    ("send", "told"),
    [
        ("terminal", "the report 'terminal' keeps no traces"),
        ("langfus", "did you mean 'langfuse'?"),
        ({"use": "phoenix", "dataset": "golden"}, "'dataset' has no meaning here"),
        ({"use": "weave", "project": "team/bot"}, "the report 'weave' keeps no traces"),
        ({"use": "dogstatsd", "address": "localhost"}, "address"),
        ({"use": "mlflow", "write": "runs"}, "'write' has no meaning here"),
        ({"use": "otel", "url": "http://x"}, "url"),
    ],
)
def test_what_cannot_take_values_is_an_error_in_the_spec(tmp_path: Path, send: Any, told: str) -> None:
    with pytest.raises(SpecError) as raised:
        load(write(tmp_path, make_traces(), [send]))
    assert told in str(raised.value)
    assert "spec.yaml" in str(raised.value)
