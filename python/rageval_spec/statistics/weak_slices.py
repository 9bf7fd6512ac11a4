"""Finds the slices on which a system is worse than on the other queries, by a test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rageval_spec import kernels
from rageval_spec.data.evaluation import SliceGap
from rageval_spec.data.outcomes import CELL, Cell, split_cells
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.libraries import Bools, Floats, np, pl
from rageval_spec.statistics.aggregation import is_compared
from rageval_spec.statistics.mean_intervals import (
    MeanValues,
    compute_mean_intervals,
    compute_range,
    list_bounds,
    subtract_means,
)
from rageval_spec.statistics.percentiles import Summarized, summarize
from rageval_spec.statistics.weighted_clusters import Layout, Placed, contrast, lay_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.data.datasets import Design
    from rageval_spec.statistics.intervals import ResamplingSettings

    _Pair: TypeAlias = tuple[Floats, Floats]

ALPHA = 0.05
"""The level of the tests, after Holm's correction."""
LEAST_QUERIES = 5
"""Slices with fewer scored queries (or clusters of them), inside or outside, are not tested: they would only weaken the
other tests."""
MOST_PERMUTATIONS = 1_000_000
_SPARE = 4
"""How many times the least number of permutations that Holm's correction needs to reach `ALPHA` are used."""

Members = tuple[str, str, Sequence[str]]
"""The dataset and the name of a slice, and the ids of its queries."""


def find_gaps(
    values: pl.DataFrame,
    slices: Sequence[Members],
    metrics: Mapping[str, Summarized],
    statistics: ResamplingSettings,
    threads: int | None = None,
    designs: Mapping[str, Design] | None = None,
) -> tuple[SliceGap, ...]:
    """The slices on which a system is significantly worse than on the dataset's other queries, worst first.

    The test is a permutation test of two independent samples: the slice's scored queries, and the other scored queries
    of the same system and metric. Holm's correction is over all slices, systems and metrics of a dataset that have
    enough queries. Only metrics are tested that are means and have a better direction. Worst first means by the
    difference in standard deviations of all values.

    The interval of a difference comes from the intervals of both means (see `subtract_means`). A geometric mean has
    none, and its test is on the logarithms.

    Where `designs` has the dataset, the means are weighted, and the test flips the signs of what whole clusters
    contribute to the difference, if there were none between the slice and the rest.
    """
    found: list[tuple[_Family, _Tested]] = []
    for dataset in dict.fromkeys(dataset for dataset, _, _ in slices):
        own = [(name, query_ids) for of, name, query_ids in slices if of == dataset]
        family = _Family(values, dataset, own, metrics, (designs or {}).get(dataset))
        tested = list(family.test(statistics, threads))
        adjusted = kernels.holm([test.p_value for test in tested]) if tested else []
        passed = (replace(test, p_adjusted=p) for test, p in zip(tested, adjusted, strict=True))
        found += [(family, test) for test in passed if test.p_adjusted < ALPHA and test.is_worse(metrics)]
    found.sort(
        key=lambda one: (-one[1].effect, one[1].cell.dataset, one[1].cell.system, one[1].cell.metric, one[1].slice)
    )
    return tuple(_describe(test, family, metrics[test.cell.metric], statistics, threads) for family, test in found)


@dataclass(frozen=True)
class _Tested:
    """The test of one cell on one slice. `effect` is the difference in standard deviations, without its sign."""

    cell: Cell
    slice: str
    difference: float
    effect: float
    p_value: float
    p_adjusted: float = 1.0

    def is_worse(self, metrics: Mapping[str, Summarized]) -> bool:
        is_lower = self.difference < 0
        return is_lower if metrics[self.cell.metric].higher_is_better else not is_lower


class _Values(NamedTuple):
    """The scored values of one cell, by query id, and the places of their queries in the dataset.

    `layout` is that of all scored queries, and `query_ids` has their ids, if the dataset has a design.
    """

    numbers: Floats
    places: NDArray[np.uint32]
    layout: Layout | None = None
    query_ids: Sequence[str] = ()

    def split(self, mask: Bools) -> _Pair:
        inside = mask[self.places]
        return self.numbers[inside], self.numbers[~inside]

    def count_parts(self, mask: Bools) -> tuple[int, int]:
        """The number of independent parts inside and outside: queries, or clusters of them."""
        inside = mask[self.places]
        if self.layout is None:
            return int(inside.sum()), int((~inside).sum())
        of_rows = inside[self.layout.rows]
        first, second = (len(np.unique(self.layout.members[side])) for side in (of_rows, ~of_rows))
        return first, second


