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
    orders = [np.sign(numbers[:, None] - numbers[None, :]) for numbers in (first, second)]
    same, *differ = (_sum_pairs(pairs, weights) for pairs in (orders[0] * orders[1], *map(np.abs, orders)))
    return _divide(same, np.sqrt(differ[0] * differ[1]))


def _sum_pairs(pairs: Floats, weights: Floats) -> Floats:
    sums: Floats = ((weights @ pairs) * weights).sum(axis=1)
    return sums


_NOTHING = 1e-12
"""What rounding can leave of a spread that is 0."""


def _divide(part: Floats, whole: Floats) -> Floats:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > _NOTHING, part / whole, np.nan)
