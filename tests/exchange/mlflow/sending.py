"""Answers of the small MLflow's traces, and exports to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rageval_spec.data.evaluation import Aggregate, Evaluation
from rageval_spec.data.outcomes import Interval
from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.exchange.mlflow.target import MlflowTarget, MlflowTargetNode
from rageval_spec.exchange.shared.delivery import Receipt, send_parcels
from rageval_spec.plugin import Context
from tests.exchange.traced_evaluation import evaluate

AGGREGATES = (
    Aggregate("golden", "v1", "faithfulness", 0.5, Interval(0.25, 0.75, 0.95, "bootstrap"), 4, 5),
    Aggregate("golden", "v1", "ndcg@10", 0.25, None, 5, 5),
    Aggregate("golden", "v1", "never", None, None, 0, 5),
)


def make_traces(count: int = 5) -> list[Trace]:
    """Answers of the server's traces; the last has failed."""
    return [
        Trace(
            TraceLink("mlflow", f"tr-{number:032x}", None, "support"),
            f"Question {number}?",
            answer=None if number == count else f"Answer {number}.",
        )
        for number in range(1, count + 1)
    ]


def judge(count: int = 5, shift: float = 0.0, **changes: Any) -> Evaluation:
    """An evaluation of those answers, with aggregates."""
    return evaluate(make_traces(count), shift, **({"aggregates": AGGREGATES} | changes))


def send(
    evaluation: Evaluation,
    folder: Path | None = None,
    *,
    dry_run: bool = False,
    output: Path | None = None,
    **settings: Any,
) -> Receipt:
    target = MlflowTarget(MlflowTargetNode(**settings), Context("mlflow", Path(), output=output))
    shown: list[str] = []
    try:
        receipt = send_parcels(target, evaluation, folder, tool="mlflow", dry_run=dry_run, show=shown.append)
    finally:
        target.close()
    return replace(receipt, remarks=(*receipt.remarks, *shown))
