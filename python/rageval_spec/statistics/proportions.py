"""Intervals of proportions."""

from __future__ import annotations

import math
from statistics import NormalDist

from rageval_spec.data.interval import Interval

METHOD = "wilson"
"""The value of `Interval.method` for proportions."""


def find_wilson_interval(count: int, total: int, confidence: float = 0.95) -> Interval | None:
    """Wilson's score interval (1927) of the proportion `count / total`; None if `total` is 0.

    It stays within [0, 1], and covers its confidence on average also for few queries and for proportions near 0 or 1,
    where the interval of the normal approximation does not.
    """
    if total == 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = count / total, z * z / total
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == total else min(1.0, centre + half)
    return Interval(low, high, confidence, METHOD)
