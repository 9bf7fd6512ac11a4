"""The legend below a report's table, which explains the marks in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rageval_spec.reports.shared.ties import describe_ties
from rageval_spec.reports.shared.weighted import describe_design
from rageval_spec.statistics import sequences
from rageval_spec.statistics.percentiles import METHOD, read_percentile
from rageval_spec.wording import ADJUSTED, format_percent, list_choices

if TYPE_CHECKING:
    from rageval_spec.data.bands import Scale
    from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation
    from rageval_spec.data.stopping import Asked

SIGNIFICANCE = 0.05
"""Reports mark comparisons whose adjusted p-value is below this."""
HIGHER, LOWER = "▲", "▼"
NOT_COMPARABLE = "≠"


def significance_mark(comparison: Comparison | None) -> str:
    """▲ or ▼ if the system's values are significantly higher or lower than the baseline's, else "".

    ≠ if the two are not comparable, so that a difference says nothing about the system.
    """
    if comparison is not None and not comparison.is_comparable:
        return NOT_COMPARABLE
    if comparison is None or comparison.p_adjusted >= SIGNIFICANCE:
        return ""
    return HIGHER if comparison.difference > 0 else LOWER


def is_improvement(comparison: Comparison, evaluation: Evaluation) -> bool | None:
    """Whether the system is better than the baseline; None if they are equal or not comparable.

    Fewer seconds are better.
    """
    if comparison.difference == 0 or not comparison.is_comparable:
        return None
    return (comparison.difference < 0) == (comparison.metric in evaluation.lower_is_better)


def name_band(evaluation: Evaluation, aggregate: Aggregate) -> str:
    """The word for a mean on the scale of its metric; "" without a scale or a mean."""
    scale = evaluation.bands.get(aggregate.metric)
    return "" if scale is None or aggregate.mean is None else scale.find(aggregate.mean).word


def describe_bands(evaluation: Evaluation) -> list[tuple[str, str]]:
    """The scales of the metrics, as pairs of the metric and its words with their bounds."""
    return [(f"{metric}:", _describe_scale(scale)) for metric, scale in evaluation.bands.items()]


def _describe_scale(scale: Scale) -> str:
    """`published scale: excellent ≥ 0.95, good ≥ 0.85, else poor`."""
    sign = "≤" if scale.lower_is_better else "≥"
    words = [
        f"{one.word} {sign} {one.bound:g}" if one.bound is not None else f"else {one.word}" for one in scale.levels
    ]
    return ("" if scale.name == "custom" else f"{scale.name} scale: ") + ", ".join(words)


def describe_legend(evaluation: Evaluation, dataset: str) -> list[tuple[str, str]]:
    """The legend of a dataset's table, as pairs of a mark and its meaning."""
    means = [a for a in evaluation.aggregates if a.dataset == dataset and read_percentile(a.statistic) is None]
    comparisons = [c for c in evaluation.comparisons if c.dataset == dataset]
    gated = [c for c in evaluation.baselines if c.dataset == dataset and c.slice is None]
    lines = []
    if any(one.interval is not None for one in means):
        asked = None if evaluation.stopping is None else evaluation.stopping.find(dataset)
        lines.append(("[ ]", _describe_intervals(means, asked)))
    lines += describe_design(evaluation, dataset)
    if comparisons or gated:
        lines.append((f"{HIGHER} {LOWER}", _describe_marks(comparisons, gated)))
    if unlike := list(dict.fromkeys(one.baseline for one in gated if not one.is_comparable)):
        lines.append((NOT_COMPARABLE, f"not comparable with {list_choices(unlike)}; a warning says what changed"))
    if evaluation.units:
        lines.append(("unit", _describe_units(evaluation)))
    lines += _describe_percentiles(evaluation, dataset)
    return lines + [("ties", sentence) for sentence in describe_ties(evaluation, dataset)]


def _describe_intervals(means: Sequence[Aggregate], asked: Asked | None) -> str:
    """`95% bootstrap interval`; of several kinds, the second has its metrics: `...; for latency a 95% ...`."""
    metrics: dict[str, dict[str, None]] = {}
    for one in means:
        if one.interval is not None:
            kind = f"{format_percent(one.interval.confidence)} bootstrap interval"
            if one.interval.method == sequences.METHOD:
                kind = f"{format_percent(one.interval.confidence)} confidence sequence"
                if asked is not None:
                    kind += f" of the mean over all {asked.total:,} questions, {asked.asked:,} of them asked"
            if one.design is not None and one.design.clusters is not None:
                kind = f"{format_percent(one.interval.confidence)} bootstrap interval of whole clusters"
            if one.correction is not None:
                kind = f"{format_percent(one.interval.confidence)} interval of what people would say"
            metrics.setdefault(kind, {})[one.metric] = None
    first, *others = metrics
    return "; ".join([first, *(f"for {', '.join(metrics[kind])} a {kind}" for kind in others)])


def _describe_units(evaluation: Evaluation) -> str:
    """`latency, latency@p95 in seconds; cost in US dollars`."""
    metrics: dict[str, list[str]] = {}
    for metric, unit in evaluation.units.items():
        metrics.setdefault(unit, []).append(metric)
    return "; ".join(f"{', '.join(names)} in {unit}" for unit, names in metrics.items())


def _describe_percentiles(evaluation: Evaluation, dataset: str) -> list[tuple[str, str]]:
    """A line for each percentile among the aggregates, with its metrics and the kind of its interval."""
    of: dict[int, list[Aggregate]] = {}
    for aggregate in evaluation.aggregates:
        percent = read_percentile(aggregate.statistic)
        if percent is not None and aggregate.dataset == dataset:
            of.setdefault(percent, []).append(aggregate)
    return [(f"p{percent}", _describe_percentile(percent, of[percent])) for percent in sorted(of)]


def _describe_percentile(percent: int, aggregates: Sequence[Aggregate]) -> str:
    metrics = ", ".join(dict.fromkeys(aggregate.metric for aggregate in aggregates))
    interval = next((a.interval for a in aggregates if a.interval is not None), None)
    which = f"{metrics}: {percent}% of the queries have a value below this one"
    if interval is None:
        return f"{which}; too few queries for an interval"
    kind = "order-statistics interval" if interval.method == METHOD else "interval (Woodruff's)"
    return f"{which}, shown with its {format_percent(interval.confidence)} {kind}"


def _describe_marks(comparisons: Sequence[Comparison], gated: Sequence[Comparison]) -> str:
    """What the marks are against: the first system, and the baselines that gates name."""
    names = list(dict.fromkeys(comparison.baseline for comparison in comparisons))
    first = names if len(names) < 2 else [f"the first system that has the metric ({', '.join(names)})"]
    others = dict.fromkeys(one.baseline for one in gated if one.baseline not in names)
    baseline = list_choices([*first, *others])
    corrected = dict.fromkeys(one.metric for one in (*comparisons, *gated) if one.correction is not None)
    kind = f"; for {', '.join(corrected)} a t test of the corrected difference" if corrected else ""
    test = f"(paired permutation test{kind}; {ADJUSTED} p < {SIGNIFICANCE})"
    test = test if corrected else test.replace(";", ",")
    if any(significance_mark(one) in (HIGHER, LOWER) for one in (*comparisons, *gated)):
        return f"significantly higher or lower than {baseline} {test}"
    return f"none: no difference from {baseline} is significant {test}"
