"""Answers of the small Phoenix's traces, and exports to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.traces import Document, Trace, TraceLink
from rageval_spec.exchange.phoenix.target import PhoenixTarget, PhoenixTargetNode
from rageval_spec.exchange.shared.delivery import Receipt, send_parcels
from rageval_spec.plugin import Context


def make_traces(count: int = 5) -> list[Trace]:
    """Answers of the server's traces; the last has failed."""
    documents = (Document("Text 0.", "d0"), Document("Text 1.", "d1"))
    return [
        Trace(
            TraceLink("phoenix", f"{number:032x}", f"{number:014x}01", "support", {"retriever": f"{number:014x}02"}),
            f"Question {number}?",
            answer=None if number == count else f"Answer {number}.",
            documents=documents,
        )
        for number in range(1, count + 1)
    ]


def send(evaluation: Evaluation, folder: Path | None = None, *, dry_run: bool = False, **settings: Any) -> Receipt:
    target = PhoenixTarget(PhoenixTargetNode(**settings), Context("phoenix", Path()))
    shown: list[str] = []
    try:
        receipt = send_parcels(target, evaluation, folder, tool="phoenix", dry_run=dry_run, show=shown.append)
    finally:
        target.close()
    return replace(receipt, remarks=(*receipt.remarks, *shown))
