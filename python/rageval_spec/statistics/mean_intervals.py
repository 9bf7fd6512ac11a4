"""Intervals of means: the one rule for all of them, whoever shows the number or decides by it.

| what is known of the values | interval |
|---|---|
| a lowest and a highest value; the values are only these two | exact (C. J. Clopper, E. S. Pearson, 1934) |
| a lowest and a highest value | Gaffke's, which is the exact one where both apply |
| not both | BCa bootstrap (B. Efron, 1987), its ends moved apart as Student's t is wider than the normal distribution |

Gaffke's interval (N. Gaffke, 2005; E. Learned-Miller, P. S. Thomas, arXiv:1905.06208, 2019) adds to the values one
more, the lowest for the lower end and the highest for the upper end, because questions that were not asked can have it.
It needs no random draws. A bootstrap of the values alone takes what it has not seen for impossible: of 10 answers of
which 98% are right, it covers the share of right ones in 18% of the cases, and if all are right, its interval is a
point.

Without a highest value the data do not bound what was not seen. So the interval holds as far as the values seen are
like those that were not, and if all values are equal, there is none.

Where questions belong together or count differently, what whole clusters contribute to the mean takes the place of the
values, and the further value counts as a cluster of average weight.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Floats
from rageval_spec.statistics.intervals import EXACT, compute_unseen_share, widen

if TYPE_CHECKING:
    from rageval_spec.statistics.intervals import ResamplingSettings
    from rageval_spec.statistics.weighted_clusters import Layout

    Values: TypeAlias = array[float] | Floats


ValueRange: TypeAlias = tuple[float, float | None]
"""The lowest and the highest value that a metric can have; `-inf` and None where there is none."""

GAFFKE = "gaffke"
BOOTSTRAP = "bootstrap-bca-t"
OF_CLUSTERS = "{} of clusters"
"""The values of `Interval.method`, beside `EXACT`; the last one has another in its place."""
FREE_METHODS = (BOOTSTRAP, OF_CLUSTERS.format(BOOTSTRAP))
"""The methods for values without a range."""
RANGE_ADVICE = "write 'range: [lowest, highest]' in the metric, such as 'range: [1, 5]', or [0, 1] for yes and no"
_ROUNDING = 1e-9
"""A value that is outside its range by no more than this, relative to the range, is at its end."""
_EQUAL = 1e-12
"""Numbers that are this close, relative to their size, are equal."""
_YES_NO = (0.0, 1.0)


@dataclass(frozen=True)
class MeanValues:
    """The values that a mean is of, logarithms for a geometric mean, and their range; None if that is not known.

    Without a `layout`, the questions behind the values are independent and count the same.
    """

    values: Values
    range: ValueRange | None
    layout: Layout | None = None


def list_bounds(metric: object) -> ValueRange | None:
    """The bounds that a metric declares; None if it declares none."""
    bounds: ValueRange | None = getattr(metric, "bounds", None)
    return bounds


def lacks_range(metric: object, statistic: str) -> bool:
    """Whether nobody said which values a metric can have, so that those that were not seen can be anything.

    No interval of the mean of such values may pass a gate (`benches/intervals.md`). Seconds, tokens and costs have no
    highest value either, but that is known of them.
    """
    bounds = list_bounds(metric)
    return statistic == "mean" and bounds is not None and bounds[0] == -math.inf


def compute_range(bounds: ValueRange | None, statistic: str, *series: Iterable[float]) -> ValueRange | None:
    """The range of a metric's values, for an interval of their mean, from the bounds that the metric declares.

    The values of a geometric mean are logarithms, and its bounds are not. If a value of `series`, all that were seen,
    is outside the bounds, the metric is wrong about them, and the range is not known. A metric that declares no bounds,
    but whose values are only 0 and 1, says yes and no.
    """
    if bounds is None or (bounds[0] == -math.inf and bounds[1] is None):
        return _YES_NO if all(value in _YES_NO for values in series for value in values) else None
    low, high = bounds
    if statistic == "geometric mean":
        low, high = (math.log(low) if low > 0 else -math.inf), (None if high is None else math.log(high))
    return None if any(not _is_inside(value, low, high) for values in series for value in values) else (low, high)


def _is_inside(value: float, low: float, high: float | None) -> bool:
    slack = _ROUNDING * max(1.0, abs(low) if low > -math.inf else 0.0, abs(high or 0.0))
    return value >= low - slack and (high is None or value <= high + slack)


def compute_difference_range(of_values: ValueRange | None) -> ValueRange | None:
    """The range of the differences of two values."""
    ends = _list_ends(of_values)
    return None if ends is None else (ends[0] - ends[1], ends[1] - ends[0])


def compute_mean_interval(one: MeanValues, statistics: ResamplingSettings) -> Interval | None:
    """The interval of one mean; see `compute_mean_intervals`."""
    return compute_mean_intervals([one], statistics)[0]


def compute_mean_intervals(
    means: Sequence[MeanValues], statistics: ResamplingSettings, threads: int | None = None
) -> list[Interval | None]:
    """The interval of each mean, in the order given.

    None for fewer than two values, or clusters of them; and for values that are all equal and have no range on both
    sides. For a geometric mean, the interval is of the logarithms. Each interval depends only on its own values and the
    settings.
    """
    parts = [_Parts.of(one) for one in means]
    bounded = [one for one in parts if one is not None and one.further is not None]
    free = [one for one in parts if one is not None and one.further is None and not one.is_constant]
    found = {
        id(one): ends
        for one, ends in zip(
            bounded,
            kernels.bound_means(
                [one.numbers for one in bounded],
                [one.further for one in bounded if one.further is not None],
                confidence=statistics.confidence,
                threads=threads,
            ),
            strict=True,
        )
    }
    drawn = kernels.bootstrap_means(
        [one.numbers for one in free],
        resamples=statistics.resamples,
        confidence=statistics.confidence,
        seed=statistics.seed,
        method="bca",
        threads=threads,
    )
    found |= {id(one): ends for one, ends in zip(free, drawn, strict=True) if ends is not None}
    return [
        None if one is None or id(one) not in found else one.describe(found[id(one)], statistics.confidence)
        for one in parts
    ]


@dataclass(frozen=True)
class _Parts:
    """What an interval is computed from: the values of `source`, or what its clusters contribute to the mean.

    `further` has the lowest and the highest number that one more could be; None if one of them is not known.
    """

    source: MeanValues
    numbers: Values
    further: tuple[float, float] | None

    @classmethod
    def of(cls, source: MeanValues) -> _Parts | None:
        """The parts of a mean; None if it has fewer than two values, or clusters of them."""
        layout, ends = source.layout, _list_ends(source.range)
        if layout is not None and not layout.is_plain:
            if layout.clusters < 2:
                return None
            parts, mean = layout.split(source.values), layout.average(source.values)
            reach = len(parts) * layout.concentration
            further = None if ends is None else (mean + reach * (ends[0] - mean), mean + reach * (ends[1] - mean))
            return cls(source, parts, further if further is not None and further[0] < further[1] else None)
        values = source.values if layout is None else layout.take(source.values)
        if len(values) < 2:
            return None
        if ends is not None:
            values = array("d", [min(max(value, ends[0]), ends[1]) for value in values])
        return cls(source, values, ends)

    @property
    def is_constant(self) -> bool:
        least, most = min(self.numbers), max(self.numbers)
        return bool(most - least <= _EQUAL * max(abs(least), abs(most)))

    @property
    def _is_of_clusters(self) -> bool:
        return self.source.layout is not None and not self.source.layout.is_plain

    def describe(self, found: kernels.IntervalEnds, confidence: float) -> Interval:
        low, high = found
        layout = self.source.layout
        if self.further is None and layout is not None and self._is_of_clusters:
            low, high = layout.widen(low, high, layout.average(self.source.values), confidence)
        elif self.further is None:
            count = len(self.numbers)
            mean, scale = math.fsum(self.numbers) / count, math.sqrt(count / (count - 1))
            low, high = widen(found, mean, count - 1, confidence, scale)
        least, most = self.source.range or (-math.inf, None)
        return Interval(max(low, least), high if most is None else min(high, most), confidence, self._name_method())

    def _name_method(self) -> str:
        if self.further is None:
            return OF_CLUSTERS.format(BOOTSTRAP) if self._is_of_clusters else BOOTSTRAP
        if self._is_of_clusters:
            return OF_CLUSTERS.format(GAFFKE)
        return EXACT if all(value in self.further for value in self.numbers) else GAFFKE


def _list_ends(of_values: ValueRange | None) -> tuple[float, float] | None:
    """Both ends of a range; None if one is missing, or if there is only one possible value."""
    if of_values is None or of_values[1] is None or not -math.inf < of_values[0] < of_values[1]:
        return None
    return of_values[0], of_values[1]


def subtract_means(
    first: float, of_first: Interval | None, second: float, of_second: Interval | None
) -> Interval | None:
    """The interval of the difference of two independent means, from the intervals of both; None if one has none.

    The method is MOVER (G. Y. Zou, A. Donner, "Construction of confidence limits about effect measures", Statistics in
    Medicine 27, 2008).
    """
    if of_first is None or of_second is None:
        return None
    low = first - second - math.hypot(first - of_first.low, of_second.high - second)
    high = first - second + math.hypot(of_first.high - first, second - of_second.low)
    return Interval(low, high, of_first.confidence, MOVER.format(of_first.method))


def average_means(means: Sequence[tuple[float, Interval | None]]) -> Interval | None:
    """The interval of the average of independent means, from the interval of each (MOVER); None if one has none."""
    known = [(mean, interval) for mean, interval in means if interval is not None]
    if not known or len(known) < len(means):
        return None
    average = math.fsum(mean for mean, _ in known) / len(known)
    low = math.hypot(*(mean - interval.low for mean, interval in known)) / len(known)
    high = math.hypot(*(interval.high - mean for mean, interval in known)) / len(known)
    first = known[0][1]
    return Interval(average - low, average + high, first.confidence, MOVER.format(first.method))


MOVER = "mover of {}"
"""The value of `Interval.method`, with that of the intervals that one was made from."""


def count_needed(
    mean: float, end: float, count: float, bound: float, of_values: ValueRange | None, confidence: float
) -> float | None:
    """How many values an interval needs so that its end reaches a bound, if mean and variance stay as they are.

    The distance of the end from the mean has two parts. One comes from what was not seen, as if all values were equal
    to the mean: it shrinks with the number of values. The rest shrinks with the square root of the number. Their
    squares add up, which for shares is within a few percent of the exact interval.

    `end` is the end of the interval, from `count` values or clusters of this range, that must reach the bound on its
    side. None if the bound equals the mean, or no number is enough.
    """
    wanted, now = abs(bound - mean), abs(end - mean)
    if wanted == 0:
        return None
    if now <= wanted:
        return count
    ends = _list_ends(of_values)
    span = 0.0 if ends is None else abs((ends[0] if end < mean else ends[1]) - mean)

    def unseen(values: float) -> float:
        return span * compute_unseen_share(values, confidence)

    share = min(1.0, now / unseen(count)) if span else 0.0
    spread = (now**2 - (share * unseen(count)) ** 2) * count
    low, high = count, 2 * count
    while math.hypot(share * unseen(high), math.sqrt(spread / high)) > wanted:
        low, high = high, 2 * high
        if high > _MOST:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        reached = math.hypot(share * unseen(middle), math.sqrt(spread / middle)) <= wanted
        low, high = (low, middle) if reached else (middle, high)
    return high


_MOST = 1e9
"""No evaluation has more questions than this."""
