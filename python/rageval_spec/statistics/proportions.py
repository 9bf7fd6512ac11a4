"""Intervals of proportions."""

from __future__ import annotations

import math
from statistics import NormalDist

from rageval_spec.data.interval import Interval
from rageval_spec.statistics.guarantees import find_upper

METHOD = "wilson"
EXACT = "clopper-pearson"
"""The values of `Interval.method` for proportions."""


def find_wilson_interval(count: float, total: float, confidence: float = 0.95) -> Interval | None:
    """Wilson's score interval (1927) of the proportion `count / total`; None if `total` is 0.

    It stays within [0, 1], and covers its confidence on average also for few queries and for proportions near 0 or 1,
    where the interval of the normal approximation does not. The numbers can be effective ones, which are not whole.
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


def find_p_of_excess(count: int, total: int, whole_count: int, whole_total: int) -> float:
    """Fisher's exact test, one-sided: the probability that a part has so many hits if it is a random part of the whole.

    Args:
        count, total: the hits and the size of the part.
        whole_count, whole_total: those of the whole, the part included.
    """
    most = min(total, whole_count)
    ways = _log_choose(whole_total, total)
    logs = [
        _log_choose(whole_count, hits) + _log_choose(whole_total - whole_count, total - hits) - ways
        for hits in range(max(count, total - (whole_total - whole_count)), most + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, logs)))


def _log_choose(among: int, chosen: int) -> float:
    return math.lgamma(among + 1) - math.lgamma(chosen + 1) - math.lgamma(among - chosen + 1)


def find_exact_interval(count: int, total: int, confidence: float = 0.95) -> Interval | None:
    """The exact interval of Clopper and Pearson (1934) of the proportion `count / total`; None if `total` is 0.

    It covers its confidence at least, whatever the proportion.
    """
    if total == 0:
        return None
    one_sided = (1 + confidence) / 2
    low = 0.0 if count == 0 else 1 - find_upper(total - count, total, one_sided)
    return Interval(low, find_upper(count, total, one_sided), confidence, EXACT)


def find_p_of_signs(count: int, total: int) -> float:
    """The two-sided exact sign test: the probability of a count at least as far from half of the total.

    With the numbers of pairs that changed one way and the other, this is McNemar's exact test.
    """
    least = min(count, total - count)
    tail = math.fsum(math.exp(_log_choose(total, hits) - total * math.log(2)) for hits in range(least + 1))
    return min(1.0, 2 * tail)