class _Family:
    """All tests on one dataset. Each test divides the values anew: all divisions together would take much memory."""

    def __init__(
        self,
        values: pl.DataFrame,
        dataset: str,
        slices: Sequence[tuple[str, Sequence[str]]],
        metrics: Mapping[str, Summarized],
        design: Design | None,
    ) -> None:
        compared = [name for name, metric in metrics.items() if is_compared(metric)]
        scored = values.select(*CELL, "query_id", "status", "value").filter(
            (pl.col("dataset") == dataset) & (pl.col("status") == "scored") & pl.col("metric").is_in(compared)
        )
        ids = scored.select("query_id").unique().sort("query_id").with_row_index("place")
        placed = scored.join(ids, on="query_id", how="left").sort("place", maintain_order=True)
        self.design = design
        self._values = {cell: self._lay_out(frame) for cell, frame in split_cells(placed)}
        self._masks = {}
        for name, query_ids in slices:
            wanted = pl.DataFrame({"query_id": query_ids}, schema={"query_id": pl.String})
            mask = np.zeros(ids.height, dtype=np.bool_)
            mask[ids.join(wanted, on="query_id", how="semi")["place"].to_numpy()] = True
            self._masks[name] = mask

    def _lay_out(self, frame: pl.DataFrame) -> _Values:
        own = frame["value"].to_numpy(), frame["place"].to_numpy()
        if self.design is None:
            return _Values(*own)
        query_ids = frame["query_id"].to_list()
        return _Values(*own, lay_out(self.design, query_ids, query_ids), query_ids)

    def test(self, statistics: ResamplingSettings, threads: int | None) -> Iterator[_Tested]:
        """The tests of all slices and cells that have enough queries.

        With few permutations, no p-value of a large family could pass Holm's correction. So the tests whose p-value is
        the smallest possible are repeated with as many as it takes.
        """
        divisible = {name: self._list_divisible(mask) for name, mask in self._masks.items()}
        size = sum(map(len, divisible.values()))
        needed = min(MOST_PERMUTATIONS, math.ceil(_SPARE * size / ALPHA))
        for name, cells in divisible.items():
            pairs = [self._values[cell].split(self._masks[name]) for cell in cells]
            if self.design is None:
                tests = _test_pairs(pairs, needed, statistics, threads)
            else:
                tests = self._test_contrasts(name, cells, needed, statistics, threads)
            for cell, pair, (difference, p_value) in zip(cells, pairs, tests, strict=True):
                spread = float(np.concatenate(pair).std())
                effect = abs(difference) / spread if spread > 0 else 0.0
                yield _Tested(cell, name, difference, effect, p_value)

    def _test_contrasts(
        self, name: str, cells: Sequence[Cell], needed: int, statistics: ResamplingSettings, threads: int | None
    ) -> list[tuple[float, float]]:
        """As `_test_pairs`, with what whole clusters contribute to the difference."""
        contrasts = []
        for cell in cells:
            values = self._values[cell]
            assert values.layout is not None, "the dataset has a design"
            contrasts.append(contrast(values.numbers, self._masks[name][values.places], values.layout))
        permutations = max(needed, statistics.permutations)
        tests = kernels.permutation_test_paired(
            contrasts, permutations=permutations, seed=statistics.seed, threads=threads
        )
        return [(test.mean_difference, test.p_value) for test in tests]

    def split(self, test: _Tested) -> _Pair:
        return self._values[test.cell].split(self._masks[test.slice])

    def place(self, test: _Tested, statistic: str) -> tuple[Placed, Placed] | None:
        """The values inside and outside of a test's slice with their layouts; None without a design."""
        values, mask = self._values[test.cell], self._masks[test.slice]
        if self.design is None:
            return None
        inside, outside = (
            [query_id for query_id, of in zip(values.query_ids, mask[values.places], strict=True) if of == side]
            for side in (True, False)
        )
        (first, second), design = values.split(mask), self.design
        return (
            Placed(first, lay_out(design, inside, inside), statistic),
            Placed(second, lay_out(design, outside, outside), statistic),
        )

    def _list_divisible(self, mask: Bools) -> list[Cell]:
        return [cell for cell, values in self._values.items() if min(values.count_parts(mask)) >= LEAST_QUERIES]


def _test_pairs(
    pairs: Sequence[_Pair], needed: int, statistics: ResamplingSettings, threads: int | None
) -> list[tuple[float, float]]:
    """The difference and the p-value of each pair; `needed` permutations where the p-value is the smallest possible."""
    seed, permutations = statistics.seed, statistics.permutations
    tests = kernels.permutation_test_unpaired(pairs, permutations=permutations, seed=seed, threads=threads)
    lowest = 1 / (1 + permutations)
    again = [at for at, test in enumerate(tests) if not test.exact and test.p_value <= lowest]
    if needed > permutations and again:
        chosen = [pairs[at] for at in again]
        repeated = kernels.permutation_test_unpaired(chosen, permutations=needed, seed=seed, threads=threads)
        for at, test in zip(again, repeated, strict=True):
            tests[at] = test
    return [(test.mean_difference, test.p_value) for test in tests]


def _describe(
    test: _Tested, family: _Family, metric: Summarized, statistics: ResamplingSettings, threads: int | None
) -> SliceGap:
    pair, placed = family.split(test), family.place(test, metric.statistic)
    if placed is None:
        mean, rest = (summarize(metric, numbers) for numbers in pair)
    else:
        mean, rest = (one.summarize() or 0.0 for one in placed)
    interval = None
    if metric.statistic == "mean":
        bounds = compute_range(list_bounds(metric), metric.statistic, *(numbers.tolist() for numbers in pair))
        sides = [MeanValues(numbers, bounds) for numbers in pair]
        if placed is not None:
            sides = [MeanValues(one.values, bounds, one.layout) for one in placed]
        of_mean, of_rest = compute_mean_intervals(sides, statistics, threads)
        interval = subtract_means(mean, of_mean, rest, of_rest)
    return SliceGap(
        dataset=test.cell.dataset,
        system=test.cell.system,
        metric=test.cell.metric,
        slice=test.slice,
        mean=mean,
        rest=rest,
        difference=mean - rest,
        interval=interval,
        p_value=test.p_value,
        p_adjusted=test.p_adjusted,
        queries=len(pair[0]),
    )
