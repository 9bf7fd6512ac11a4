"""Reads the rows that traces are written as, so that tests can say that a row loses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from rageval_spec.data.traces import Feedback, Step, Trace, TraceLink, read_document

_PLAIN = (
    "error", "seconds", "input_tokens", "output_tokens", "cost", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "first_chunk_seconds", "finish_reason", "session", "user", "model", "started", "version",
    "answer",
)  # fmt: skip
assert {*_PLAIN} < {one.name for one in fields(Trace)}


def read_trace(row: Mapping[str, Any]) -> Trace:
    """The trace that `Trace.to_row` wrote."""
    link, reference = TraceLink.from_dict(row["trace"]), row.get("reference")
    assert link is not None
    documents = row.get("documents", row.get("contexts"))
    found: dict[str, Any] = {name: row.get(name) for name in _PLAIN}
    found |= {name: None if name not in row else tuple(row[name]) for name in ("reference_contexts", "relevant")}
    trace = Trace(
        link,
        row["question"],
        **found,
        documents=None if documents is None else tuple(map(read_document, documents)),
        references=(reference,) if isinstance(reference, str) else tuple(reference or ()),
        messages=tuple(row.get("messages", ())),
        steps=tuple(map(Step.from_row, row.get("steps", ()))),
        feedback=tuple(Feedback(**one) for one in row.get("feedback", ())),
        metadata=row.get("metadata", {}),
    )
    return trace if trace.id == row.get("id") else replace(trace, query_id=str(row["id"]))
