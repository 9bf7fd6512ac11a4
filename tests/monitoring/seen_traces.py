"""Traces as feeds give them, for the tests of monitoring."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rageval_spec.data.traces import Document, Feedback, Trace, TraceLink
from rageval_spec.history.database import open_history
from rageval_spec.monitoring.ledger import Judgement, Ledger, SampledTrace, SeenTrace

BEGAN = 1_764_000_000.0


def make_trace(name: str, answer: str | None = "Ada wrote it.", **others: Any) -> Trace:
    documents = (Document("Ada Lovelace wrote the first program."),)
    error = None if answer is not None else "the system failed"
    return Trace(
        TraceLink("file", name), "Who wrote it?", name, answer=answer, documents=documents, error=error, **others
    )


def seen(name: str, started: float = BEGAN, due: float = BEGAN + 60, **others: Any) -> SeenTrace:
    return SeenTrace(make_trace(name, **others), started, due)


def disliked(name: str) -> Trace:
    return make_trace(name, feedback=(Feedback("thumbs", 0.0, source="user"),))


def open_ledger(folder: Path, owner: str = "a") -> Ledger:
    return Ledger(open_history(folder / "history.db").connection, "bot", owner)


def judge_all(ledger: Ledger, series: int, now: float, value: float = 1.0) -> list[str]:
    """Claim what is due and settle it with one value; the ids of the traces."""
    claimed = ledger.claim(now, 100, 300)
    sampled = [SampledTrace(one, 1.0) for one in claimed]
    ledger.settle(sampled, [Judgement(series, one.trace_id, "judged", value, 1.0) for one in claimed], now)
    return [one.trace_id for one in claimed]


def fill(
    ledger: Ledger,
    series: int,
    values: Sequence[float],
    *,
    began: float = BEGAN,
    step: float = 60.0,
    now: float | None = None,
    weight: float = 1.0,
    prefix: str = "t",
    **others: Any,
) -> float:
    """Have traces seen and judged with these values, one each `step` seconds; returns when all of it was done."""
    traces = [seen(f"{prefix}{at}", began + at * step, began, **others) for at in range(len(values))]
    done = began + len(values) * step if now is None else now
    ledger.see(traces, "live", None)
    by_name = {f"{prefix}{at}": value for at, value in enumerate(values)}
    while claimed := ledger.claim(done, 1000, 300):
        sampled = [SampledTrace(one, weight) for one in claimed]
        made = [Judgement(series, one.trace_id, "judged", by_name[one.trace_id], weight) for one in claimed]
        ledger.settle(sampled, made, done)
    return done
