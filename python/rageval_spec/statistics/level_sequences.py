"""The mean of a window, from values with weights: its interval, and how certain it is that it lies beyond a bound.

A value that was sampled with a probability stands for as many as the inverse of it says: its weight. The mean is
Hájek's, the sum of the weighted values over the sum of the weights. Its interval is that of `mean_intervals`, which
holds at a time that was fixed beforehand. What may be looked at while a window fills is a confidence sequence of
`sequential_analysis`. Weights need no other theory there: for a supposed mean m and weights between 0 and 1, the number
m + weight * (value - m) lies in the range of the values, and its mean is m if that of all traffic is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Floats, np
from rageval_spec.statistics.intervals import Resampling, number_clusters
from rageval_spec.statistics.mean_intervals import MeanValues, ValueRange, compute_mean_interval
from rageval_spec.statistics.sequential_analysis import BETTING, compute_sequence_interval, grow_capital
from rageval_spec.statistics.weighted_clusters import Layout, lay_out_clusters

if TYPE_CHECKING:
    from rageval_spec.statistics.intervals import ResamplingSettings

    Numbers: TypeAlias = Sequence[float] | Floats


_STEPS = 40
"""How often a bisection halves the range."""


class WindowMean(NamedTuple):
    """The mean of a window.

    Attributes:
        mean: Hájek's weighted mean.
        interval: None for fewer than two values, or equal ones without a range.
        values: how many values there are.
        effective: how many values of equal weight are worth as much (Kish).
    """

    mean: float
    interval: Interval | None
    values: int
    effective: float


class Level(NamedTuple):
    """On which side of a bound a mean lies.

    Attributes:
        below, above: the certainty, from 0 to 1, that the mean is below the bound, and above it. If it is not, the
            probability that a certainty ever reaches c, at any of the looks, is at most 1 - c.
        interval: of the mean; it holds at all looks together.
        values: how many values there are.
    """

    below: float
    above: float
    interval: Interval
    values: int


def lay_out_weights(
    weights: Numbers,
    strata: Sequence[Hashable] | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> Layout:
    """The layout of a window's values, of shape (n,), for all that takes one.

    Args:
        weights: shape (n,), inverse probabilities, above 0. In a stratum from which a fixed number was drawn, it is the
            number of all its traces over the number drawn.
        strata: what each value was drawn from; None if all were drawn from the same.
        clusters: what each value belongs to, such as a conversation; None if each is on its own.

    Raises `ValueError` if a weight is not a number above 0.
    """
    own = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(own) & (own > 0)).all():
        raise ValueError("a weight is not a number above 0")
    if not len(own):
        return lay_out_clusters([])
    places = number_clusters(strata, len(own)) if strata is not None else np.zeros(len(own), dtype=np.int64)
    members = number_clusters(clusters, len(own))
    inside = np.ones(int(places.max()) + 1)
    is_weighted = bool(own.min() < own.max())
    return Layout(np.arange(len(own)), own / own.sum(), members, places, inside, 0.0, is_weighted, clusters is not None)


def estimate_mean(
    values: Numbers,
    weights: Numbers | None = None,
    strata: Sequence[Hashable] | None = None,
    clusters: Sequence[Hashable] | None = None,
    *,
    value_range: ValueRange | None = None,
    settings: ResamplingSettings | None = None,
) -> WindowMean | None:
    """The mean of a window and its interval; None for a window without values, which has no mean.

    The arguments are those of `lay_out_weights`. `value_range` has the lowest and the highest value that is possible,
    as in `mean_intervals`.
    """
    numbers = np.asarray(values, dtype=np.float64)
    layout = lay_out_weights(np.ones(len(numbers)) if weights is None else weights, strata, clusters)
    if not len(numbers):
        return None
    interval = compute_mean_interval(MeanValues(numbers, value_range, layout), settings or Resampling())
    return WindowMean(layout.average(numbers), interval, len(numbers), layout.effective)


def judge_level(
    values: Numbers,
    bound: float,
    weights: Numbers | None = None,
    *,
    largest: float | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
) -> Level:
    """How certain it is that the mean behind the values of a window is below a bound, or above it.

    It may be asked after each value, as often as one likes, and always about all values since the window began.

    Args:
        values: shape (n,), in the order in which they came, within `bounds`. Without any, nothing is certain.
        bound: the number that the mean is compared with; outside of `bounds` it is certain on which side the mean is.
        weights: shape (n,), inverse probabilities, above 0; None if all count the same.
        largest: the largest weight that a value of this window may have; by default, that of these values, which is
            only right for a single look.
        confidence: of the interval; what is wagered is chosen for it, too.

    Raises `ValueError` for a value outside the bounds, or a weight that is not above 0 or above the largest.
    """
    low, span = bounds[0], bounds[1] - bounds[0]
    scaled = (np.asarray(values, dtype=np.float64) - low) / span
    if not ((scaled >= 0) & (scaled <= 1)).all():
        raise ValueError(f"a value is not between {bounds[0]:g} and {bounds[1]:g}")
    own = _scale_weights(weights, largest, len(scaled))
    place = (bound - low) / span
    below, above = (1 - 1 / most for most in _find_most(scaled, own, place, confidence))
    if not 0 <= place <= 1:
        below, above = float(place > 1), float(place < 0)
    return Level(below, above, _compute_interval(scaled, own, confidence, bounds), len(scaled))


def _scale_weights(weights: Numbers | None, largest: float | None, count: int) -> Floats | None:
    """The weights relative to the largest; None if all are equal to it."""
    own = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    most = largest or (float(own.max()) if count else 1.0)
    if own.shape != (count,) or not ((own > 0) & (own <= most)).all():
        raise ValueError(f"each value needs a weight above 0 and at most {most:g}")
    return None if (own == most).all() else own / most


def _find_most(scaled: Floats, own: Floats | None, mean: float, confidence: float) -> tuple[float, float]:
    """The most that the bettors had who hold that the mean is below the supposed one, and above it; at least 1."""
    if not len(scaled) or not 0 <= mean <= 1:
        return 1.0, 1.0
    capital = grow_capital(scaled if own is None else mean + own * (scaled - mean), mean, None, confidence)
    below, above = (math.exp(min(700.0, max(0.0, float(path.max())))) for path in (capital.below, capital.above))
    return below, above


def _compute_interval(scaled: Floats, own: Floats | None, confidence: float, bounds: tuple[float, float]) -> Interval:
    """The means that the values have not excluded."""
    if own is None or not len(scaled):
        plain = compute_sequence_interval(scaled, None, confidence)
        ends = plain.low, plain.high
    else:
        ends = _bisect(scaled, own, confidence, 1), _bisect(scaled, own, confidence, 0)
    low, high = sorted(bounds[0] + (bounds[1] - bounds[0]) * end for end in ends)
    return Interval(low, high, confidence, BETTING)


def _bisect(scaled: Floats, own: Floats, confidence: float, side: int) -> float:
    """The end of the means that the bettors above them (1) or below them (0) have excluded."""
    edge, outer, inner = 2 / (1 - confidence), float(1 - side), float((own * scaled).sum() / own.sum())
    if _find_most(scaled, own, outer, confidence)[side] < edge:
        return outer
    for _ in range(_STEPS):
        middle = (outer + inner) / 2
        is_excluded = _find_most(scaled, own, middle, confidence)[side] >= edge
        outer, inner = (middle, inner) if is_excluded else (outer, middle)
    return outer
