"""Aggregates values into means and percentiles with intervals, and compares systems with paired tests.

All resampling starts from the spec's seed. Each interval and p-value depends only on its own numbers and the seed, so
adding a metric, a system or a dataset changes no other interval and no other `p_value`. It does change `p_adjusted`,
because the family grows.

A family is a set of comparisons that are corrected together, chosen so that a comparison has only one p-value. The
comparisons that gates request are fixed before the numbers are known, so they form their own family, like the primary
endpoints of a trial. The other comparisons of a table form another family. Therefore no gate depends on metrics
without a gate, and the table shows the gate's own p-value.

The formulas for the power of a paired test, the smallest drop it finds, and the queries it needs are those of the
two-sided paired t-test in their normal form, with the correction of W. C. Guenther ("Sample size formulas for normal
theory t tests", The American Statistician 35, 1981), which adds z²/2 queries. The permutation test that gates use has
nearly the same power on means of values in [0, 1].
"""

from __future__ import annotations

import math
import operator
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec import kernels
from rageval_spec.data import arithmetic
from rageval_spec.data.evaluation import Aggregate, Comparison, PairLimit, TieRange
from rageval_spec.data.outcomes import CELL, Cell, Interval, Note, list_cells, split_cells
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.libraries import pl
from rageval_spec.statistics import percentiles, weighted_clusters
from rageval_spec.statistics.mean_intervals import (
    MeanValues,
    compute_difference_range,
    compute_mean_intervals,
    compute_range,
    list_bounds,
)
from rageval_spec.statistics.percentiles import Summarized, summarize

if TYPE_CHECKING:
    from rageval_spec.data.datasets import Design
    from rageval_spec.statistics.intervals import ResamplingSettings


_MEANS = ("mean", "geometric mean")
"""The statistics whose intervals are those of means, and that are compared between systems."""
_TIES = ("tie_low", "tie_high")
"""The columns with the values that the worst and the best order of ties give."""


@dataclass(frozen=True, slots=True)
class PairedTests:
    """Paired tests, and notes on the pairs of systems that could not be compared."""

    comparisons: tuple[Comparison, ...]
    notes: tuple[Note, ...]


def aggregate(
    values: pl.DataFrame,
    metrics: Mapping[str, Summarized],
    statistics: ResamplingSettings,
    threads: int | None = None,
    designs: Mapping[str, Design] | None = None,
) -> tuple[Aggregate, ...]:
    """One aggregate for each dataset, system and metric of `values`, in the order of the table.

    Only values with the status "scored" count. Those of ranking measures are added in the order of their query ids, so
    a mean equals trec_eval's to the last digit; other means are rounded once. Means have the intervals of
    `mean_intervals` (for a geometric mean, of the logarithms), if at least two queries were scored. The ends of a
    percentile's interval are two of the values; it needs more queries. A sum has no interval.

    Args:
        values: the columns of `tables.VALUES`. If `tie_low` and `tie_high` are present and not null, the aggregate
            includes the range over which ties could move it. If only one end of a query is null, because that order
            gives the query no value, the query counts as decided by ties, and its own value takes the place of the
            null.
        metrics: the metrics, by the names in the column `metric`.
        designs: the designs of datasets whose questions belong together or count differently, by name. Their means are
            weighted, and their intervals are of whole clusters.
    """
    # Rows can be copied cell by cell: without the columns that no number is made of, that takes half of the memory.
    needed = values.select(*CELL, "query_id", "status", "value", *(name for name in _TIES if name in values.columns))
    known = designs or {}
    columns = [
        _Column(cell, metrics[cell.metric], frame, known.get(cell.dataset)) for cell, frame in split_cells(needed)
    ]
    intervals = _intervals(columns, statistics, threads)
    return tuple(column.aggregate(interval) for column, interval in zip(columns, intervals, strict=True))


