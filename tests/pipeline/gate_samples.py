"""Aggregates and comparisons made by hand, and the outcome of one gate on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rageval_spec.data.evaluation import Aggregate, Comparison
from rageval_spec.data.outcomes import GateOutcome, Interval
from rageval_spec.pipeline.gating.gate_bounds import Directed
from rageval_spec.pipeline.gating.gate_outcomes import GateChecker
from rageval_spec.spec.blocks.gates import GateNode


@dataclass(frozen=True)
class Direction:
    higher_is_better: bool | None = True
    is_partial: bool = False
    is_percent: bool = False


@dataclass(frozen=True)
class Bounded(Direction):
    bounds: tuple[float, float | None] = (0.0, 1.0)


METRICS = {
    "correct": Bounded(),
    "robustness": Direction(is_partial=True),
    "ndcg@10": Direction(True),
    "latency": Direction(False),
    "cost": Direction(False),
    "num_ret": Direction(None),
    "latency@p95": Direction(False),
}


def cell(mean: float | None, **changes: Any) -> Aggregate:
    fields: dict[str, Any] = {
        "dataset": "golden",
        "system": "bm25",
        "metric": "ndcg@10",
        "interval": Interval(0.37, 0.45),
        "scored": 40,
        "total": 40,
    }
    return Aggregate(mean=mean, **fields | changes)


def comparison(difference: float, **changes: Any) -> Comparison:
    fields: dict[str, Any] = {
        "dataset": "golden",
        "metric": "ndcg@10",
        "system": "bm25",
        "baseline": "main",
        "interval": Interval(difference - 0.01, difference + 0.01),
        "p_value": 0.002,
        "p_adjusted": 0.004,
        "queries": 40,
        "wins": 10,
        "losses": 20,
    }
    return Comparison(difference=difference, **fields | changes)


def check_gates(
    gates: Sequence[GateNode],
    aggregates: Sequence[Aggregate],
    metrics: Mapping[str, Directed],
    comparisons: Mapping[str, Sequence[Comparison]] | None = None,
    **known: Any,
) -> tuple[GateOutcome, ...]:
    return GateChecker(aggregates, metrics, comparisons or {}, **known).check_all(gates)


def check(gate: dict[str, Any], *cells: Aggregate, against: Comparison | None = None) -> GateOutcome:
    node = GateNode.model_validate({"metric": "ndcg@10"} | gate)
    comparisons = {} if node.baseline is None or against is None else {node.baseline: [against]}
    [outcome] = check_gates([node], cells or [cell(0.412)], METRICS, comparisons)
    return outcome


CERTAIN = {"decide": "certain"}
