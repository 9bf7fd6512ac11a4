"""Aggregates and comparisons on datasets whose questions belong together or count differently.

`aggregate` and `gaps` call these in place of what they do for independent questions that all count the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec import kernels
from rageval_spec.data.design import CellDesign
from rageval_spec.data.interval import Interval
from rageval_spec.statistics import weighted_percentiles
from rageval_spec.statistics.layout import Layout, add_up
from rageval_spec.statistics.percentiles import read_percentile
from rageval_spec.statistics.proportions import find_wilson_interval

if TYPE_CHECKING:
    from array import array

    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.statistics.resampling import Floats, ResamplingSettings

METHOD = "design-bootstrap-bca"
"""The value of `Interval.method` for means."""
PLAIN = "bootstrap-bca"
"""Its value where, as in a slice of one kind of question, all count the same and on their own."""
_MEANS = ("mean", "geometric mean")


@dataclass(frozen=True)
class Placed:
    """Values with the layout of their questions. For a geometric mean, the values are logarithms.

    `bounds` are those of the metric's values: no interval of a mean passes them.
    """

    values: array[float] | Floats
    layout: Layout
    statistic: str = "mean"
    bounds: tuple[float, float | None] | None = None

    @property
    def is_mean(self) -> bool:
        """Whether the statistic is a mean; a geometric one is."""
        return self.statistic in _MEANS

    def summarize(self) -> float | None:
        """The weighted statistic; None if no value counts. A sum is not weighted."""
        if not len(self.layout.rows):
            return None
        percent = read_percentile(self.statistic)
        if percent is not None:
            return weighted_percentiles.find_percentile(self.layout.take(self.values), percent, self.layout.weights)
        mean = self.layout.average(self.values)
        return math.exp(mean) if self.statistic == "geometric mean" else mean

    def describe(self, plain: float) -> CellDesign:
        """What the design means for this number, whose unweighted form is `plain`."""
        layout = self.layout
        return CellDesign(
            plain if layout.is_weighted else None,
            layout.effective if layout.is_weighted else None,
            layout.clusters if layout.is_clustered else None,
            layout.uncovered,
        )


def find_intervals(
    placed: Sequence[Placed], statistics: ResamplingSettings, threads: int | None
) -> list[Interval | None]:
    """The interval of each mean; None for fewer than two clusters. For a geometric mean, it is of the logarithms.

    Whole clusters are drawn; see `layout`.
    """
    able = [one.layout.clusters > 1 for one in placed]
    ends = iter(
        kernels.bootstrap_means(
            [_list_parts(one) for one, wanted in zip(placed, able, strict=True) if wanted],
            resamples=statistics.resamples,
            confidence=statistics.confidence,
            seed=statistics.seed,
            method="bca",
            threads=threads,
        )
    )
    return [
        _widen(one, next(ends), statistics.confidence) if wanted else None
        for one, wanted in zip(placed, able, strict=True)
    ]


def _list_parts(placed: Placed) -> Floats:
    """What is resampled: the parts of clusters, or the values where all count the same on their own."""
    layout = placed.layout
    return layout.take(placed.values) if layout.is_plain else layout.split(placed.values)


def _widen(placed: Placed, found: kernels.Interval | None, confidence: float) -> Interval | None:
    if found is None:
        return None
    if placed.layout.is_plain:
        return Interval(*found, confidence, PLAIN)
    low, high = placed.layout.widen(*found, placed.layout.average(placed.values), confidence)
    least, most = (None, None) if placed.bounds is None or placed.statistic != "mean" else placed.bounds
    low = low if least is None else max(low, least)
    high = high if most is None else min(high, most)
    return Interval(low, high, confidence, METHOD)


def find_share(hits: Floats, layout: Layout, confidence: float) -> tuple[float, Interval | None]:
    """The weighted share of hits (1 or 0 for each question), and Wilson's interval for the effective number of them.

    The effective number is what the variance of the share says, and at most that of the questions. If there are only
    hits, or none, it is the number of clusters, or Kish's if that is smaller.
    """
    count = len(layout.rows)
    if not count:
        return 0.0, None
    share = min(1.0, max(0.0, layout.average(hits)))
    variance, effective = layout.find_variance(hits), min(layout.clusters, layout.effective)
    if 0 < share < 1 and variance > 0:
        effective = min(count, share * (1 - share) / variance)
    return share, find_wilson_interval(share * effective, effective, confidence) if layout.clusters > 1 else None


def find_percentile_interval(placed: Placed, confidence: float) -> Interval | None:
    """The interval of a percentile; None for other statistics, and for too few values."""
    percent = read_percentile(placed.statistic)
    if percent is None:
        return None
    import numpy as np

    ends = weighted_percentiles.find_interval(np.asarray(placed.values), percent, placed.layout, confidence)
    return ends and Interval(*ends, confidence, weighted_percentiles.METHOD)


def compare_percentiles(
    values: array[float], base: array[float], percent: int, layout: Layout, statistics: ResamplingSettings
) -> tuple[float, Interval | None]:
    """The p-value of a difference of percentiles, and its interval; None for too few values."""
    import numpy as np

    both = (np.asarray(values), np.asarray(base), percent, layout)
    seed, confidence = statistics.seed, statistics.confidence
    p_value = weighted_percentiles.permute_difference(*both, permutations=statistics.permutations, seed=seed)
    ends = weighted_percentiles.bootstrap_difference(
        *both, resamples=statistics.resamples, confidence=confidence, seed=seed
    )
    return p_value, ends and Interval(*ends, confidence, weighted_percentiles.DIFFERENCE_METHOD)


def contrast(numbers: Floats, is_inside: NDArray[np.bool_], layout: Layout) -> Floats:
    """What each cluster contributes to the difference between the values inside a slice and the others.

    The mean of the contributions is the difference of the two weighted means. They are distances from the mean of all
    values, so that the sign of each is a matter of chance if there is no difference. They are 0 if no value counts on
    one of the sides.
    """
    import numpy as np

    own, inside = layout.take(numbers), is_inside[layout.rows]
    within, without = (float(layout.weights[side].sum()) for side in (inside, ~inside))
    if not within or not without:
        return np.zeros(max(1, layout.clusters))
    shares = np.where(inside, layout.weights / within, -layout.weights / without)
    apart = own - layout.average(numbers)
    return layout.clusters * add_up(layout.members, shares * apart, layout.clusters)
