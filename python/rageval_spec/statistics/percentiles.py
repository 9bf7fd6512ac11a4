"""Percentiles, their differences, and intervals of both that are valid for any distribution of the numbers.

The statistics that sum up the values of a cell are here too, and what must be known of a metric to choose one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rageval_spec import kernels
from rageval_spec.data import arithmetic
from rageval_spec.libraries import Bools, Floats, compile_later, np
from rageval_spec.statistics.intervals import compute_binomial, compute_unseen_share

if TYPE_CHECKING:
    from array import array

    Numbers: TypeAlias = Floats | array[float]


ORDER_STATISTICS = "order-statistics"
"""The value of `Interval.method` for percentiles."""
DIFFERENCE_METHOD = "bootstrap-percentile"
"""The value of `Interval.method` for differences of percentiles."""
_BLOCK = 1_000_000
"""How many numbers are drawn at once."""
_STATISTIC = compile_later(r"p([1-9][0-9]?)")
_ROUNDING = 1e-12
"""So that an exchange that gives the same difference in another order of rounding counts as one."""
_NEGLIGIBLE = 40
"""The number of standard deviations from its mean beyond which a binomial probability is too small for a double."""


def read_percentile(statistic: str) -> int | None:
    """The 95 of the statistic "p95"; None for a statistic that is not a percentile."""
    match = _STATISTIC.fullmatch(statistic)
    return int(match[1]) if match else None


def compute_percentile(numbers: Numbers, percent: int) -> float:
    """The percentile of at least one number, interpolated linearly (definition 7 of Hyndman and Fan, 1996)."""
    return float(np.percentile(numbers, percent))


def compute_percentile_interval(numbers: Numbers, percent: int, confidence: float) -> tuple[float, float] | None:
    """Two of the numbers, between which the percentile lies with at least this confidence.

    The probability beyond each end is at most (1 - confidence) / 2 (David and Nagaraja, Order Statistics, 2003, section
    7.1). Even at a very low confidence, the interval contains the percentile itself. None if there are too few numbers
    for one of the ends: at 95 %, the 50th percentile needs 6 numbers, and the 95th needs 72.
    """
    ranks = compute_ranks(len(numbers), percent, confidence)
    if ranks is None:
        return None
    ordered, seen = np.sort(numbers), compute_percentile(numbers, percent)
    low, high = (float(ordered[rank - 1]) for rank in ranks)
    return min(low, seen), max(high, seen)


def bootstrap_difference(
    numbers: Numbers, base: Numbers, percent: int, *, resamples: int, confidence: float, seed: int
) -> tuple[float, float] | None:
    """The interval of the difference of two percentiles of paired numbers, the first minus the second.

    Pairs are drawn with replacement, and the ends are quantiles of the differences (the percentile bootstrap; Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13). A percentile near the end of few numbers hardly
    varies between resamples, so there is none if `compute_ranks` needs more numbers. If all resamples have the same
    difference, as those of equal pairs do, the interval comes from those of both percentiles.
    """
    pairs = np.array([numbers, base], dtype=np.float64)
    count = pairs.shape[1]
    if compute_ranks(count, percent, confidence) is None:
        return None
    random = np.random.default_rng(seed)
    drawn = []
    for rows in split_draws(resamples, count):
        chosen = random.integers(0, count, (rows, count), dtype=np.uint32)
        first, second = (np.percentile(of[chosen], percent, axis=1, overwrite_input=True) for of in pairs)
        drawn.append(first - second)
    return compute_difference_ends(drawn, lambda at: float(np.percentile(pairs[0], at)), percent, count, confidence)


def compute_difference_ends(
    drawn: Sequence[Floats],
    find: Callable[[float], float],
    percent: int,
    count: float,
    confidence: float,
) -> tuple[float, float] | None:
    """The interval of a difference of percentiles, from the differences in resamples.

    If these are all the same: had a share of pairs that was not seen any other values, the percentile would be one that
    lies further down or up by this share. `find` gives the percentiles of the values, and `count` is how many pairs
    there are. None if one of the two percentiles is not between 0 and 100.
    """
    tail = 50 * (1 - confidence)
    low, high = map(float, np.percentile(np.concatenate(drawn), (tail, 100 - tail)))
    if low < high:
        return low, high
    share = compute_unseen_share(count, confidence)
    below, above = (100 * (percent / 100 + by) for by in (-share, share))
    if below <= 0 or above >= 100:
        return None
    middle = find(percent)
    return low - (middle - find(below)), low + (find(above) - middle)


def permute(find: Callable[[Bools], Floats], parts: int, width: int, *, permutations: int, seed: int) -> float:
    """The p-value of a difference: (1 + the exchanges with one at least as large) / (1 + all).

    `find` has the size of the difference for each row of what stays in its place, of shape (exchanges, parts); `width`
    is how many numbers an exchange holds.
    """
    seen = float(find(np.ones((1, parts), dtype=bool))[0])
    random, extreme = np.random.default_rng(seed), 0
    for rows in split_draws(permutations, width):
        stays = random.integers(0, 2, (rows, parts), dtype=np.uint8).astype(bool)
        extreme += int((find(stays) >= seen - _ROUNDING * max(1.0, seen)).sum())
    return (1 + extreme) / (1 + permutations)


def permute_difference(numbers: Numbers, base: Numbers, percent: int, *, permutations: int, seed: int) -> float:
    """The two-sided p-value of the difference of two percentiles of paired numbers.

    The numbers of each pair are exchanged with probability 1/2: if both sides were alike, each exchange would be as
    likely as what was seen.
    """
    first, second = np.asarray(numbers, dtype=np.float64), np.asarray(base, dtype=np.float64)

    def find(stays: Bools) -> Floats:
        ends = (np.where(stays, *pair) for pair in ((first, second), (second, first)))
        above, below = (np.percentile(of, percent, axis=1, overwrite_input=True) for of in ends)
        found: Floats = np.abs(above - below)
        return found

    return permute(find, len(first), len(first), permutations=permutations, seed=seed)


def split_draws(total: int, width: int) -> Iterator[int]:
    """How many rows of `width` numbers to draw at once, until there are `total`."""
    rows = max(1, _BLOCK // width)
    yield from [rows] * (total // rows)
    if total % rows:
        yield total % rows


def compute_ranks(count: int, percent: int, confidence: float) -> tuple[int, int] | None:
    """The ranks (from 1) of the interval's ends among `count` numbers in ascending order.

    The number B of values below the percentile has a binomial distribution. The lower end is the highest rank r with
    P(B < r) <= (1 - confidence) / 2, and the upper end the lowest rank r with P(B >= r) <= (1 - confidence) / 2. None
    if there is no such rank.
    """
    share, tail = percent / 100, (1 - confidence) / 2
    spread = _NEGLIGIBLE * (math.sqrt(count * share * (1 - share)) + 1)
    first, last = max(0, math.floor(count * share - spread)), min(count, math.ceil(count * share + spread))
    low, below = first, 0.0
    while low < last and (below := below + compute_binomial(low, count, share)) <= tail:
        low += 1
    high, above = last + 1, 0.0
    while high > first + 1 and (above := above + compute_binomial(high - 1, count, share)) <= tail:
        high -= 1
    return (low, high) if low >= 1 and high <= count else None


Statistic: TypeAlias = str
"""`mean`, `geometric mean`, `sum`, or a percentile like `p95`."""

_MEASURES: Mapping[Statistic, str] = {"mean": "map", "geometric mean": "gm_map", "sum": "num_ret"}
"""For each statistic, a measure whose values the kernel aggregates in this way, in trec_eval's order of addition."""


class Summarized(Protocol):
    """What `aggregate` must know about a metric; `plugin.Metric` has these properties."""

    @property
    def statistic(self) -> Statistic:
        """The statistic that the aggregate holds."""

    @property
    def higher_is_better(self) -> bool | None:
        """False for a metric whose low values are good; None if neither direction is good."""


def summarize(metric: Summarized, numbers: array[float] | Floats) -> float:
    """The metric's statistic of at least one number.

    A mean is rounded once, so that its order does not matter. Only the numbers of ranking measures are added in their
    order, as trec_eval does.
    """
    percent = read_percentile(metric.statistic)
    if percent is not None:
        return compute_percentile(numbers, percent)
    if metric.statistic == "mean" and getattr(metric, "group", "ranking") != "ranking":
        return arithmetic.average(numbers)
    return kernels.aggregate_measure(_MEASURES[metric.statistic], numbers)
