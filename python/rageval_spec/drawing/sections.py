"""What reports for people show below their tables of numbers: the legend, causes, weak slices, corrected numbers.

The legend explains marks, intervals and ties in rankings, and questions that belong together or count differently. Ties
are described by how far the order of tied documents could move the numbers. If only a few systems have ties, each gets
a sentence below its table. Many systems share one sentence below the last table, which names the widest ranges; the
JSON report has all of them.

Each section is a small table of texts with a title, so that every report shows the same in its own form.

- Causes of questions, also in slices: the counts of each slice, and where a cause is more frequent than elsewhere.
- The weakest slices, and the stages of judges.
- Weighted means and differences beside plain ones.
- What people would say: the numbers of a judge, corrected by labels, beside those that they are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rageval_spec import kernels, wording
from rageval_spec.data.bands import BandScale
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, SliceGap, Stability
from rageval_spec.data.outcomes import AskedQuestions, Cause, CauseCount, GateOutcome, Interval, RankCounts
from rageval_spec.dataclass import dataclass
from rageval_spec.statistics.intervals import compute_p_of_excess
from rageval_spec.statistics.percentiles import ORDER_STATISTICS, read_percentile
from rageval_spec.statistics.sequential_analysis import BETTING

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
        (f"{metric}:", _describe_scale(scale, wording.find_format(evaluation, metric)))
        for metric, scale in evaluation.bands.items()
    ]


def _describe_scale(scale: BandScale, shown: wording.NumberFormat) -> str:
    """`published scale: excellent ≥ 0.95, good ≥ 0.85, else poor`."""
    sign = "≤" if scale.lower_is_better else "≥"
    words = [
        f"else {one.word}"
        if one.bound is None
        else f"{one.word} {sign} {one.bound:g}"
        if shown is wording.PLAIN
        else f"{one.word} {sign} {shown.number(one.bound, wording.ALL_DIGITS)}"
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
        lines.append(
            (NOT_COMPARABLE, f"not comparable with {wording.list_choices(unlike)}; a warning names what changed")
        )
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
    told = [*dict.fromkeys(wording.describe_limit(one, SIGNIFICANCE) for one in lacking)]
    more = [f"and {len(told) - _MOST_LIMITS} more"] if len(told) > _MOST_LIMITS else []
    return [(UNRESOLVED, f"{wording.UNRESOLVABLE}: {'; '.join([*told[:_MOST_LIMITS], *more])}")] if told else []


def _describe_intervals(means: Sequence[Aggregate], asked: AskedQuestions | None) -> str:
    """`95% confidence interval`; of several kinds, the second has its metrics: `...; for latency a 95% ...`."""
    metrics: dict[str, dict[str, None]] = {}
    for one in means:
        if one.interval is not None:
            kind = f"{wording.format_percent(one.interval.confidence)} confidence interval"
            if one.interval.method == BETTING:
                kind = f"{wording.format_percent(one.interval.confidence)} confidence sequence"
                if asked is not None:
                    kind += f" of the mean over all {asked.total:,} questions, {asked.asked:,} of them asked"
            if one.design is not None and one.design.clusters is not None:
                kind = f"{wording.format_percent(one.interval.confidence)} confidence interval of whole clusters"
            if one.correction is not None:
                kind = f"{wording.format_percent(one.interval.confidence)} interval of what people would say"
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
    return f"{which}, shown with its {wording.format_percent(interval.confidence)} {kind}"


def _describe_marks(comparisons: Sequence[Comparison], gated: Sequence[Comparison]) -> str:
    """What the marks are against: the first system, and the baselines that gates name."""
    names = list(dict.fromkeys(comparison.baseline for comparison in comparisons))
    first = names if len(names) < 2 else [f"the first system that has the metric ({', '.join(names)})"]
    others = dict.fromkeys(one.baseline for one in gated if one.baseline not in names)
    baseline = wording.list_choices([*first, *others])
    corrected = dict.fromkeys(one.metric for one in (*comparisons, *gated) if one.correction is not None)
    kind = f"; for {', '.join(corrected)} a t test of the corrected difference" if corrected else ""
    test = f"(paired permutation test{kind}; {wording.ADJUSTED} p < {SIGNIFICANCE})"
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
        + (f", and less for {wording.count_noun(more, 'other metric')}" if more else "")
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
        f"decide the value of {_count_queries(cells)} of {wording.count_noun(len(systems), 'system')}; "
        f"the widest ranges are {', '.join(ranges)}; the JSON report lists all of them"
    )


def _count_queries(cells: Sequence[Aggregate]) -> str:
    """`3 queries`, or `up to 7 queries` if the cells have different numbers."""
    counts = {cell.ties.queries for cell in cells if cell.ties}
    return ("up to " if len(counts) > 1 else "") + wording.count_noun(max(counts), "query", "queries")


def _describe_ends(cell: Aggregate, evaluation: Evaluation) -> str:
    assert cell.ties is not None, "only tied cells are described"
    return " and ".join(
        wording.tell_apart(cell.ties.low, cell.ties.high, wording.find_format(evaluation, cell.metric).number)
    )


WEIGHTED_TITLE = "Weighted and plain means"


def describe_design(evaluation: Evaluation, dataset: str) -> Iterator[tuple[str, str]]:
    """What the legend of a dataset's table says of its clusters and weights, as pairs of a mark and its meaning."""
    design = evaluation.designs.get(dataset)
    if design is None:
        return
    if design.cluster is not None:
        questions = wording.count_noun(design.questions, "question")
        clusters = wording.count_noun(design.clusters or 0, "cluster")
        told = f"intervals and tests: {questions} in {clusters} ({design.cluster})"
        if design.without_cluster:
            told += f", {design.without_cluster} of them on their own, because they have no value"
        yield "n", told
    if design.is_weighted:
        kind = "the mix of production in" if design.weights is not None else "the column"
        yield (
            "w",
            f"weighted by {kind} {design.source}, and so are gates and comparisons; '{WEIGHTED_TITLE}' shows both",
        )


