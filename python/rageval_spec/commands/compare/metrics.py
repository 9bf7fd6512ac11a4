"""Compares the numbers of two evaluations, metric by metric, with a paired test on the questions of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rageval_spec.commands.compare.corrected import correct, find_unlike
from rageval_spec.reports.shared.changes import match_systems
from rageval_spec.spec.nodes import StatisticsNode
from rageval_spec.statistics.aggregate import compare_evaluations, is_percentile
from rageval_spec.statistics.families import adjust_table

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation
    from rageval_spec.history.comparability import Comparability


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric of one system in both evaluations.

    Attributes:
        before, after: the aggregates over all questions of each evaluation.
        difference: of the questions that have a value in both, if there is a test; else of the aggregates. None
            without a number on both sides.
        comparison: the paired test; None for counts, for percentiles that no gate compares, for a metric without a good
            direction, and for fewer than two questions with a value in both.
        is_worse: whether the difference is for the worse; None without one, and if the two are not comparable.
    """

    dataset: str
    system: str
    metric: str
    before: Aggregate
    after: Aggregate
    difference: float | None
    comparison: Comparison | None
    is_worse: bool | None


@dataclass(frozen=True, slots=True)
class _Metric:
    """What the test must know of a metric."""

    statistic: str
    higher_is_better: bool


def compare_metrics(evaluation: Evaluation, earlier: Evaluation, known: Comparability) -> list[MetricChange]:
    """Every metric of every system that both evaluations have, in the order of the later one.

    The intervals, the tests and the families of Holm's correction are those of a spec's `baseline`: a comparison that a
    gate of the later evaluation made has the gate's p-value. Queries whose question changed are not compared.

    Args:
        evaluation: the later evaluation.
        earlier: the earlier one.
        known: what differs between the two besides the systems.
    """
    systems = match_systems(evaluation.systems, earlier.systems)
    statistics = {one.metric: one.statistic for one in evaluation.aggregates}
    metrics = {
        metric: _Metric(statistics.get(metric, "mean"), metric not in evaluation.lower_is_better)
        for metric in evaluation.metrics
    }
    settings = StatisticsNode.model_validate(evaluation.settings.get("statistics") or {})
    values = _rename(known.keep_same(earlier.values), systems)
    asked = {one.metric for one in evaluation.baselines}
    unlike = find_unlike(evaluation, earlier)
    compared = {
        name: metric
        for name, metric in metrics.items()
        if name not in unlike and (name in asked or not is_percentile(metric))
    }
    every = (evaluation.values, values, known.baseline, compared, settings)
    designs = evaluation.question_designs
    judged = compare_evaluations(*every, has_percentiles=True, designs=designs)
    found = correct(judged, evaluation, values, settings.confidence).comparisons
    gated = _list_gated(evaluation, found)
    intervals = {one.cell: one.interval for one in gated}
    adjusted = [replace(one, interval=intervals.get(one.cell, one.interval)) for one in adjust_table(found, gated)]
    tests = {one.cell: one for one in known.mark(tuple(adjusted))}
    changes = []
    for after in evaluation.aggregates:
        before = earlier.aggregate(after.dataset, systems.get(after.system, after.system), after.metric)
        if before is not None:
            is_alike = after.metric not in unlike
            changes.append(_describe(before, after, tests.get(after.cell), evaluation, is_alike=is_alike))
    return changes


def _list_gated(evaluation: Evaluation, found: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons that gates of the evaluation have made already, whatever name they know the baseline by.

    They belong to the family of the gates, and have its p-value. Equal differences and p-values show that they are the
    same: both are computed from the values alone. The gates know more of the interval: where not all questions were
    asked, it is one that holds nevertheless.
    """
    numbers = [(one.cell, one.difference, one.p_value, one.queries) for one in found]
    return [
        replace(one, p_adjusted=gated.p_adjusted, interval=gated.interval)
        for one, own in zip(found, numbers, strict=True)
        for gated in evaluation.baselines
        if (gated.cell, gated.difference, gated.p_value, gated.queries) == own
    ]


def _rename(values: pl.DataFrame, systems: dict[str, str]) -> pl.DataFrame:
    """The earlier values, with each system under the name of the later one; others are left out."""
    import polars as pl

    names = {before: now for now, before in systems.items()}
    known = values.filter(pl.col("system").is_in(list(names)))
    return known.with_columns(pl.col("system").replace(names))


def _describe(
    before: Aggregate, after: Aggregate, test: Comparison | None, evaluation: Evaluation, *, is_alike: bool
) -> MetricChange:
    difference = test.difference if test is not None else None
    if is_alike and test is None and before.mean is not None and after.mean is not None:
        difference = after.mean - before.mean
    is_directed = bool(difference) and (test is None or test.is_comparable)
    worse = (
        None
        if not is_directed or difference is None
        else (difference > 0) == (after.metric in evaluation.lower_is_better)
    )
    return MetricChange(after.dataset, after.system, after.metric, before, after, difference, test, worse)
