"""Compares metrics that people's labels correct: by the labels that both evaluations have of their own answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rageval_spec.data.correction import LABEL, has_unnamed
from rageval_spec.history.recorded_spec import read_recorded_spec
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.statistics.aggregate import Comparisons


def find_unlike(evaluation: Evaluation, earlier: Evaluation) -> dict[str, str]:
    """The metrics whose numbers are not of one kind in both evaluations, and why, by name.

    A judge's mean and a corrected one are not compared. Nor are corrected ones by labels that do not name the answer's
    digest: the same label may count for the answers of both.
    """
    now, before = _list_corrected(evaluation), _list_corrected(earlier)
    unlike = {}
    for metric in evaluation.metrics:
        if metric in earlier.metrics and (metric in now) != (metric in before):
            unlike[metric] = f"people's labels correct it only {'after' if metric in now else 'before'}"
        elif metric in now and (has_unnamed(evaluation.notes, metric) or has_unnamed(earlier.notes, metric)):
            unlike[metric] = "its labels do not name the answers' digests"
    return unlike


def describe_unlike(evaluation: Evaluation, earlier: Evaluation) -> Iterator[str]:
    """`not compared: faithfulness, because people's labels correct it only after`."""
    reasons: dict[str, list[str]] = {}
    for metric, reason in find_unlike(evaluation, earlier).items():
        reasons.setdefault(reason, []).append(metric)
    yield from (f"not compared: {list_names(names)}, because {reason}" for reason, names in reasons.items())


def correct(compared: Comparisons, evaluation: Evaluation, earlier: pl.DataFrame, confidence: float) -> Comparisons:
    """The comparisons, those of metrics with labels corrected by them; `earlier` has the earlier values."""
    from rageval_spec.statistics.corrections import Rule, correct_comparisons

    recorded = read_recorded_spec(evaluation)
    rules = {}
    for one in evaluation.aggregates:
        metric = None if recorded is None else recorded.metrics.get(one.metric)
        if one.correction is not None and metric is not None:
            low, high = metric.bounds
            bounds = (low, low + 1 if high is None else high)
            rules[one.metric] = Rule(one.correction.source, bounds, one.correction.method)
    if not rules or LABEL not in earlier.columns:
        return compared
    designs = evaluation.question_designs
    return correct_comparisons(compared, evaluation.values, rules, confidence, earlier, designs)


def _list_corrected(evaluation: Evaluation) -> set[str]:
    return {one.metric for one in evaluation.aggregates if one.correction is not None}