class _Column:
    """The values of one cell, from which its aggregate is computed."""

    def __init__(self, cell: Cell, metric: Summarized, frame: pl.DataFrame, design: Design | None) -> None:
        self.cell, self.metric = cell, metric
        self.statistic = metric.statistic
        self.total = frame.height
        self.unscorable = int((frame["status"] == "unscorable").sum())
        scored = _take_scored(frame)
        self.numbers = _list_numbers(scored["value"])
        self.placed = None
        if design is not None and self.statistic != "sum":
            layout = weighted_clusters.lay_out(design, scored["query_id"].to_list(), frame["query_id"].to_list())
            self.placed = weighted_clusters.Placed(self.numbers, layout, self.statistic)
        self._ties = self._compute_ties(scored)

    def list_means(self) -> MeanValues:
        layout = None if self.placed is None else self.placed.layout
        return MeanValues(self.numbers, compute_range(list_bounds(self.metric), self.statistic, self.numbers), layout)

    def aggregate(self, interval: Interval | None) -> Aggregate:
        mean = plain = summarize(self.metric, self.numbers) if len(self.numbers) else None
        where = (self.cell.dataset, self.cell.system, self.cell.metric)
        design = None
        if self.placed is not None and plain is not None:
            mean, design = self._summarize(self.numbers), self.placed.describe(plain)
        found = Aggregate(
            *where, mean, interval, len(self.numbers), self.total, self.statistic, self._ties, design=design
        )
        # Queries that cannot have a value are excused for metrics of answers.
        return replace(found, excused=self.unscorable if getattr(self.metric, "excuses", False) else 0)

    def _summarize(self, numbers: array[float]) -> float | None:
        """The statistic of the numbers, weighted if the design has weights; None if none of them counts."""
        if self.placed is None or not self.placed.layout.is_weighted:
            return summarize(self.metric, numbers)
        return replace(self.placed, values=numbers).summarize()

    def _compute_ties(self, scored: pl.DataFrame) -> TieRange | None:
        if not set(_TIES).issubset(scored.columns) or not len(self.numbers):
            return None
        low, high = (scored[name] for name in _TIES)
        if low.null_count() == len(low):
            return None
        decided = (low < high) | (low.is_null() != high.is_null())
        lowest, highest = (self._summarize(_list_numbers(ends.fill_null(scored["value"]))) for ends in (low, high))
        if lowest is None or highest is None:
            return None
        return TieRange(lowest, highest, queries=int(decided.sum()))


def _take_scored(frame: pl.DataFrame) -> pl.DataFrame:
    """The scored rows, sorted by query. Where all rows are scored and sorted, as mostly, none is copied."""
    is_scored = frame["status"] == "scored"
    scored = frame.drop(*CELL, "status")
    scored = scored if is_scored.all() else scored.filter(is_scored)
    return scored if scored["query_id"].is_sorted() else scored.sort("query_id")


def _list_numbers(column: pl.Series) -> array[float]:
    return array("d", [math.nan if value is None else value for value in column.to_list()])


def _intervals(
    columns: Sequence[_Column], statistics: ResamplingSettings, threads: int | None
) -> list[Interval | None]:
    are_means = [column.statistic in _MEANS and len(column.numbers) > 1 for column in columns]
    means = [column.list_means() for column, is_mean in zip(columns, are_means, strict=True) if is_mean]
    found = iter(compute_mean_intervals(means, statistics, threads))
    intervals = [
        next(found) if is_mean else _percentile_interval(column, statistics.confidence)
        for column, is_mean in zip(columns, are_means, strict=True)
    ]
    return [
        replace(interval, low=math.exp(interval.low), high=math.exp(interval.high))
        if interval is not None and column.statistic == "geometric mean"
        else interval
        for column, interval in zip(columns, intervals, strict=True)
    ]


def _percentile_interval(column: _Column, confidence: float) -> Interval | None:
    """The interval of a percentile; None for other statistics, and if there are too few values."""
    if column.placed is not None:
        return weighted_clusters.compute_percentile_interval(column.placed, confidence)
    percent = percentiles.read_percentile(column.statistic)
    ends = None if percent is None else percentiles.compute_percentile_interval(column.numbers, percent, confidence)
    return None if ends is None else Interval(*ends, confidence, percentiles.ORDER_STATISTICS)


