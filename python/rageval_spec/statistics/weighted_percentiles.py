"""Percentiles of questions that belong together or count differently, their differences, and intervals of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rageval_spec.statistics.corrected import find_t
from rageval_spec.statistics.percentiles import split_draws

if TYPE_CHECKING:
    from rageval_spec.statistics.layout import Layout
    from rageval_spec.statistics.resampling import Floats

METHOD = "woodruff"
"""The value of `Interval.method`."""
DIFFERENCE_METHOD = "cluster-bootstrap-percentile"
"""The value of `Interval.method` for differences."""
_BLOCK = 1_000_000
"""How many numbers are drawn at once."""
_ROUNDING = 1e-12


def find_percentile(numbers: Floats, percent: float, weights: Floats) -> float:
    """The weighted percentile of at least one number.

    The i-th smallest number is the percentile `(W(i) - w(1)) / (1 - w(1))`, with `W(i)` the weight up to and including
    it and `w(1)` that of the smallest; between them it is interpolated. With equal weights this is definition 7 of
    Hyndman and Fan (1996).
    """
    import numpy as np

    order = np.argsort(numbers, kind="stable")
    return float(_find_all(numbers[order], percent, weights[order][None, :])[0])


def _find_all(ordered: Floats, percent: float, weights: Floats) -> Floats:
    """The percentile for each row of weights, of shape (rows, numbers); a row may have weights of 0."""
    import numpy as np

    rows = np.arange(len(weights))
    counted = weights > 0
    first = weights[rows, counted.argmax(axis=1)]
    upto = np.cumsum(weights, axis=1)
    wanted = first + (upto[:, -1] - first) * (percent / 100)
    # The number at which the weight reaches what is wanted, and the one that counts before it.
    slack = _ROUNDING * upto[:, -1]
    high = (upto >= (wanted - slack)[:, None]).argmax(axis=1)
    last = weights.shape[1] - 1 - counted[:, ::-1].argmax(axis=1)
    high = np.minimum(high, last)
    before = np.where(counted, np.arange(weights.shape[1]), -1)
    low = np.concatenate([np.full((len(rows), 1), -1), np.maximum.accumulate(before, axis=1)[:, :-1]], axis=1)[
        rows, high
    ]
    low = np.where(low < 0, high, low)
    share = np.clip(1 - (upto[rows, high] - wanted) / np.maximum(weights[rows, high], _ROUNDING), 0.0, 1.0)
    share = np.where(np.abs(upto[rows, high] - wanted) <= slack, 1.0, share)
    found: Floats = np.where(low == high, ordered[high], ordered[low] + share * (ordered[high] - ordered[low]))
    return found


def find_interval(numbers: Floats, percent: int, layout: Layout, confidence: float) -> tuple[float, float] | None:
    """The interval of a weighted percentile (R. S. Woodruff, "Confidence intervals for medians and other position
    measures", Journal of the American Statistical Association 47, 1952).

    The share of values up to the percentile has an interval, of Student's t; its ends are percentiles too. None if one
    of them is not between 0 and 1, because the values are too few, or for a single cluster.
    """
    import numpy as np

    own = layout.take(numbers)
    if layout.clusters < 2:
        return None
    seen = find_percentile(own, percent, layout.weights)
    error = math.sqrt(layout.find_variance((np.asarray(numbers) <= seen).astype(float)))
    reach = find_t((1 + confidence) / 2, layout.degrees) * error
    low, high = percent / 100 - reach, percent / 100 + reach
    if low <= 0 or high >= 1 or error == 0:
        return None
    ends = (find_percentile(own, 100 * end, layout.weights) for end in (low, high))
    first, last = ends
    return min(first, seen), max(last, seen)


def bootstrap_difference(
    numbers: Floats, base: Floats, percent: int, layout: Layout, *, resamples: int, confidence: float, seed: int
) -> tuple[float, float] | None:
    """The interval of the difference of two percentiles of paired numbers, the first minus the second.

    Whole clusters are drawn, with all their pairs. None if either percentile has no interval of its own.
    """
    import numpy as np

    if any(find_interval(of, percent, layout, confidence) is None for of in (numbers, base)):
        return None
    orders = [(own := layout.take(of), np.argsort(own, kind="stable")) for of in (numbers, base)]
    random, drawn = np.random.default_rng(seed), []
    for rows in split_draws(resamples, max(len(layout.weights), layout.clusters)):
        places = random.integers(0, layout.clusters, (rows, layout.clusters)) + (
            np.arange(rows)[:, None] * layout.clusters
        )
        counts = np.bincount(places.ravel(), minlength=rows * layout.clusters).reshape(rows, layout.clusters)
        weights = counts[:, layout.members] * layout.weights
        first, second = (_find_all(own[order], percent, weights[:, order]) for own, order in orders)
        drawn.append(first - second)
    tail = 50 * (1 - confidence)
    low, high = np.percentile(np.concatenate(drawn), (tail, 100 - tail))
    return float(low), float(high)


def permute_difference(
    numbers: Floats, base: Floats, percent: int, layout: Layout, *, permutations: int, seed: int
) -> float:
    """The two-sided p-value of the difference of two percentiles of paired numbers.

    The two sides of whole clusters are exchanged with probability 1/2.
    """
    import numpy as np

    both = np.concatenate([layout.take(numbers), layout.take(base)])
    order = np.argsort(both, kind="stable")
    ordered, weights = both[order], np.tile(layout.weights, 2)
    is_first = np.arange(len(both)) < len(layout.weights)
    members = np.tile(layout.members, 2)

    def find(stays: Floats) -> Floats:
        kept = stays[:, members] == is_first
        above, below = (np.where(side, weights, 0.0)[:, order] for side in (kept, ~kept))
        return np.abs(_find_all(ordered, percent, above) - _find_all(ordered, percent, below))

    seen = float(find(np.ones((1, layout.clusters), dtype=bool))[0])
    random, extreme = np.random.default_rng(seed), 0
    for rows in split_draws(permutations, len(both)):
        stays = random.integers(0, 2, (rows, layout.clusters), dtype=np.uint8).astype(bool)
        extreme += int((find(stays) >= seen - _ROUNDING * max(1.0, seen)).sum())
    return (1 + extreme) / (1 + permutations)
