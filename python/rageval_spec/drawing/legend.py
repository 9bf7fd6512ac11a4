"""Explains a report's table: the legend of its marks, its intervals and the ties in rankings.

Ties are described by how far the order of tied documents could move the numbers. If only a few systems have ties,
each gets a sentence below its table. Many systems share one sentence below the last table, which names the widest
ranges; the JSON report has all of them.

For questions that belong together or count differently, the legend says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rageval_spec.data.bands import BandScale
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation
from rageval_spec.data.outcomes import AskedQuestions
from rageval_spec.statistics.percentiles import ORDER_STATISTICS, read_percentile
from rageval_spec.statistics.sequential_analysis import BETTING
from rageval_spec.wording import (
    ADJUSTED,
    ALL_DIGITS,
    PLAIN,
    UNRESOLVABLE,
    NumberFormat,
    count_noun,
    describe_limit,
    find_format,
    format_percent,
    list_choices,
    tell_apart,
)

SIGNIFICANCE = 0.05
"""Reports mark comparisons whose adjusted p-value is below this."""
HIGHER, LOWER = "▲", "▼"
NOT_COMPARABLE = "≠"
UNRESOLVED = "∅"


def significance_mark(comparison: Comparison | None) -> str:
    """▲ or ▼ if the system's values are significantly higher or lower than the baseline's, else "".

    ≠ if the two are not comparable, so that a difference says nothing about the system. ∅ if the test could not find
    any difference.
    """
    if comparison is not None and not comparison.is_comparable:
        return NOT_COMPARABLE
    if comparison is not None and not comparison.is_resolvable(SIGNIFICANCE):
        return UNRESOLVED
    if comparison is None or comparison.p_adjusted >= SIGNIFICANCE:
        return ""
    return HIGHER if comparison.difference > 0 else LOWER


def is_improvement(comparison: Comparison, evaluation: Evaluation) -> bool | None:
    """Whether the system is better than the baseline; None if they are equal, not comparable or unresolvable.

    Fewer seconds are better.
    """
    if comparison.difference == 0 or significance_mark(comparison) in (NOT_COMPARABLE, UNRESOLVED):
        return None
    return (comparison.difference < 0) == (comparison.metric in evaluation.lower_is_better)


def name_band(evaluation: Evaluation, aggregate: Aggregate) -> str:
    """The word for a mean on the scale of its metric; "" without a scale or a mean."""
    scale = evaluation.bands.get(aggregate.metric)
    return "" if scale is None or aggregate.mean is None else scale.find(aggregate.mean, aggregate.scored).word


def describe_bands(evaluation: Evaluation) -> list[tuple[str, str]]:
    """The scales of the metrics, as pairs of the metric and its words with their bounds."""
    return [
        (f"{metric}:", _describe_scale(scale, find_format(evaluation, metric)))
        for metric, scale in evaluation.bands.items()
    ]


def _describe_scale(scale: BandScale, shown: NumberFormat) -> str:
    """`published scale: excellent ≥ 0.95, good ≥ 0.85, else poor`."""
    sign = "≤" if scale.lower_is_better else "≥"
    words = [
        f"else {one.word}"
        if one.bound is None
        else f"{one.word} {sign} {one.bound:g}"
        if shown is PLAIN
        else f"{one.word} {sign} {shown.number(one.bound, ALL_DIGITS)}"
        for one in scale.levels
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
        lines.append((NOT_COMPARABLE, f"not comparable with {list_choices(unlike)}; a warning names what changed"))
    lines += describe_unresolved([*comparisons, *gated])
    if any(one.metric in evaluation.show_as for one in (*comparisons, *gated)):
        lines.append(("pp", "percentage points"))
    if evaluation.units:
        lines.append(("unit", _describe_units(evaluation)))
    lines += _describe_percentiles(evaluation, dataset)
    return lines + [("ties", sentence) for sentence in describe_ties(evaluation, dataset)]


_MOST_LIMITS = 3


def describe_unresolved(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """A line on the comparisons that could not find a difference, and what they lack; none without such."""
    lacking = [one for one in comparisons if significance_mark(one) == UNRESOLVED]
    told = [*dict.fromkeys(describe_limit(one, SIGNIFICANCE) for one in lacking)]
    more = [f"and {len(told) - _MOST_LIMITS} more"] if len(told) > _MOST_LIMITS else []
    return [(UNRESOLVED, f"{UNRESOLVABLE}: {'; '.join([*told[:_MOST_LIMITS], *more])}")] if told else []


def _describe_intervals(means: Sequence[Aggregate], asked: AskedQuestions | None) -> str:
    """`95% confidence interval`; of several kinds, the second has its metrics: `...; for latency a 95% ...`."""
    metrics: dict[str, dict[str, None]] = {}
    for one in means:
        if one.interval is not None:
            kind = f"{format_percent(one.interval.confidence)} confidence interval"
            if one.interval.method == BETTING:
                kind = f"{format_percent(one.interval.confidence)} confidence sequence"
                if asked is not None:
                    kind += f" of the mean over all {asked.total:,} questions, {asked.asked:,} of them asked"
            if one.design is not None and one.design.clusters is not None:
                kind = f"{format_percent(one.interval.confidence)} confidence interval of whole clusters"
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
    kind = "order-statistics interval" if interval.method == ORDER_STATISTICS else "interval (Woodruff's)"
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


_MOST_SENTENCES = 3
_RANGES_SHOWN = 3


def describe_ties(evaluation: Evaluation, dataset: str) -> list[str]:
    """The sentences to show below the table of a dataset; each continues after the word `ties`."""
    tied = _collect(evaluation)
    if len(tied) > _MOST_SENTENCES:
        return [_describe_all(tied, evaluation)] if dataset == evaluation.datasets[-1] else []
    name_system = len(evaluation.systems) > 1
    return [_describe(cells, name_system, evaluation) for (of, _), cells in tied.items() if of == dataset]


def _collect(evaluation: Evaluation) -> dict[tuple[str, str], list[Aggregate]]:
    """The cells that ties could move, by dataset and system, the widest range first."""
    tied: dict[tuple[str, str], list[Aggregate]] = {}
    for cell in evaluation.aggregates:
        if cell.ties is not None and cell.ties.queries:
            tied.setdefault((cell.dataset, cell.system), []).append(cell)
    places = [(dataset, system) for dataset in evaluation.datasets for system in evaluation.systems]
    return {place: _widest_first(tied[place]) for place in places if place in tied}


def _widest_first(cells: Sequence[Aggregate]) -> list[Aggregate]:
    return sorted(cells, key=lambda cell: cell.ties.low - cell.ties.high if cell.ties else 0.0)


def _describe(cells: Sequence[Aggregate], name_system: bool, evaluation: Evaluation) -> str:
    ranges = [f"{cell.metric} between {_describe_ends(cell, evaluation)}" for cell in cells[:_RANGES_SHOWN]]
    more = len(cells) - len(ranges)
    return (
        f"decide the value of {_count_queries(cells)}"
        + (f" of {cells[0].system}" if name_system else "")
        + f": {', '.join(ranges)}"
        + (f", and less for {count_noun(more, 'other metric')}" if more else "")
    )


def _describe_all(tied: dict[tuple[str, str], list[Aggregate]], evaluation: Evaluation) -> str:
    cells = [cell for of_one in tied.values() for cell in of_one]
    systems = {system for _, system in tied}
    many_datasets = len(evaluation.datasets) > 1
    widest: dict[str, Aggregate] = {}
    for cell in _widest_first(cells):
        widest.setdefault(cell.metric, cell)
    ranges = [
        f"{cell.metric} of {cell.system}{f' on {cell.dataset}' if many_datasets else ''} between "
        + _describe_ends(cell, evaluation)
        for cell in [*widest.values()][:_RANGES_SHOWN]
    ]
    return (
        f"decide the value of {_count_queries(cells)} of {count_noun(len(systems), 'system')}; "
        f"the widest ranges are {', '.join(ranges)}; the JSON report lists all of them"
    )


def _count_queries(cells: Sequence[Aggregate]) -> str:
    """`3 queries`, or `up to 7 queries` if the cells have different numbers."""
    counts = {cell.ties.queries for cell in cells if cell.ties}
    return ("up to " if len(counts) > 1 else "") + count_noun(max(counts), "query", "queries")


def _describe_ends(cell: Aggregate, evaluation: Evaluation) -> str:
    assert cell.ties is not None, "only tied cells are described"
    return " and ".join(tell_apart(cell.ties.low, cell.ties.high, find_format(evaluation, cell.metric).number))


WEIGHTED_TITLE = "Weighted and plain means"


def describe_design(evaluation: Evaluation, dataset: str) -> Iterator[tuple[str, str]]:
    """What the legend of a dataset's table says of its clusters and weights, as pairs of a mark and its meaning."""
    design = evaluation.designs.get(dataset)
    if design is None:
        return
    if design.cluster is not None:
        questions = count_noun(design.questions, "question")
        told = f"intervals and tests: {questions} in {count_noun(design.clusters or 0, 'cluster')} ({design.cluster})"
        if design.without_cluster:
            told += f", {design.without_cluster} of them on their own, because they have no value"
        yield "n", told
    if design.is_weighted:
        kind = "the mix of production in" if design.weights is not None else "the column"
        yield (
            "w",
            f"weighted by {kind} {design.source}, and so are gates and comparisons; '{WEIGHTED_TITLE}' shows both",
        )
