"""What a set of queries can show: the power of a paired test, the smallest drop it finds, and the queries it needs.

The formulas are those of the two-sided paired t-test in their normal form, with the correction of W. C. Guenther
("Sample size formulas for normal theory t tests", The American Statistician 35, 1981), which adds z²/2 queries. The
permutation test that gates use has nearly the same power on means of values in [0, 1].
"""

from __future__ import annotations

import math
from statistics import NormalDist

POWER = 0.8
ALPHA = 0.05
_NORMAL = NormalDist()


def find_smallest_drop(sd: float, queries: int, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest true difference that a paired test on `queries` queries finds with this power.

    `sd` is the standard deviation of the paired differences. None if the queries are too few for any difference.
    """
    used = queries - _correction(alpha)
    return None if used < 1 else sd * _reach(alpha, power) / math.sqrt(used)


def count_queries(sd: float, drop: float, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """How many queries a paired test needs to find a true difference of `drop` with this power; None if `drop` is 0."""
    if drop <= 0:
        return None
    needed = (sd * _reach(alpha, power) / drop) ** 2 + _correction(alpha)
    return max(math.ceil(_correction(alpha) + 1), math.ceil(needed))


def compute_power(sd: float, queries: int, drop: float, alpha: float = ALPHA) -> float:
    """The probability that a paired test on `queries` queries finds a true difference of `drop`."""
    used = queries - _correction(alpha)
    if used < 1 or drop <= 0:
        return 0.0
    return 1.0 if sd == 0 else _NORMAL.cdf(drop * math.sqrt(used) / sd - _NORMAL.inv_cdf(1 - alpha / 2))


def _reach(alpha: float, power: float) -> float:
    """The distance between no difference and the one to find, in standard errors."""
    return _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(power)


def _correction(alpha: float) -> float:
    """Guenther's queries, which make up for the standard deviation being estimated."""
    return _NORMAL.inv_cdf(1 - alpha / 2) ** 2 / 2