_MOST_SLICES = 8
_MEANINGS: dict[Cause, str] = {
    "retrieval": "the contexts lack what was needed, and the answer is wrong",
    "generation": "the contexts have what was needed, and the answer is wrong or unfaithful",
    "both": "the contexts lack what was needed, and the answer is wrong and unfaithful to them",
    "lucky": "the contexts lack what was needed, but the answer is right",
    "fine": "the contexts have what was needed, and the answer is right",
    "undecided": "a part was not measured, or lies between right and wrong",
}
CAUSES: tuple[Cause, ...] = tuple(_MEANINGS)
"""The causes in the order in which reports show them."""


@dataclass(frozen=True, slots=True)
class Section:
    """A small table with a title; its cells are unescaped text.

    `numbers` are the columns (from 0) to align to the right; `remarks` are sentences below the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    remarks: tuple[str, ...] = ()


def list_sections(evaluation: Evaluation, digits: int = wording.DIGITS) -> Iterator[Section]:
    """The sections for which the evaluation has something to show."""
    yield from show_weighted(evaluation, digits)
    yield from show_corrections(evaluation, digits)
    yield from show_ranks(evaluation)
    yield from show_stability(evaluation, digits)
    yield from _show_causes(evaluation)
    yield from _show_frequent_causes(evaluation)
    yield from _show_weakest(evaluation, digits)
    yield from _show_stages(evaluation)


Row: TypeAlias = tuple[str, ...]
METHODS = {
    "ppi": "prediction-powered inference, PPI++",
    "rogan_gladen": "Rogan and Gladen's correction",
    "imputation": "grades drawn as people give them, and the labels' corrections",
}
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True)
class _Number:
    """A mean, or a difference from a baseline: its name, its value, the number of its queries, and how it is shown."""

    of: Aggregate | Comparison
    name: str
    value: float | None
    scored: int
    formatter: wording.Formatter
    digits: int

    def show(self, number: float | None, ends: Interval | None = None) -> str:
        """A number of this kind with its interval; a difference has a sign."""
        if number is None:
            return "–"
        sign = "+" if number > 0 and isinstance(self.of, Comparison) else ""
        interval = wording.format_interval(ends, self.digits, self.formatter)
        return f"{sign}{self.formatter(number, self.digits)} {interval}".rstrip()


def _list_numbers(evaluation: Evaluation, digits: int) -> Iterator[_Number]:
    for one in evaluation.aggregates:
        shown = wording.find_format(evaluation, one.metric).number
        yield _Number(one, _name(one, evaluation), one.mean, one.scored, shown, digits)
    for other in evaluation.every_comparison:
        shown, name = wording.find_format(evaluation, other.metric).change, _name(other, evaluation)
        yield _Number(other, f"{name} vs {other.baseline}", other.difference, other.queries, shown, digits)


def show_weighted(evaluation: Evaluation, digits: int) -> Iterator[Section]:
    """Weighted means and differences beside plain ones; nothing without weights."""
    header = ("metric", "weighted", "plain", "scored", "effective n")
    rows = tuple(
        (one.name, one.show(one.value, one.of.interval), one.show(design.plain), str(one.scored), f"{effective:.0f}")
        for one in _list_numbers(evaluation, digits)
        if one.value is not None and (design := one.of.design) is not None and design.plain is not None
        for effective in [design.effective]
    )
    if rows:
        yield Section(WEIGHTED_TITLE, header, rows, frozenset(range(1, 5)), tuple(_explain_weights(evaluation)))


def _explain_weights(evaluation: Evaluation) -> Iterator[str]:
    """What the rows mean, and what of production they leave out, in sentences."""
    yield (
        "The weighted means are the numbers of the tables above, of gates and of comparisons. A plain mean counts "
        "every question the same. 'effective n' is how many questions of equal weight would give as much information."
    )
    for dataset, design in evaluation.designs.items():
        absent = [one for one in design.strata if one.share and not one.questions]
        if absent:
            share, names = (
                wording.format_percent(sum(one.share for one in absent)),
                ", ".join(one.name for one in absent),
            )
            yield f"{dataset} has no evaluated question for {share} of production: {names}."
    for one in evaluation.aggregates:
        if one.design is not None and one.design.uncovered > _NEGLIGIBLE:
            share = wording.format_percent(one.design.uncovered)
            yield f"{_name(one, evaluation)} leaves out {share} of production, which has no scored question."


def show_corrections(evaluation: Evaluation, digits: int) -> Iterator[Section]:
    """Corrected means and differences beside what they are made of; nothing without labels."""
    header = ("metric", "judge alone", "corrected", "labels alone", "labels", "worth")
    rows = tuple(
        (
            one.name,
            one.show(found.judged),  # its interval is not of what people would say, and invites to think so
            one.show(one.value, one.of.interval),
            one.show(found.labelled, found.labelled_interval),
            str(found.labels),
            describe_worth(found.labels, found.worth, one.scored, found.labels) or "–",
        )
        for one in _list_numbers(evaluation, digits)
        if (found := one.of.correction) is not None
    )
    if rows:  # rankings have neither a mean of the labels alone nor what these are worth
        kept = [place for place in range(len(header)) if any(row[place] != "–" for row in rows)]
        shown = [tuple(row[place] for place in kept) for row in (header, *rows)]
        remarks = tuple(_explain_corrections(evaluation, has_worth="worth" in shown[0]))
        title, numbers = "What people would say", frozenset(range(1, len(kept)))
        yield Section(title, shown[0], tuple(shown[1:]), numbers, remarks)


def _explain_corrections(evaluation: Evaluation, *, has_worth: bool) -> Iterator[str]:
    """What the rows mean, and why a number is missing, in sentences."""
    found = [one.correction for one in evaluation.aggregates if one.correction]
    methods = dict.fromkeys(METHODS[one.method] for one in found)
    what = "pairs of query and document" if all(one.method == "imputation" for one in found) else "answers"
    worth = " 'worth' is how many labels would be needed for such an interval without the judge."
    yield (
        f"The judge's numbers are corrected by people's labels of some {what} ({'; '.join(methods)}), so the "
        f"intervals are of what people would say, however much the judge errs.{worth if has_worth else ''}"
    )
    if any(one.is_clipped for one in found):
        yield "A number or interval that reached beyond what the metric can be ends there."
    if any(not one.correction.is_paired for one in evaluation.every_comparison if one.correction):
        yield "Where few questions have labels for both answers, a difference is that of the two corrected means."
    reasons: dict[str, list[str]] = {}
    for one in evaluation.aggregates:
        if one.correction is not None and one.correction.reason is not None:
            reasons.setdefault(one.correction.reason.rstrip("."), []).append(_name(one, evaluation))
    for reason, subjects in reasons.items():
        yield f"{', '.join(subjects)}: no corrected mean, because {reason}."


_RANK_COLUMNS = {"1": "rank 1", "2-3": "2–3", "4-10": "4–10", "11-": "11+", "none": "not found"}


def show_ranks(evaluation: Evaluation) -> Iterator[Section]:
    """At which ranks the first relevant documents stand, if a metric knows: a row for each metric of each system."""
    if evaluation.target_ranks:
        counts = evaluation.target_ranks
        keys = [key for key in _RANK_COLUMNS if key != "11-" or any(one.ranks[key] for one in counts)]
        header = ("metric", "queries", *(_RANK_COLUMNS[key] for key in keys))
        rows = tuple(
            (_name(one, evaluation), str(one.queries), *(str(one.ranks[key]) for key in keys)) for one in counts
        )
        yield Section("Rank of the first relevant document", header, rows, frozenset(range(1, len(header))))


def show_stability(evaluation: Evaluation, digits: int) -> Iterator[Section]:
    """How far the answers to a question differ when it is asked again, and the gates that one repeat would turn."""
    rows = []
    for one in evaluation.stability:
        spreads = ["–" if part is None else f"{part**0.5:.{digits}f}" for part in (one.within, one.between)]
        rows.append((_name(one, evaluation), str(one.questions), str(one.changing), *spreads))
    gates = [(_name(one, evaluation), one) for one in evaluation.gates if one.flips is not None]
    told = ((of, wording.count_noun(one.flips or 0, "repeat"), one.outcome) for of, one in gates)
    remarks = [f"Gate on {of}, {outcome}: {count} alone would have another outcome." for of, count, outcome in told]
    about = "Standard deviations: within a question, when it is asked again; between questions, without that chance."
    header = ("metric", "questions", "differ", "sd within", "sd between")
    if rows:
        yield Section("Stability over repeats", header, tuple(rows), frozenset({1, 2, 3, 4}), (about, *remarks))


def _show_causes(evaluation: Evaluation) -> Iterator[Section]:
    diagnosis = evaluation.diagnosis
    if diagnosis is None:
        return
    whole = [one for one in diagnosis.counts if one.slice is None]
    advice = {(one.dataset, one.system): one.sentence for one in diagnosis.advice}
    for dataset, system in dict.fromkeys((one.dataset, one.system) for one in whole):
        counts = [one for one in whole if (one.dataset, one.system) == (dataset, system)]
        rows = tuple((one.cause, str(one.count), describe_share(one), _MEANINGS[one.cause]) for one in counts)
        place = system if len(evaluation.datasets) == 1 else f"{system} on {dataset}"
        remarks = (f"Try first: {advice[dataset, system]}.",) if (dataset, system) in advice else ()
        title = f"Causes: why answers of {place} are right or wrong"
        yield Section(title, ("cause", "questions", "share", "meaning"), rows, frozenset({1, 2}), remarks)


def _show_frequent_causes(evaluation: Evaluation) -> Iterator[Section]:
    """Where in the slices a cause stands out."""
    if not list_slice_counts(evaluation):
        return
    title, found = "Causes that stand out in slices", list_frequent_causes(evaluation)
    if not found:
        remark = "In no slice is a cause significantly more frequent than among the other questions."
        if evaluation.designs:
            remark = "Causes of slices were not tested: the test is only for questions that all count on their own."
        yield Section(title, (), (), remarks=(remark,))
        return
    rows = tuple(_describe_frequent(one, evaluation) for one in found[:_MOST_SLICES])
    more = len(found) - len(rows)
    verb = "stands" if more == 1 else "stand"
    counted = f"{wording.count_noun(more, 'more cause')} {verb} out; results.json has the counts of every slice."
    remarks = (counted,) if more else ()
    header = ("slice", "cause", "system", "questions", "share", "other questions", f"{wording.ADJUSTED} p")
    yield Section(title, header, rows, frozenset(range(3, len(header))), remarks)


def _describe_frequent(one: FrequentCause, evaluation: Evaluation) -> tuple[str, ...]:
    count = one.count
    slice_name = str(count.slice) if len(evaluation.datasets) == 1 else f"{count.slice} ({count.dataset})"
    others = wording.format_percent(one.others / one.others_total)
    of_all = f"{count.count} of {count.total}"
    return (
        slice_name,
        count.cause,
        count.system,
        of_all,
        describe_share(count),
        others,
        wording.format_probability(one.p_adjusted),
    )


def describe_share(count: CauseCount) -> str:
    """`10% [1%, 20%]`: the share of questions with a cause, and its interval."""
    ends = count.interval
    share = wording.format_percent(count.share)
    return (
        share if ends is None else f"{share} [{wording.format_percent(ends.low)}, {wording.format_percent(ends.high)}]"
    )


def _show_weakest(evaluation: Evaluation, digits: int) -> Iterator[Section]:
    if not evaluation.slices:
        return
    title = "Weakest slices"
    if not evaluation.weakest:
        remarks = ("No slice is significantly worse than the other queries.", *_list_untested(evaluation))
        yield Section(title, (), (), remarks=remarks)
        return
    shown = evaluation.weakest[:_MOST_SLICES]
    rows = tuple(_describe_gap(gap, evaluation, digits) for gap in shown)
    more = len(evaluation.weakest) - len(shown)
    remarks = (f"{wording.count_noun(more, 'more slice')} differ; results.json lists all of them.",) if more else ()
    remarks = (*remarks, *_list_untested(evaluation))
    header = ("slice", "metric", "system", "queries", "mean", "other queries", "difference", f"{wording.ADJUSTED} p")
    yield Section(title, header, rows, frozenset(range(3, len(header))), remarks)


def _list_untested(evaluation: Evaluation) -> Iterator[str]:
    """The metrics for which no slice is tested against the rest."""
    metrics = dict.fromkeys(one.metric for one in evaluation.aggregates if one.correction is not None)
    if metrics:
        yield f"Not tested, because people's labels correct it: {', '.join(metrics)}."


def _describe_gap(gap: SliceGap, evaluation: Evaluation, digits: int) -> tuple[str, ...]:
    slice_name = gap.slice if len(evaluation.datasets) == 1 else f"{gap.slice} ({gap.dataset})"
    shown = wording.find_format(evaluation, gap.metric)
    interval = wording.format_interval(gap.interval, digits, shown.change)
    difference = f"{wording.format_signed(gap.difference, digits, shown.change)} {interval}".strip()
    numbers = shown.number(gap.mean, digits), shown.number(gap.rest, digits), difference
    return (
        slice_name,
        gap.metric,
        gap.system,
        str(gap.queries),
        *numbers,
        wording.format_probability(gap.p_adjusted),
    )


def _show_stages(evaluation: Evaluation) -> Iterator[Section]:
    """The tables of notes: how many samples each stage of a waterfall passed on, or the steps of a grade."""
    for note in evaluation.notes:
        if note.table:
            header, *rows = note.table
            metric = next((name for name in evaluation.metrics if note.message.startswith(f"{name}: ")), None)
            names = (metric, f"of {note.system}" if note.system else None)
            where = " ".join(name for name in names if name) or note.code
            numbers = frozenset(place for place in range(1, len(header)) if all(row[place].isdecimal() for row in rows))
            yield Section(f"{header[0].capitalize()}s of {where}", header, tuple(rows), numbers)


def describe_worth(labels: int, worth: float | None, rows: int, questions: int) -> str:
    """`350 [310, 420]`: how many labels would be needed without the judge; "" if the labels do not tell."""
    if worth is None:
        return ""
    from rageval_spec.statistics.raters.label_counts import bound_worth

    ends = bound_worth(labels, worth, rows, questions)
    return "" if ends is None else f"{worth:,.0f} [{ends[0]:,.0f}, {ends[1]:,.0f}]"


def _name(one: Aggregate | Comparison | RankCounts | Stability | GateOutcome, evaluation: Evaluation) -> str:
    place = "" if len(evaluation.datasets) == 1 else f" on {one.dataset}"
    return f"{one.metric} of {one.system}{place}"


_FEWEST = 5
"""Slices with fewer questions are not tested, as in `Evaluation.weakest`."""
_ALPHA = 0.05
_TESTED: tuple[Cause, ...] = ("retrieval", "generation", "both", "lucky")


@dataclass(frozen=True, slots=True)
class FrequentCause:
    """A cause that is significantly more frequent in a slice than among the other questions.

    Attributes:
        count: the slice's questions with this cause.
        others, others_total: the number of the other questions with this cause, and of all other questions.
        p_adjusted: from Fisher's exact test (one-sided), with Holm's correction over all slices, systems and causes of
            the dataset.
    """

    count: CauseCount
    others: int
    others_total: int
    p_adjusted: float


def list_frequent_causes(evaluation: Evaluation) -> list[FrequentCause]:
    """The causes that stand out in slices, the most significant first.

    Where questions belong together or count differently, there is no test: Fisher's is of questions that are drawn one
    by one.
    """
    found: list[FrequentCause] = []
    for dataset in (name for name in evaluation.datasets if name not in evaluation.designs):
        found += _test([pair for pair in _pair(evaluation) if pair[0].dataset == dataset])
    return sorted(found, key=lambda one: one.p_adjusted)


def _pair(evaluation: Evaluation) -> Iterator[tuple[CauseCount, CauseCount]]:
    """Each count of a slice that is tested, with the same cause's count of all questions."""
    counts = () if evaluation.diagnosis is None else evaluation.diagnosis.counts
    whole = {(one.dataset, one.system, one.cause): one for one in counts if one.slice is None}
    for one in counts:
        of_all = whole.get((one.dataset, one.system, one.cause))
        if (
            one.slice is not None
            and of_all is not None
            and one.cause in _TESTED
            and _FEWEST <= one.total < of_all.total
        ):
            yield one, of_all


def _test(pairs: Sequence[tuple[CauseCount, CauseCount]]) -> Iterator[FrequentCause]:
    if not pairs:
        return
    p_values = [compute_p_of_excess(one.count, one.total, whole.count, whole.total) for one, whole in pairs]
    for (one, whole), p_value in zip(pairs, kernels.holm(p_values), strict=True):
        if p_value < _ALPHA:
            yield FrequentCause(one, whole.count - one.count, whole.total - one.total, p_value)


def list_slice_counts(evaluation: Evaluation) -> dict[tuple[str, str], dict[str, list[CauseCount]]]:
    """By dataset and system, and then by slice in the evaluation's order, the counts of the causes that occur there."""
    counts = [] if evaluation.diagnosis is None else [one for one in evaluation.diagnosis.counts if one.slice]
    order = {(one.dataset, one.name): at for at, one in enumerate(evaluation.slices)}
    found: dict[tuple[str, str], dict[str, list[CauseCount]]] = {}
    for one in sorted(counts, key=lambda one: order.get((one.dataset, str(one.slice)), len(order))):
        found.setdefault((one.dataset, one.system), {}).setdefault(str(one.slice), []).append(one)
    return found
