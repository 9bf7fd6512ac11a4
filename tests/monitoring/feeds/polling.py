"""Polls feeds as the loop of a monitor does, and shows what the ledger has of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rageval_spec.data.traces import Trace
from rageval_spec.monitoring.feeds.contract import Feed
from rageval_spec.monitoring.ledger import ClaimedTrace, Ledger, SampledTrace
from rageval_spec.monitoring.traces.trace_judging import make_sample
from tests.monitoring.seen_traces import BEGAN


class Clock:
    """A clock that stands still until a test moves it."""

    now = BEGAN

    def __call__(self) -> float:
        return self.now


def poll(feed: Feed, ledger: Ledger, now: float, *, killed_after: int | None = None) -> int:
    """What the loop does; how many rows could not be read. A kill comes before so many batches are written down."""
    unread = 0
    for number, batch in enumerate(feed.poll(ledger.read_cursor(feed.name), now)):
        if number == killed_after:
            break
        ledger.see(batch.traces, feed.name, batch.cursor)
        unread += batch.unread
    return unread


def judge_due(ledger: Ledger, now: float) -> dict[str, str | None]:
    """The answers of the traces that are due now, by id; they are judged."""
    claimed = ledger.claim(now, 10_000, 300)
    ledger.settle([SampledTrace(one, 1.0) for one in claimed], [], now)
    return {one.trace_id: one.trace.answer for one in claimed}


def list_questions(ledger: Ledger) -> dict[str, str]:
    """The question of each trace that the ledger has, by id."""
    rows = ledger.connection.execute("SELECT trace_id FROM rageval_traces ORDER BY trace_id")
    found = ledger.read_traces([trace_id for (trace_id,) in rows])
    return {trace_id: one.trace.question for trace_id, one in found.items()}


def read_trace(ledger: Ledger, trace_id: str) -> Trace:
    return ledger.read_traces([trace_id])[trace_id].trace


def sample_of(trace: Trace) -> Any:
    return make_sample(ClaimedTrace(trace.id, 0.0, None, trace))


def write_rows(path: Path, *names: str, mode: str = "a") -> None:
    with path.open(mode) as file:
        for name in names:
            file.write(json.dumps({"id": name, "question": f"What is {name}?", "answer": f"It is {name}."}) + "\n")
