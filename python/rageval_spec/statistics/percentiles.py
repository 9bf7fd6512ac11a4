"""Percentiles and their intervals, which hold whatever the numbers' distribution is."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.float64] | array[float]

METHOD = "order-statistics"
"""What an interval of a percentile says of how it was found."""
_STATISTIC = re.compile(r"p([1-9][0-9]?)")
_NEGLIGIBLE = 40
"""So many standard deviations from its mean a binomial distribution has nothing left that a double could hold."""


def read_percentile(statistic: str) -> int | None:
    """The 95 of the statistic "p95"; None for a statistic that is no percentile."""
    match = _STATISTIC.fullmatch(statistic)
    return int(match[1]) if match else None


def find_percentile(numbers: Numbers, percent: int) -> float:
    """The percentile of one number or more, linear between the two nearest (definition 7 of Hyndman and Fan, 1996)."""
    import numpy as np

    return float(np.percentile(numbers, percent))


def find_interval(numbers: Numbers, percent: int, confidence: float) -> tuple[float, float] | None:
    """Two of the numbers between which the percentile lies, with at least this confidence.

    Both ends leave out at most half of the rest (David and Nagaraja, Order Statistics, 2003, section 7.1). Where the
    confidence is so low that the numbers next to the percentile would do, the interval still holds the percentile
    itself. None where there are too few numbers for an end: at 95 %, 6 are needed for the 50th, 72 for the 95th.
    """
    import numpy as np

    ranks = find_ranks(len(numbers), percent, confidence)
    if ranks is None:
        return None
    ordered, seen = np.sort(numbers), find_percentile(numbers, percent)
    low, high = (float(ordered[rank - 1]) for rank in ranks)
    return min(low, seen), max(high, seen)


def find_ranks(count: int, percent: int, confidence: float) -> tuple[int, int] | None:
    """Ranks from 1 of the interval's ends among `count` numbers in ascending order.

    How many of them are below the percentile is binomially distributed: the lower end is the highest rank r with
    P(B < r) <= (1 - confidence) / 2, the upper end the lowest with P(B >= r) <= (1 - confidence) / 2.
    """
    share, tail = percent / 100, (1 - confidence) / 2
    spread = _NEGLIGIBLE * (math.sqrt(count * share * (1 - share)) + 1)
    first, last = max(0, math.floor(count * share - spread)), min(count, math.ceil(count * share + spread))
    low, below = first, 0.0
    while low < last and (below := below + _binomial(low, count, share)) <= tail:
        low += 1
    high, above = last + 1, 0.0
    while high > first + 1 and (above := above + _binomial(high - 1, count, share)) <= tail:
        high -= 1
    return (low, high) if low >= 1 and high <= count else None


def _binomial(hits: int, count: int, share: float) -> float:
    """P(B = hits)."""
    ways = math.lgamma(count + 1) - math.lgamma(hits + 1) - math.lgamma(count - hits + 1)
    return math.exp(ways + hits * math.log(share) + (count - hits) * math.log1p(-share))
