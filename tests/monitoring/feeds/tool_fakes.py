"""Tools that record traces, each as a fake that speaks its protocol, with one way to write traces into them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rageval_spec import registry
from rageval_spec.monitoring.assembly import open_feed
from rageval_spec.monitoring.feeds.tools import ToolFeed
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.plugin import Context
from tests.endpoints.api_server import Asked
from tests.exchange.langfuse import server as langfuse
from tests.exchange.mlflow import server as mlflow
from tests.exchange.phoenix import server as phoenix
from tests.models.endpoint import Answer

Fault = Callable[[Asked], Answer | None]


@dataclass
class Tool:
    """A fake of a tool, with the block that names it.

    `write` writes a trace: its number, when it began, how long it took (None while its root has not ended), the answer.
    """

    word: str
    block: dict[str, Any]
    write: Callable[[int, float, float | None, str], None]
    id_of: Callable[[int], str]
    fail: Callable[[Fault], None]
    server: Any

    def open(self, folder: Path, ledger: Ledger, settle: float, **keys: Any) -> ToolFeed:
        plugin = registry.load("systems", self.word)
        node = plugin.node_type(use=self.word, **self.block, **keys)
        feed = open_feed("spec.yaml", "live", plugin(node, Context("live", folder)), settle, ledger)
        assert isinstance(feed, ToolFeed)
        return feed


def moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fake_phoenix(server: phoenix.PhoenixServer) -> Tool:
    """Phoenix has a span only once it has ended, so a trace whose root has not is its other spans."""
    server.spans = []

    def write(number: int, began: float, seconds: float | None, answer: str) -> None:
        ends = {"input.value": f"Question {number}?", "output.value": answer}
        known = [one for one in server.spans if one["context"]["trace_id"] != f"{number:032x}"]
        times = {"start_time": _offset(began), "end_time": _offset(began + (seconds or 0.5))}
        spans = [phoenix.make_span(number, "LLM", 2, attributes={"input.value": "P", "output.value": "half"}, **times)]
        if seconds is not None:
            spans.insert(0, phoenix.make_span(number, "CHAIN", 1, attributes=ends, **times))
        server.spans = known + spans

    def list_traces(parameters: Any) -> list[dict[str, Any]]:
        since = parameters.get("start_time", [""])[0].replace("Z", "+00:00")
        until = parameters.get("end_time", ["9"])[0].replace("Z", "+00:00")
        first = {one["context"]["trace_id"]: one["start_time"] for one in server.spans}
        kept = sorted((start, trace) for trace, start in first.items() if since <= start < until)
        return [{"trace_id": trace} for _, trace in reversed(kept)]

    server._list_traces = list_traces  # type: ignore[method-assign]
    return Tool("phoenix", {"project": "support"}, write, "{:032x}".format, _failing(server), server)


def _offset(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds")


def fake_mlflow(server: mlflow.MlflowServer) -> Tool:
    server.traces = []

    def write(number: int, began: float, seconds: float | None, answer: str) -> None:
        state = {"state": "IN_PROGRESS"} if seconds is None else {"execution_duration": f"{seconds}s"}
        trace = mlflow.make_trace(number, request_time=moment(began), **state)
        ends = {"question": f"Question {number}?"}, {"answer": "half" if seconds is None else answer}
        trace["spans"][0] = mlflow.make_span(number, "CHAIN", 1, *ends)
        start = int(began * 1000) * 10**6
        for span in trace["spans"]:
            span |= {"start_time_unix_nano": start, "end_time_unix_nano": start + int((seconds or 0.5) * 1e9)}
        if seconds is None:
            trace["spans"][0]["end_time_unix_nano"] = 0
        known = [one for one in server.traces if one["trace_info"]["trace_id"] != f"tr-{number:032x}"]
        server.traces = [*known, trace]

    search = server._give

    def give(key: str, items: list[dict[str, Any]], content: dict[str, Any]) -> Answer:
        """As the fake does, but only what the filter asks for: `timestamp_ms >= N AND timestamp_ms < N`."""
        for condition in filter(None, content.get("filter", "").split(" AND ")):
            _, sign, bound = condition.split()
            times = [datetime.fromisoformat(one["request_time"]).timestamp() * 1000 for one in items]
            items = [one for one, time in zip(items, times, strict=True) if (time >= float(bound)) == (sign == ">=")]
        return search(key, items, content)

    server._give = give  # type: ignore[method-assign]
    return Tool("mlflow", {"experiment": "support"}, write, "tr-{:032x}".format, _failing(server), server)


def fake_langfuse(server: langfuse.LangfuseServer) -> Tool:
    def write(number: int, began: float, seconds: float | None, answer: str) -> None:
        rows = langfuse.rag_trace(number, f"Question {number}?", answer)
        for row in rows:
            row |= {"startTime": moment(began), "endTime": moment(began + (seconds or 0.5))}
        if seconds is None:
            rows[0] |= {"endTime": None, "output": json.dumps({"answer": "half"})}
        known = [row for row in server.observations if row["traceId"] != f"t{number}"]
        server.observations = known + rows

    def fail(fault: Fault) -> None:
        server.interrupt = fault

    return Tool("langfuse", {"url": server.url}, write, "t{}".format, fail, server)


def _failing(server: Any) -> Callable[[Fault], None]:
    reply = server.reply

    def fail(fault: Fault) -> None:
        server.reply = lambda asked: fault(asked) or reply(asked)

    return fail
