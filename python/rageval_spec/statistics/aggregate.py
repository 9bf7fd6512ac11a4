"""Aggregates values into means and percentiles with intervals, and compares systems with paired tests.

All resampling starts from the spec's seed. Each interval and p-value depends only on its own numbers and the seed, so
adding a metric, a system or a dataset changes no other interval and no other `p_value`. It does change `p_adjusted`,
because the family grows.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rageval_spec import kernels
from rageval_spec.data.cell import CELL, Cell, list_cells, split_cells
from rageval_spec.data.evaluation import Aggregate, Comparison, Interval, TieRange
from rageval_spec.data.note import Note
from rageval_spec.statistics import designed, percentiles
from rageval_spec.statistics.designed import Placed
from rageval_spec.statistics.families import adjust
from rageval_spec.statistics.layout import lay_out
from rageval_spec.statistics.pairs import Pairs
from rageval_spec.statistics.summaries import Statistic as Statistic
from rageval_spec.statistics.summaries import Summarized as Summarized
from rageval_spec.statistics.summaries import summarize as summarize

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rageval_spec.data.design import Design
    from rageval_spec.statistics.resampling import ResamplingSettings

_MEANS = ("mean", "geometric mean")
"""The statistics that get bootstrap intervals and are compared between systems."""
_METHOD = "bootstrap-bca"
_TIES = ("tie_low", "tie_high")
"""The columns with the values that the worst and the best order of ties give."""


@dataclass(frozen=True, slots=True)
class Comparisons:
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

    Only values with the status "scored" count. They are added in the order of their query ids, so a mean equals
    trec_eval's to the last digit. Means have BCa bootstrap intervals (for a geometric mean, of the logarithms), if at
    least two queries were scored. The ends of a percentile's interval are two of the values; it needs more queries.
    A sum has no interval.

    Args:
        values: the columns of `tables.VALUES`. If `tie_low` and `tie_high` are present and not null, the aggregate
            includes the range over which ties could move it. If only one end of a query is null, because that order
            gives the query no value, the query counts as decided by ties, and its own value takes the place of the
            null.
        metrics: the metrics, by the names in the column `metric`.
        statistics: the seed, the confidence and the number of resamples.
        threads: the number of threads of the kernels; it never changes a number.
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
    return tuple(
        replace(column.aggregate(interval), excused=column.unscorable if _excuses(metrics[column.cell.metric]) else 0)
        for column, interval in zip(columns, intervals, strict=True)
    )


def _excuses(metric: Summarized) -> bool:
    """Whether queries that cannot have a value are excused, as they are for metrics of answers."""
    return bool(getattr(metric, "excuses", False))


class _Column:
    """The values of one cell, from which its aggregate is computed."""

    def __init__(self, cell: Cell, metric: Summarized, frame: pl.DataFrame, design: Design | None) -> None:
        self.cell = cell
        self.statistic = metric.statistic
        self.total = frame.height
        self.unscorable = int((frame["status"] == "unscorable").sum())
        scored = _take_scored(frame)
        self.numbers = _list_numbers(scored["value"])
        self.placed = None
        if design is not None and self.statistic != "sum":
            layout = lay_out(design, scored["query_id"].to_list(), frame["query_id"].to_list())
            self.placed = Placed(self.numbers, layout, self.statistic, getattr(metric, "bounds", None))
        self._ties = self._find_ties(scored)

    def aggregate(self, interval: Interval | None) -> Aggregate:
        mean = plain = summarize(self.statistic, self.numbers) if len(self.numbers) else None
        where = (self.cell.dataset, self.cell.system, self.cell.metric)
        design = None
        if self.placed is not None and plain is not None:
            mean, design = self._summarize(self.numbers), self.placed.describe(plain)
        return Aggregate(
            *where, mean, interval, len(self.numbers), self.total, self.statistic, self._ties, design=design
        )

    def _summarize(self, numbers: array[float]) -> float | None:
        """The statistic of the numbers, weighted if the design has weights; None if none of them counts."""
        if self.placed is None or not self.placed.layout.is_weighted:
            return summarize(self.statistic, numbers)
        return replace(self.placed, values=numbers).summarize()

    def _find_ties(self, scored: pl.DataFrame) -> TieRange | None:
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
    resampled = [column.statistic in _MEANS and len(column.numbers) > 1 for column in columns]
    means = [column for column, wanted in zip(columns, resampled, strict=True) if wanted]
    ends = iter(_bootstrap([(one.numbers, one.placed) for one in means], statistics, threads))
    intervals = [
        next(ends) if wanted else _percentile_interval(column, statistics.confidence)
        for column, wanted in zip(columns, resampled, strict=True)
    ]
    return [
        replace(interval, low=math.exp(interval.low), high=math.exp(interval.high))
        if interval is not None and column.statistic == "geometric mean"
        else interval
        for column, interval in zip(columns, intervals, strict=True)
    ]


def _bootstrap(
    series: Sequence[tuple[array[float], Placed | None]], statistics: ResamplingSettings, threads: int | None
) -> Iterator[Interval | None]:
    """The interval of each mean, of whole clusters where there is a design."""
    plain = iter(bootstrap([numbers for numbers, placed in series if placed is None], statistics, threads))
    in_design = [placed for _, placed in series if placed is not None]
    of_design = iter(designed.find_intervals(in_design, statistics, threads))
    return (next(plain if placed is None else of_design) for _, placed in series)


def _percentile_interval(column: _Column, confidence: float) -> Interval | None:
    """The interval of a percentile; None for other statistics, and if there are too few values."""
    if column.placed is not None:
        return designed.find_percentile_interval(column.placed, confidence)
    percent = percentiles.read_percentile(column.statistic)
    ends = None if percent is None else percentiles.find_interval(column.numbers, percent, confidence)
    return None if ends is None else Interval(*ends, confidence, percentiles.METHOD)


def bootstrap(
    samples: Sequence[array[float] | NDArray[np.float64]], statistics: ResamplingSettings, threads: int | None
) -> list[Interval | None]:
    """The interval of the mean of each sample; None for a single value."""
    ends = kernels.bootstrap_means(
        samples,
        resamples=statistics.resamples,
        confidence=statistics.confidence,
        seed=statistics.seed,
        method="bca",
        threads=threads,
    )
    return [pair and Interval(pair.low, pair.high, statistics.confidence, _METHOD) for pair in ends]


def compare_systems(
    values: pl.DataFrame,
    baseline: str | Mapping[str, str],
    metrics: Mapping[str, Summarized],
    statistics: ResamplingSettings,
    threads: int | None = None,
    *,
    has_percentiles: bool = False,
    designs: Mapping[str, Design] | None = None,
) -> Comparisons:
    """Compare every other system of `values` with the system `baseline`, on the queries that are scored for both.

    `baseline` can be a different system for each metric: if retrievers and assistants are evaluated together, answers
    are compared with those of the first system that answers.

    Holm's correction is over all comparisons on one dataset; the module `families` has others. Only those of `metrics`
    are compared that are means and have a direction: how much a system retrieved is not a question of quality. With
    `has_percentiles`, percentiles are compared too, by the difference of the percentiles of the paired values; that
    takes longer.

    `difference` is system minus baseline, of the means (the mean of the paired differences) or of the geometric means.
    The latter has no interval, and its test is on the logarithms. `wins` counts the queries on which the system is
    better, so lower if lower is better. Fewer than two pairs give a note instead of a comparison.
    """
    import polars as pl

    names = dict.fromkeys(metrics, baseline) if isinstance(baseline, str) else baseline
    if all(names.get(cell.metric) == cell.system for cell in list_cells(values)):
        return Comparisons((), ())  # there is no other system; what follows copies the values
    is_base = pl.col("system") == pl.col("metric").replace_strict(names, default=None, return_dtype=pl.String)
    needed = values.select(*CELL, "query_id", "status", "value")
    others = needed.filter(~is_base.fill_null(False))
    base = needed.filter(is_base).drop("system")
    compared = _list_compared(metrics, has_percentiles=has_percentiles)
    return _compare(others, base, ["dataset", "metric", "query_id"], names, compared, statistics, threads, designs)


def compare_evaluations(
    values: pl.DataFrame,
    earlier: pl.DataFrame,
    baseline: str,
    metrics: Mapping[str, Summarized],
    statistics: ResamplingSettings,
    threads: int | None = None,
    *,
    has_percentiles: bool = False,
    designs: Mapping[str, Design] | None = None,
) -> Comparisons:
    """Compare every system with the system of the same name in an `earlier` evaluation's values.

    `baseline` is the name of the earlier evaluation. Everything else is as in `compare_systems`. The family is all
    comparisons with this baseline on one dataset, so pass only the `metrics` that gates request.
    """
    names = dict.fromkeys(metrics, baseline)
    compared = _list_compared(metrics, has_percentiles=has_percentiles)
    return _compare(values, earlier, [*CELL, "query_id"], names, compared, statistics, threads, designs)


def _list_compared(metrics: Mapping[str, Summarized], *, has_percentiles: bool) -> dict[str, Summarized]:
    """The metrics that are compared, by name."""
    return {
        name: metric
        for name, metric in metrics.items()
        if is_compared(metric) or (has_percentiles and is_percentile(metric))
    }


def _compare(
    values: pl.DataFrame,
    base: pl.DataFrame,
    on: list[str],
    baselines: Mapping[str, str],
    metrics: Mapping[str, Summarized],
    statistics: ResamplingSettings,
    threads: int | None,
    designs: Mapping[str, Design] | None,
) -> Comparisons:
    import polars as pl

    wanted = values.select(*CELL, "query_id", "status", "value").filter(pl.col("metric").is_in([*metrics]))
    scored_base = base.filter(pl.col("status") == "scored").select(*on, base="value")
    joined = wanted.join(scored_base, on=on, how="left", maintain_order="left")
    pairs = []
    notes = []
    for cell, frame in split_cells(joined):
        both = frame.filter((pl.col("status") == "scored") & pl.col("base").is_not_null()).sort("query_id")
        if both.height < 2 and not (frame["status"] == "scored").any():
            continue  # the table already shows that nothing was scored
        if both.height < 2:
            notes.append(_too_few(cell, baselines[cell.metric], both.height))
        else:
            values_and_base = _list_numbers(both["value"]), _list_numbers(both["base"])
            design = (designs or {}).get(cell.dataset)
            ids = both["query_id"], frame["query_id"]
            layout = None if design is None else lay_out(design, *(of.to_list() for of in ids))
            if layout is None or len(layout.rows):
                pairs.append(Pairs(cell, metrics[cell.metric], *values_and_base, layout))
    return Comparisons(adjust(tuple(_test(pairs, baselines, statistics, threads))), tuple(notes))


def is_compared(metric: Summarized) -> bool:
    """Whether differences of a metric are tested: it is a mean, and one direction is better."""
    return metric.statistic in _MEANS and metric.higher_is_better is not None


def is_percentile(metric: Summarized) -> bool:
    """Whether a metric is a percentile of which one direction is better, so that a gate can compare it."""
    return percentiles.read_percentile(metric.statistic) is not None and metric.higher_is_better is not None


def _too_few(cell: Cell, baseline: str, pairs: int) -> Note:
    queries = {0: "no query has", 1: "only one query has"}[pairs]
    message = f"{cell.metric} was not compared with {baseline}: {queries} a value in both"
    return Note("too_few_pairs", message, cell.dataset, cell.system, pairs)


def _test(
    pairs: Sequence[Pairs], baselines: Mapping[str, str], statistics: ResamplingSettings, threads: int | None
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
    intervals = iter(_bootstrap([(pair.differences, pair.placed) for pair in means], statistics, threads))
    for pair in pairs:
        if pair.percent is None:
            p_value, interval = next(tests).p_value, next(intervals)
        elif pair.layout is None:
            p_value, interval = _test_percentile(pair, pair.percent, statistics)
        else:
            both = (pair.values, pair.base, pair.percent, pair.layout)
            p_value, interval = designed.compare_percentiles(*both, statistics)
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
        )


def _test_percentile(pair: Pairs, percent: int, statistics: ResamplingSettings) -> tuple[float, Interval | None]:
    """The p-value of a difference of percentiles, and its interval; None for too few values."""
    both, seed, confidence = (pair.values, pair.base, percent), statistics.seed, statistics.confidence
    p_value = percentiles.permute_difference(*both, permutations=statistics.permutations, seed=seed)
    ends = percentiles.bootstrap_difference(*both, resamples=statistics.resamples, confidence=confidence, seed=seed)
    return p_value, ends and Interval(*ends, confidence, percentiles.DIFFERENCE_METHOD)