def compare_systems(
    values: pl.DataFrame,
    baseline: str | Mapping[str, str],
    metrics: Mapping[str, Summarized],
    statistics: ResamplingSettings,
    threads: int | None = None,
    *,
    earlier: pl.DataFrame | None = None,
    has_percentiles: bool = False,
    designs: Mapping[str, Design] | None = None,
) -> PairedTests:
    """Compare every other system of `values` with the system `baseline`, on the queries that are scored for both.

    `baseline` can be a different system for each metric: if retrievers and assistants are evaluated together, answers
    are compared with those of the first system that answers. With the values of an `earlier` evaluation, whose name
    `baseline` is, every system is compared with the one of the same name there.

    Holm's correction is over all comparisons on one dataset, so pass only the `metrics` that gates request if these
    are a family of their own. Only those are compared that are means and have a direction: how much a system retrieved
    is not a question of quality. With `has_percentiles`, percentiles are compared too, by the difference of the
    percentiles of the paired values; that takes longer.

    `difference` is system minus baseline, of the means (the mean of the paired differences) or of the geometric means.
    The latter has no interval, and its test is on the logarithms. `wins` counts the queries on which the system is
    better, so lower if lower is better. Fewer than two pairs give a note instead of a comparison.
    """
    baselines = dict.fromkeys(metrics, baseline) if isinstance(baseline, str) else baseline
    on = [*CELL, "query_id"]
    base = earlier
    if base is None:
        if all(baselines.get(cell.metric) == cell.system for cell in list_cells(values)):
            return PairedTests((), ())  # there is no other system; what follows copies the values
        is_base = pl.col("system") == pl.col("metric").replace_strict(baselines, default=None, return_dtype=pl.String)
        needed = values.select(*CELL, "query_id", "status", "value")
        values, base = needed.filter(~is_base.fill_null(False)), needed.filter(is_base)
        on.remove("system")
    compared = [name for name, one in metrics.items() if is_compared(one) or (has_percentiles and is_percentile(one))]
    wanted = values.select(*CELL, "query_id", "status", "value").filter(pl.col("metric").is_in(compared))
    scored_base = base.filter(pl.col("status") == "scored").select(*on, base="value")
    joined = wanted.join(scored_base, on=on, how="left", maintain_order="left")
    pairs = []
    notes = []
    for cell, frame in split_cells(joined):
        both = frame.filter((pl.col("status") == "scored") & pl.col("base").is_not_null()).sort("query_id")
        if both.height < 2 and not (frame["status"] == "scored").any():
            continue  # the table already shows that nothing was scored
        if both.height < 2:
            queries = "only one query has" if both.height else "no query has"
            message = f"{cell.metric} was not compared with {baselines[cell.metric]}: {queries} a value in both"
            notes.append(Note("too_few_pairs", message, cell.dataset, cell.system, both.height))
        else:
            values_and_base = _list_numbers(both["value"]), _list_numbers(both["base"])
            design = (designs or {}).get(cell.dataset)
            ids = both["query_id"], frame["query_id"]
            layout = None if design is None else weighted_clusters.lay_out(design, *(of.to_list() for of in ids))
            if layout is None or len(layout.rows):
                pairs.append(ValuePairs(cell, metrics[cell.metric], *values_and_base, layout))
    return PairedTests(adjust(tuple(_test(pairs, baselines, statistics, threads))), tuple(notes))


def is_compared(metric: Summarized) -> bool:
    """Whether differences of a metric are tested: it is a mean, and one direction is better."""
    return metric.statistic in _MEANS and metric.higher_is_better is not None


def is_percentile(metric: Summarized) -> bool:
    """Whether a metric is a percentile of which one direction is better, so that a gate can compare it."""
    return percentiles.read_percentile(metric.statistic) is not None and metric.higher_is_better is not None


