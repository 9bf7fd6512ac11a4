"""Finds changes of level in a series of numbers, with a known rate of false alarms.

The test is a permutation test of the largest standardised difference between what is before and what is after a point
(the CUSUM statistic), repeated in the two parts as long as it finds a change (binary segmentation). If the numbers of
a series are exchangeable, which they are without a change, the largest difference is as likely to stand out in the
order of time as in any other order. So the probability that such a series gets any mark is at most `alpha`. Numbers
that drift slowly, or that depend on the one before, are not exchangeable, and are marked more often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALPHA = 0.01
SHORTEST = 5
"""The fewest numbers on either side of a change."""
_PERMUTATIONS = 999
_NO_CHANCE = 1e-9
"""Below this bound on the share of orders with as large a difference, none is tried: it would not be found."""
_BATCH_SIZE = 1_000_000
"""How many permuted numbers are held at a time."""


def find_changes(values: Sequence[float], alpha: float = ALPHA, seed: int = 20_240_601) -> list[int]:
    """The indexes at which a new level begins, ascending.

    The same numbers give the same result. Fewer than `2 * SHORTEST` numbers have no change.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    found: list[int] = []
    waiting = [(0, len(values))]
    numbers = np.asarray(values, dtype=np.float64)
    while waiting:
        start, end = waiting.pop()
        index = _find_change(numbers[start:end], alpha, random)
        if index is not None:
            found.append(start + index)
            waiting += [(start, start + index), (start + index, end)]
    return sorted(found)


def _find_change(values: NDArray[np.float64], alpha: float, random: np.random.Generator) -> int | None:
    """Where the largest difference is, if fewer than a share of `alpha` of all orders have one as large."""
    import numpy as np

    count = len(values)
    if count < 2 * SHORTEST or np.ptp(values) == 0:
        return None
    centred = values - values.mean()
    differences = _measure(centred[None, :])[0]
    if _bound_chance(float(differences.max()), count, float(np.ptp(values))) < _NO_CHANCE:
        return int(differences.argmax()) + SHORTEST
    observed = differences.max() * (1 - 1e-12)  # an order that only rounds otherwise counts as equal
    allowed = int(alpha * (_PERMUTATIONS + 1)) - 1
    exceeding, left = 0, _PERMUTATIONS
    rows = 16  # without a change, a few orders are enough to see it
    while left and exceeding <= allowed:
        rows = min(left, rows, max(1, _BATCH_SIZE // count))
        orders = random.permuted(np.broadcast_to(centred, (rows, count)).copy(), axis=1)
        exceeding += int((_measure(orders).max(axis=1) >= observed).sum())
        left -= rows
        rows *= 4
    return None if exceeding > allowed else int(differences.argmax()) + SHORTEST


def _bound_chance(largest: float, count: int, span: float) -> float:
    """At most this share of all orders has as large a difference at any place.

    By Serfling's inequality (1974) for the sum of the values on the shorter side, drawn without replacement from values
    that span a range, at each place.
    """
    return 2 * count * math.exp(-2 * largest**2 * count / (count + 2) / span**2)


def _measure(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row of centred numbers and each place, the difference between the sides, in standard errors."""
    import numpy as np

    count = rows.shape[1]
    before = np.arange(SHORTEST, count - SHORTEST + 1)
    sums = np.cumsum(rows, axis=1)[:, SHORTEST - 1 : count - SHORTEST]
    measured: NDArray[np.float64] = np.abs(sums) / np.sqrt(before * (count - before) / count)
    return measured
