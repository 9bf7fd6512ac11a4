"""Two windows of production compared, although their questions differ: unpaired, each value with its weight.

The interval of a difference comes from the intervals of both sides (MOVER: G. Y. Zou, A. Donner, Statistics in Medicine
27, 2008), so that it holds for small windows and for values that are all equal, too. The p-value is that of a
permutation test: values are dealt to the windows, with their weights, in all ways if those are few and at random
otherwise. For means, what is compared is the difference in its standard errors, so that the test also holds where the
windows vary differently (E. Chung, J. P. Romano, "Exact and asymptotically robust permutation tests", Annals of
Statistics 41, 2013). Equal means are 0 standard errors apart, even if the error is 0. Different means of two windows
without any spread are infinitely far apart: farther than in other divisions, and as far as in another such division.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Bools, Floats, np
from rageval_spec.statistics.intervals import Resampling
from rageval_spec.statistics.level_sequences import estimate_mean, lay_out_weights
from rageval_spec.statistics.mean_intervals import ValueRange, subtract_means
from rageval_spec.statistics.percentiles import split_draws
from rageval_spec.statistics.weighted_clusters import Placed, compute_percentile, compute_percentile_interval
from rageval_spec.statistics.window_summaries import WindowSummary

if TYPE_CHECKING:
    from rageval_spec.statistics.intervals import ResamplingSettings

    Numbers: TypeAlias = Sequence[float] | Floats
    Measure: TypeAlias = Callable[[Bools], Floats]


WELCH = "welch"
"""The value of `Interval.method` for differences of summaries."""
_ROUNDING = 1e-12
"""Numbers this close, relative to the largest value, are equal."""
_NO_SPREAD = 1e-7
"""A standard error that is a smaller part of the largest distance from the median is 0: rounding may be all of it."""
_TIE = 1e-9
"""Divisions whose statistics differ by a smaller part are equally extreme."""
_MOST_PERMUTED = 20_000
"""With more values than this in both windows together, the p-value comes from the normal distribution."""
_MOST_PERMUTATIONS = 1999
"""The most permutations for percentiles, of which each is sorted out by itself."""


class WindowDifference(NamedTuple):
    """The second window less the first.

    Attributes:
        before, now: the statistic of each window.
        difference: `now - before`.
        interval: of the difference; None if one of the windows has none of its own.
        p_value: two-sided; None for fewer than two values in a window.
    """

    before: float
    now: float
    difference: float
    interval: Interval | None
    p_value: float | None


def compare_means(
    before: Numbers,
    now: Numbers,
    before_weights: Numbers | None = None,
    now_weights: Numbers | None = None,
    *,
    value_range: ValueRange | None = None,
    settings: ResamplingSettings | None = None,
) -> WindowDifference | None:
    """The difference of the weighted means of two windows; None if one of them has no value.

    `before` and `now` have the shapes (n,) and (m,), and so have their weights: inverse probabilities, above 0.
    `value_range` has the lowest and the highest value that is possible.
    """
    chosen = settings or Resampling()
    sides = [
        estimate_mean(values, weights, value_range=value_range, settings=chosen)
        for values, weights in ((before, before_weights), (now, now_weights))
    ]
    if sides[0] is None or sides[1] is None:
        return None
    first, second = sides[0], sides[1]
    pooled = _Pooled.of(before, now, before_weights, now_weights)
    return WindowDifference(
        first.mean,
        second.mean,
        second.mean - first.mean,
        subtract_means(second.mean, second.interval, first.mean, first.interval),
        _test_means(pooled, chosen),
    )


def compare_percentiles(
    before: Numbers,
    now: Numbers,
    percent: int,
    before_weights: Numbers | None = None,
    now_weights: Numbers | None = None,
    *,
    settings: ResamplingSettings | None = None,
) -> WindowDifference | None:
    """The difference of the weighted percentiles of two windows; None if one of them has no value.

    The arguments are those of `compare_means`. The p-value holds if without a change both windows are alike, not only
    in this percentile. Each window needs as many values for an interval as `percentiles` says: 72 for the 95th.
    """
    chosen, pooled = settings or Resampling(), _Pooled.of(before, now, before_weights, now_weights)
    if not (0 < pooled.first < len(pooled.values)):
        return None
    found, intervals = [], []
    for values, weights in pooled.split():
        placed = Placed(values, lay_out_weights(weights), f"p{percent}")
        found.append(compute_percentile(values, percent, placed.layout.weights))
        intervals.append(compute_percentile_interval(placed, chosen.confidence))
    first, second = found
    interval = subtract_means(second, intervals[1], first, intervals[0])
    if interval is None or len(pooled.values) <= _MOST_PERMUTED:
        p_value = _test_percentiles(pooled, percent, chosen)
    else:
        error = (interval.high - interval.low) / 2 / NormalDist().inv_cdf((1 + chosen.confidence) / 2)
        p_value = _tail((second - first) / max(error, _ROUNDING))
    return WindowDifference(first, second, second - first, interval, p_value)


def compare_summaries(before: WindowSummary, now: WindowSummary, confidence: float = 0.95) -> WindowDifference | None:
    """The difference of the weighted means of two windows of which only summaries are kept; None if one is empty.

    The interval and the p-value are those of the normal distribution, for windows with many values. There is no
    interval if neither window has any spread.
    """
    if before.mean is None or now.mean is None:
        return None
    difference, errors = now.mean - before.mean, (before.error, now.error)
    if errors[0] is None or errors[1] is None:
        return WindowDifference(before.mean, now.mean, difference, None, None)
    error = math.hypot(errors[0], errors[1])
    is_same = abs(difference) <= _ROUNDING * max(abs(before.mean), abs(now.mean))
    p_value = _tail(0.0 if is_same else difference / error if error else math.inf)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    interval = Interval(difference - reach, difference + reach, confidence, WELCH) if error else None
    return WindowDifference(before.mean, now.mean, difference, interval, p_value)


def _tail(distance: float) -> float:
    """The probability that a standard normal number is as far from 0."""
    return math.erfc(abs(distance) / math.sqrt(2))


class _Pooled(NamedTuple):
    """The values of both windows in ascending order, their weights, and which are of the first window."""

    values: Floats
    weights: Floats
    is_first: Bools

    @classmethod
    def of(cls, before: Numbers, now: Numbers, before_weights: Numbers | None, now_weights: Numbers | None) -> _Pooled:
        sides = [np.asarray(of, dtype=np.float64) for of in (before, now)]
        weights = [
            np.ones(len(own)) if of is None else np.asarray(of, dtype=np.float64)
            for own, of in zip(sides, (before_weights, now_weights), strict=True)
        ]
        values, own = np.concatenate(sides), np.concatenate(weights)
        order = np.argsort(values, kind="stable")
        return cls(values[order], own[order], (np.arange(len(values)) < len(sides[0]))[order])

    @property
    def first(self) -> int:
        return int(self.is_first.sum())

    def split(self) -> list[tuple[Floats, Floats]]:
        return [(self.values[own], self.weights[own]) for own in (self.is_first, ~self.is_first)]

    @property
    def rounding(self) -> float:
        return _ROUNDING * float(np.abs(self.values).max())

    def deal(self, permutations: int, seed: int) -> Iterator[Bools]:
        """Which values are of the first window, in all divisions if those are at most `permutations`, else in so many
        random ones; in blocks of shape (rows, values)."""
        count, random = len(self.values), np.random.default_rng(seed)
        is_solvable = math.comb(count, self.first) <= permutations
        every = combinations(range(count), self.first)
        for rows in split_draws(math.comb(count, self.first) if is_solvable else permutations, count):
            if is_solvable:
                dealt = np.zeros((rows, count), dtype=bool)
                np.put_along_axis(dealt, np.array(list(islice(every, rows))), True, axis=1)
                yield dealt
            else:
                yield random.permuted(np.broadcast_to(self.is_first, (rows, count)).copy(), axis=1)

    def test(self, measure: Measure, settings: ResamplingSettings) -> float:
        """The part of all divisions that are at least as extreme as what was seen, which counts among random ones."""
        seen, extreme, tried = float(measure(self.is_first[None, :])[0]), 0, 0
        for dealt in self.deal(settings.permutations, settings.seed):
            extreme += int((measure(dealt) >= seen * (1 - _TIE)).sum())
            tried += len(dealt)
        is_solved = math.comb(len(self.values), self.first) <= settings.permutations
        return extreme / tried if is_solved else (1 + extreme) / (1 + tried)


def _test_means(pooled: _Pooled, settings: ResamplingSettings) -> float | None:
    count = len(pooled.values)
    if min(pooled.first, count - pooled.first) < 2:
        return None
    if count > _MOST_PERMUTED:
        return _tail(float(_measure(pooled, pooled.is_first[None, :])[0]))
    return pooled.test(lambda dealt: _measure(pooled, dealt), settings)


def _measure(pooled: _Pooled, is_first: Bools) -> Floats:
    """How far the means are apart, in standard errors, for each row of a division into windows."""
    values = pooled.values - pooled.values[len(pooled.values) // 2]
    means, variances = [], []
    for own in (is_first, ~is_first):
        weights = own * pooled.weights
        total, counts = weights.sum(axis=1), own.sum(axis=1)
        mean = weights @ values / total
        spread = ((weights * (values - mean[:, None])) ** 2).sum(axis=1)
        means.append(mean)
        variances.append(spread / total**2 * counts / (counts - 1))
    apart, error = np.abs(means[0] - means[1]), np.sqrt(variances[0] + variances[1])
    apart[apart <= pooled.rounding] = 0.0
    error[error <= _NO_SPREAD * float(np.abs(values).max())] = 0.0
    found: Floats = np.where(apart > 0, math.inf, 0.0)
    np.divide(apart, error, out=found, where=error > 0)
    return found


def _test_percentiles(pooled: _Pooled, percent: int, settings: ResamplingSettings) -> float | None:
    count = len(pooled.values)
    if min(pooled.first, count - pooled.first) < 2:
        return None

    def measure(divisions: Bools) -> Floats:
        rows = [[_find(pooled, own, percent) for own in (row, ~row)] for row in divisions]
        found: Floats = np.abs(np.subtract(*np.array(rows).T))
        found[found <= pooled.rounding] = 0.0
        return found

    fewer = Resampling(permutations=min(settings.permutations, _MOST_PERMUTATIONS), seed=settings.seed)
    return pooled.test(measure, fewer)


def _find(pooled: _Pooled, own: Bools, percent: int) -> float:
    return compute_percentile(pooled.values[own], percent, pooled.weights[own] / pooled.weights[own].sum())