def _test(
    pairs: Sequence[ValuePairs], baselines: Mapping[str, str], statistics: ResamplingSettings, threads: int | None
) -> Iterator[Comparison]:
    """The comparison of each pair; its p-value is not adjusted yet."""
    means = [pair for pair in pairs if pair.percent is None]
    tests = iter(
        kernels.permutation_test_paired(
            [pair.differences if pair.layout is None else pair.layout.total(pair.differences) for pair in means],
            permutations=statistics.permutations,
            seed=statistics.seed,
            threads=threads,
        )
    )
    intervals = iter(compute_mean_intervals([pair.list_means() for pair in means], statistics, threads))
    for pair in pairs:
        if pair.percent is None:
            p_value, interval = next(tests).p_value, next(intervals)
        elif pair.layout is None:
            p_value, interval = _test_percentile(pair, pair.percent, statistics)
        else:
            both = (pair.values, pair.base, pair.percent, pair.layout)
            p_value, interval = weighted_clusters.compare_percentiles(*both, statistics)
        wins, losses = pair.wins_and_losses()
        yield Comparison(
            dataset=pair.cell.dataset,
            metric=pair.cell.metric,
            system=pair.cell.system,
            baseline=baselines[pair.cell.metric],
            difference=pair.difference(),
            interval=None if pair.is_geometric else interval,
            p_value=p_value,
            p_adjusted=p_value,
            queries=len(pair.values),
            wins=wins,
            losses=losses,
            baseline_mean=pair.summarize(pair.base),
            design=None if pair.placed is None else pair.placed.describe(pair.plain_difference()),
            limit=compute_limit(pair.parts, statistics.permutations),
        )


def _test_percentile(pair: ValuePairs, percent: int, statistics: ResamplingSettings) -> tuple[float, Interval | None]:
    """The p-value of a difference of percentiles, and its interval; None for too few values."""
    both, seed, confidence = (pair.values, pair.base, percent), statistics.seed, statistics.confidence
    p_value = percentiles.permute_difference(*both, permutations=statistics.permutations, seed=seed)
    ends = percentiles.bootstrap_difference(*both, resamples=statistics.resamples, confidence=confidence, seed=seed)
    return p_value, ends and Interval(*ends, confidence, percentiles.DIFFERENCE_METHOD)


@dataclass(frozen=True)
class ValuePairs:
    """The values of one cell and of its baseline, by query."""

    cell: Cell
    metric: Summarized
    values: array[float]
    base: array[float]
    layout: weighted_clusters.Layout | None = None

    @cached_property
    def differences(self) -> array[float]:
        return array("d", map(operator.sub, self.values, self.base))

    def list_means(self) -> MeanValues:
        bounds = compute_range(list_bounds(self.metric), self.metric.statistic, self.values, self.base)
        return MeanValues(self.differences, compute_difference_range(bounds), self.layout)

    @property
    def is_geometric(self) -> bool:
        return self.metric.statistic == "geometric mean"

    @property
    def percent(self) -> int | None:
        return percentiles.read_percentile(self.metric.statistic)

    @property
    def parts(self) -> int:
        """How many pairs the test exchanges: questions, or clusters of them."""
        return len(self.values) if self.layout is None else self.layout.clusters

    @property
    def placed(self) -> weighted_clusters.Placed | None:
        return None if self.layout is None else weighted_clusters.Placed(self.differences, self.layout)

    def summarize(self, numbers: array[float]) -> float:
        """The statistic of one side, weighted if the design has weights."""
        plain = summarize(self.metric, numbers)
        if self.layout is None or not self.layout.is_weighted:
            return plain
        weighted = weighted_clusters.Placed(numbers, self.layout, self.metric.statistic).summarize()
        assert weighted is not None, "pairs that do not count are left out"
        return weighted

    def difference(self) -> float:
        if self.layout is None or not self.layout.is_weighted:
            return self.plain_difference()
        if self.is_geometric or self.percent is not None:
            return self.summarize(self.values) - self.summarize(self.base)
        return self.layout.average(self.differences)

    def plain_difference(self) -> float:
        """The difference if every question counted the same."""
        if self.is_geometric or self.percent is not None:
            return summarize(self.metric, self.values) - summarize(self.metric, self.base)
        return arithmetic.average(self.differences)

    def wins_and_losses(self) -> tuple[int, int]:
        higher, lower = sum(one > 0 for one in self.differences), sum(one < 0 for one in self.differences)
        return (lower, higher) if self.metric.higher_is_better is False else (higher, lower)


_Pair: TypeAlias = tuple[str, str | None, str, frozenset[str]]


