"""Evaluations made by hand, for tests of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import polars as pl

from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, Provenance, TieRange
from rageval_spec.data.outcomes import GateOutcome, Interval, Note, Verdict

HOSTILE = "a|b\n<script>=cmd() `x` \x1b[31m @everyone \U0001f600 \x00"

_VALUES_SCHEMA = {
    "dataset": pl.String,
    "system": pl.String,
    "metric": pl.String,
    "query_id": pl.String,
    "value": pl.Float64,
    "status": pl.String,
    "reason": pl.String,
    "tie_low": pl.Float64,
    "tie_high": pl.Float64,
}

_MEANS: Mapping[str, Sequence[float]] = {
    "ndcg@10": (0.41234, 0.48765, 0.51239),
    "recall@100": (0.78125, 0.86250, 0.90625),
    "map": (0.33333, 0.39871, 0.42007),
    "gm_map": (0.10234, 0.00001234, 0.21007),
    "num_ret": (4000.0, 4000.0, 3987.0),
}
_SYSTEMS = ("bm25", "dense", "hybrid")


def make_evaluation(
    datasets: Sequence[str] = ("golden",),
    systems: Sequence[str] = _SYSTEMS,
    metrics: Mapping[str, Sequence[float]] = _MEANS,
) -> Evaluation:
    """A retrieval evaluation with every kind of cell: significant or not, tied, partly scored, a count, gated."""
    cells = [
        _aggregate(dataset, system, metric, means[index % len(means)], tied=index == 0)
        for dataset in datasets
        for metric, means in metrics.items()
        for index, system in enumerate(systems)
    ]
    comparisons = [
        _comparison(dataset, metric, system, systems[0], means[index % len(means)] - means[0])
        for dataset in datasets
        for metric, means in metrics.items()
        for index, system in enumerate(systems)
        if index and metric != "num_ret"
    ]
    return Evaluation(
        name="support-bot",
        datasets=tuple(datasets),
        systems=tuple(systems),
        metrics=tuple(metrics),
        aggregates=tuple(cells),
        comparisons=tuple(comparisons),
        gates=tuple(_gates(datasets[0], systems, next(iter(metrics)))),
        notes=tuple(_notes(datasets[0], systems)),
        values=make_values(datasets, systems, tuple(metrics)),
        provenance=Provenance(
            spec_digest="0123456789abcdef" * 4,
            settings={
                "ranking": {"ties": "trec_eval", "missing": "zero"},
                "statistics": {"seed": 7, "resamples": 10000},
            },
            versions={"rageval-spec": "1.2.3"},
            models={"minilm": {"use": "onnx", "model": "minilm", "sha256": "53aa51"}},
        ),
    )


def make_hostile_evaluation() -> Evaluation:
    """An evaluation whose names try to break out of a report's syntax."""
    return replace(
        make_evaluation((HOSTILE,), (HOSTILE, "=cmd()"), {HOSTILE: (0.25, 0.75), "-x": (0.5, 0.5)}), name=HOSTILE
    )


def make_values(datasets: Sequence[str], systems: Sequence[str], metrics: Sequence[str]) -> pl.DataFrame:
    """Three queries for each cell, the last of which could not be scored."""
    rows = [
        (dataset, system, metric, query, value, status, reason, value, value)
        for dataset in datasets
        for system in systems
        for metric in metrics
        for query, value, status, reason in (
            ("q1", 1 / 3, "scored", None),
            ("=q2", 0.0, "scored", None),
            ("q3", None, "unscorable", 'no relevant document, "so to say"'),
        )
    ]
    return pl.DataFrame(rows, schema=_VALUES_SCHEMA, orient="row")


def _aggregate(dataset: str, system: str, metric: str, mean: float, tied: bool) -> Aggregate:
    if metric == "num_ret":
        return Aggregate(dataset, system, metric, mean, None, 40, 40, statistic="sum")
    statistic = "geometric mean" if metric == "gm_map" else "mean"
    interval = Interval(mean * 0.9, min(1.0, mean * 1.1))
    scored = 37 if metric == "recall@100" and not tied else 40
    ties = TieRange(mean - 0.0013, mean + 0.0027, 3) if tied else TieRange(mean, mean, 0)
    return Aggregate(dataset, system, metric, mean, interval, scored, 40, statistic, ties)


def _comparison(dataset: str, metric: str, system: str, baseline: str, difference: float) -> Comparison:
    p_value = 0.0123 if abs(difference) > 0.09 else 0.2345
    interval = None if metric == "gm_map" else Interval(difference - 0.0321, difference + 0.0321)
    adjusted = min(1.0, 2 * p_value)
    return Comparison(dataset, metric, system, baseline, difference, interval, p_value, adjusted, 40, 23, 12)


def _gates(dataset: str, systems: Sequence[str], metric: str) -> list[GateOutcome]:
    def gate(index: int, system: str, outcome: Verdict, bound: str, observed: float, reason: str) -> GateOutcome:
        return GateOutcome(index, dataset, system, metric, outcome, bound, observed, f"{metric} of {system} {reason}")

    return [
        gate(0, systems[-1], "pass", "≥ 0.45", 0.51239, "is 0.512, at least the minimum 0.450"),
        gate(1, systems[1 % len(systems)], "warn", "≥ 0.45, target 0.5", 0.48765, "is 0.488, below the target 0.500"),
        gate(2, systems[0], "fail", "≥ 0.45", 0.41234, "is 0.412, below the minimum 0.450"),
    ]


def _notes(dataset: str, systems: Sequence[str]) -> list[Note]:
    return [
        Note("missing_queries", "2 of 40 queries are not in the run and score 0", dataset, systems[0], 2),
        Note("unjudged_queries", "12 queries of the runs are not in the qrels and are left out", dataset, None, 12),
    ]


def alter(evaluation: Evaluation, **changes: Any) -> Evaluation:
    """The evaluation with other fields, those of its provenance among them."""
    kept = {field.name for field in fields(Provenance)} & changes.keys()
    provenance = replace(evaluation.provenance, **{name: changes.pop(name) for name in kept})
    return replace(evaluation, provenance=provenance, **changes)
