"""How closely two series of numbers go together: a judge's values and what people said, row by row.

Every function takes weights of shape (resamples, rows), how often each row counts, and returns a number for each
resample: not a number where it is undefined, because a series does not vary. `resampling.find_interval` makes intervals
from them. Weights of 1 give the ordinary coefficient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.statistics.resampling import Floats, Statistic

Association = Literal["pearson", "spearman", "kendall", "mae", "bias"]
MOST_PAIRED = 5000
"""The most rows for which Kendall's tau is computed: it compares each row with each other one."""
_ROWS_A_LEVEL = 20
"""From so many rows a level on, comparing levels is faster than comparing rows. Labels have few levels."""


def associate(judged: Floats, labelled: Floats) -> Mapping[Association, Statistic]:
    """The coefficients of two series of equal length, as functions of weights.

    | name | |
    |---|---|
    | `pearson` | the correlation of the numbers |
    | `spearman` | the correlation of their ranks; ties get their mean rank |
    | `kendall` | tau-b (Kendall, 1945): of the pairs of rows, those in the same order less those in the opposite one |
    | `mae` | the mean absolute difference |
    | `bias` | the mean of `judged - labelled`: positive if the judge is more generous than people |
    """
    gap = judged - labelled
    return {
        "pearson": lambda weights: _correlate(judged[None, :], labelled[None, :], weights),
        "spearman": lambda weights: _correlate(rank(judged, weights), rank(labelled, weights), weights),
        "kendall": lambda weights: _find_tau(judged, labelled, weights),
        "mae": lambda weights: weights @ abs(gap) / weights.sum(axis=1),
        "bias": lambda weights: weights @ gap / weights.sum(axis=1),
    }


def rank(numbers: Floats, weights: Floats) -> Floats:
    """The ranks of the numbers in each resample, from 1; equal numbers, and copies of a row, share their mean rank."""
    import numpy as np

    _, places = np.unique(numbers, return_inverse=True)
    totals = sum_groups(weights, places)
    before = np.cumsum(totals, axis=1) - totals
    ranks: Floats = (before + (totals + 1) / 2)[:, places]
    return ranks


def sum_groups(weights: Floats, places: NDArray[np.int64]) -> Floats:
    """The weight of each group in each resample; `places` has the number of each row's group, from 0."""
    import numpy as np

    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(places[order]) > 0])
    sums: Floats = np.add.reduceat(weights[:, order], starts, axis=1)
    return sums


def _correlate(first: Floats, second: Floats, weights: Floats) -> Floats:
    import numpy as np

    total = weights.sum(axis=1, keepdims=True)
    first = first - (weights * first).sum(axis=1, keepdims=True) / total
    second = second - (weights * second).sum(axis=1, keepdims=True) / total
    shared = (weights * first * second).sum(axis=1)
    spread = (weights * first**2).sum(axis=1) * (weights * second**2).sum(axis=1)
    return _divide(shared, np.sqrt(spread))


def _find_tau(first: Floats, second: Floats, weights: Floats) -> Floats:
    import numpy as np

    if len(first) > MOST_PAIRED:
        return np.full(len(weights), np.nan)
    places = [np.unique(numbers, return_inverse=True)[1] for numbers in (first, second)]
    few, many = sorted(places, key=lambda one: int(one.max()))
    by_levels = int(few.max()) < max(2, len(few) // _ROWS_A_LEVEL)
    same = _sum_by_levels(many, few, weights) if by_levels else _sum_pairs(many, few, weights)
    differ = [_count_untied(one, weights) for one in places]
    return _divide(same, np.sqrt(differ[0] * differ[1]))


def _count_untied(places: NDArray[np.int64], weights: Floats) -> Floats:
    """Twice the number of pairs of rows with different numbers."""
    untied: Floats = weights.sum(axis=1) ** 2 - (sum_groups(weights, places) ** 2).sum(axis=1)
    return untied


def _sum_pairs(first: NDArray[np.int64], second: NDArray[np.int64], weights: Floats) -> Floats:
    """Twice the pairs in the same order less those in the opposite one, pair by pair."""
    import numpy as np

    orders = [np.sign(one[:, None] - one[None, :]).astype(float) for one in (first, second)]
    sums: Floats = ((weights @ (orders[0] * orders[1])) * weights).sum(axis=1)
    return sums


def _sum_by_levels(first: NDArray[np.int64], second: NDArray[np.int64], weights: Floats) -> Floats:
    """The same, level by level of the second series: each row is compared with all rows of lower levels at once."""
    import numpy as np

    same, lower = np.zeros(len(weights)), np.zeros((len(weights), int(first.max()) + 1))
    for level in range(int(second.max()) + 1):
        here = sum_groups(weights * (second == level), first)
        upto = np.cumsum(lower, axis=1)
        same += (here * (2 * upto - lower - upto[:, -1:])).sum(axis=1)
        lower += here
    return 2 * same


_NOTHING = 1e-12
"""What rounding can leave of a spread that is 0."""


def _divide(part: Floats, whole: Floats) -> Floats:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > _NOTHING, part / whole, np.nan)