def adjust(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons, with `p_adjusted` from Holm's correction over all of them on one dataset, and with its limit."""
    adjusted = list(comparisons)
    for dataset in {comparison.dataset for comparison in comparisons}:
        family = [index for index, comparison in enumerate(comparisons) if comparison.dataset == dataset]
        raw = [comparisons[index].p_value for index in family]
        least = _LeastAdjusted(raw)
        for index, p_value in zip(family, kernels.holm(raw), strict=True):
            limit = comparisons[index].limit
            limit = limit and replace(limit, p_adjusted=least.find(limit.p_value), family=len(family))
            adjusted[index] = replace(comparisons[index], p_adjusted=p_value, limit=limit)
    return tuple(adjusted)


class _LeastAdjusted:
    """What Holm's correction makes of a p-value of a family, if that were smaller and all others as they are."""

    def __init__(self, p_values: Sequence[float]) -> None:
        self._ordered = sorted(p_values)
        steps = ((len(p_values) - place) * p_value for place, p_value in enumerate(self._ordered))
        self._reached = list(accumulate(steps, max))

    def find(self, p_value: float) -> float:
        """The adjusted p-value, of a p-value that is at most what the family has in its place."""
        before = bisect_left(self._ordered, p_value)
        reached = self._reached[before - 1] if before else 0.0
        return min(1.0, max(reached, (len(self._ordered) - before) * p_value))


def compute_limit(pairs: int, permutations: int) -> PairLimit:
    """The smallest p-value that a permutation test of so many pairs can have, alone in its family.

    All exchanges of the pairs are tried if there are not more than `permutations`; else as many at random.
    """
    least = 2.0 ** (1 - pairs) if pairs < _MOST_DOUBLINGS and 2**pairs <= permutations else 1 / (1 + permutations)
    return PairLimit(pairs, min(1.0, least), min(1.0, least))


_MOST_DOUBLINGS = 64
"""With so many pairs, no number of permutations tries all exchanges."""


def share_highest(families: Mapping[str, Sequence[Comparison]]) -> dict[str, tuple[Comparison, ...]]:
    """The families, after a comparison that several of them have took the highest of its `p_adjusted` in all.

    Gates on two baselines can ask for the same pair of systems, each from its own side.
    """
    highest = _find_highest(one for family in families.values() for one in family)
    return {name: tuple(_take(one, highest[one.pair]) for one in family) for name, family in families.items()}


def adjust_table(table: Sequence[Comparison], gated: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Adjust the comparisons of a table, some of which gates request; the order stays.

    A comparison that is also in `gated`, in either direction, takes its `p_adjusted` from there. The other comparisons
    form one family on each dataset.
    """
    known = _find_highest(gated)
    rest = iter(adjust([comparison for comparison in table if comparison.pair not in known]))
    return tuple(
        _take(comparison, known[comparison.pair]) if comparison.pair in known else next(rest) for comparison in table
    )


def _take(one: Comparison, known: Comparison) -> Comparison:
    """A comparison with the adjusted p-value that the same one has elsewhere."""
    return replace(one, p_adjusted=known.p_adjusted, limit=known.limit)


def _find_highest(comparisons: Iterable[Comparison]) -> dict[_Pair, Comparison]:
    highest: dict[_Pair, Comparison] = {}
    for comparison in comparisons:
        pair = comparison.pair
        highest[pair] = max(highest.get(pair, comparison), comparison, key=lambda one: one.p_adjusted)
    return highest


POWER = 0.8
ALPHA = 0.05
_NORMAL = NormalDist()


def compute_smallest_drop(sd: float, queries: int, alpha: float = ALPHA) -> float | None:
    """The smallest true difference that a paired test on `queries` queries finds with the power `POWER`.

    `sd` is the standard deviation of the paired differences. None if the queries are too few for any difference.
    """
    used = queries - _correction(alpha)
    return None if used < 1 else sd * _reach(alpha) / math.sqrt(used)


def count_queries(sd: float, drop: float, alpha: float = ALPHA) -> int | None:
    """How many queries a paired test needs to find a true difference of `drop` with this power; None if `drop` is 0."""
    if drop <= 0:
        return None
    needed = (sd * _reach(alpha) / drop) ** 2 + _correction(alpha)
    return max(math.ceil(_correction(alpha) + 1), math.ceil(needed))


def _reach(alpha: float) -> float:
    """The distance between no difference and the one to find, in standard errors."""
    return _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(POWER)


def _correction(alpha: float) -> float:
    """Guenther's queries, which make up for the standard deviation being estimated."""
    return _NORMAL.inv_cdf(1 - alpha / 2) ** 2 / 2
