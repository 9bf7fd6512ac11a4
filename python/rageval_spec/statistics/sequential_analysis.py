"""Confidence sequences, and changes of level in a series of numbers.

A confidence sequence is an interval of a mean that stays valid however often one looks, so that one can stop when
decided. It comes from betting (I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting",
JRSS B 86, 2024; without replacement: the same, "Confidence sequences for sampling without replacement", NeurIPS
2020). For a supposed mean m, a bettor wagers before each value that it will exceed what m predicts. If m is right, or
too high, no way of betting makes money: the probability that the capital ever reaches 2 / alpha is at most alpha / 2.
So m is too low once it does; a second bettor, on the other side, tells when m is too high.

A capital is shared among four ways of betting, because none is best for all values: three wager a fixed part of what
may be wagered, which suits values at both ends of the range; the fourth follows the variance seen, which suits values
that lie close together. The part that a way wagers falls as m rises, and so does each capital; therefore the means
that are not excluded form an interval, and its ends are found by bisection.

Changes of level are found with a known rate of false alarms. The test is a permutation test of the largest
standardised difference between what is before and what is after a point (the CUSUM statistic), repeated in the two
parts as long as it finds a change (binary segmentation). If the numbers of a series are exchangeable, which they are
without a change, the largest difference is as likely to stand out in the order of time as in any other order. So the
probability that such a series gets any mark is at most `alpha`. Numbers that drift slowly, or that depend on the one
before, are not exchangeable, and are marked more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rageval_spec.data import arithmetic
from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Floats, np

if TYPE_CHECKING:
    Values: TypeAlias = Sequence[float] | Floats


BETTING = "betting"
"""The value of `Interval.method` for the intervals of a sequence."""
_PARTS = (0.06, 0.2, 0.5)
"""The parts of what may be wagered that the steady bettors wager; they share half of the capital."""
NEARLY_ALL = (0.98,)
"""Parts for values of which nearly all are at the same end of the range, as shares near 100%."""
_MOST = 0.75
"""The largest part that the bettor who follows the variance wagers; it has the other half of the capital."""
_SMALLEST = 1e-12
_ROUNDING = 1e-12
_STEPS = 48
"""How often a bisection halves the range: to 4e-15 of it."""


class Capital(NamedTuple):
    """The logarithm of both capitals after each value; the arrays have the shape of the values.

    `above` is that of the bettor who holds that the mean is above the supposed one, `below` that of the other. Both
    are infinite once the values seen make the supposed mean impossible on that side.
    """

    above: Floats
    below: Floats


class BoundDecision(NamedTuple):
    """On which side of a bound the mean lies, and after how many values that was certain."""

    is_above: bool
    queries: int


def grow_capital(
    values: Floats,
    mean: float,
    population: int | None = None,
    confidence: float = 0.95,
    parts: Sequence[float] = _PARTS,
) -> Capital:
    """Both capitals after each value, if `mean`, in [0, 1], is the supposed mean.

    The values are numbers in [0, 1] in the order in which they were drawn, NaN for a draw without a value; the last
    axis is time, others are draws. They are drawn without replacement from a `population`; None if each is drawn
    independently. At this confidence, the mean is excluded when a capital has reached 2 / (1 - confidence).
    """
    wager = _follow_variance(values, confidence)
    return Capital(
        _bet_above(values, mean, population, wager, parts),
        _bet_above(1 - values, 1 - mean, population, wager, parts),
    )


def compute_sequence_interval(
    values: Values,
    population: int | None = None,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """The interval after these values: what no look at them so far has excluded.

    With probability `confidence`, the mean is in the intervals after 1, 2, 3, ... values, all of them. After the whole
    population, both ends are the mean. An interval only shrinks as values are added. In the rare draws in which it
    would become empty, its ends change places. `values` and `population` are as in `grow_capital`, on the scale of
    `bounds`: (-1, 1) for the differences of values in [0, 1].

    Raises `ValueError` if a value is outside the bounds, or there are more values than the population has.
    """
    scaled = _scale(values, population, bounds)
    span = bounds[1] - bounds[0]
    if population is not None and len(scaled) == population and (known := _drop_missing(scaled)):
        mean = bounds[0] + span * arithmetic.average(known)
        return Interval(mean, mean, confidence, BETTING)
    wager = _follow_variance(scaled, confidence)
    edge = _edge(confidence)

    def exclude_up_to(seen: Floats) -> float:
        """The end of the means that the capital of the bettor above them has excluded."""
        return _bisect(lambda mean: bool(len(seen) and _bet_above(seen, mean, population, wager).max() >= edge))

    ends = exclude_up_to(scaled), 1 - exclude_up_to(1 - scaled)
    low, high = sorted(bounds[0] + span * end for end in ends)
    return Interval(low, high, confidence, BETTING)


def decide(
    values: Values,
    bound: float,
    population: int | None = None,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    parts: Sequence[float] = _PARTS,
) -> BoundDecision | None:
    """The side of `bound` on which the mean lies, as soon as the values exclude the bound; None if they do not.

    The decision is wrong with probability at most 1 - confidence, however many values were looked at. A mean that
    equals the bound counts as above, and after the whole population there is always a decision, unless no draw has a
    value. The arguments are those of `compute_sequence_interval` and, for `parts`, of `grow_capital`;
    `compute_sequence_interval` always uses the usual ones, so with others a bound can be decided while that interval
    still holds it.
    """
    scaled = _scale(values, population, bounds)
    place = (bound - bounds[0]) / (bounds[1] - bounds[0])
    if not 0 <= place <= 1:
        return BoundDecision(place < 0, 0)
    capital = grow_capital(scaled, place, population, confidence, parts)
    reached = [np.flatnonzero(path >= _edge(confidence)) for path in (capital.above, capital.below)]
    times = [(int(places[0]), side) for side, places in enumerate(reached) if len(places)]
    if times:
        time, side = min(times)
        return BoundDecision(side == 0, time + 1)
    if population is not None and len(scaled) == population and (known := _drop_missing(scaled)):
        return BoundDecision(arithmetic.reaches(arithmetic.average(known), place, terms=population), population)
    return None


def _scale(values: Values, population: int | None, bounds: tuple[float, float]) -> Floats:
    """The values on the range [0, 1]."""
    scaled = (np.asarray(values, dtype=np.float64) - bounds[0]) / (bounds[1] - bounds[0])
    if not np.all((scaled >= 0) & (scaled <= 1) | np.isnan(scaled)):
        raise ValueError(f"the values must be between {bounds[0]:g} and {bounds[1]:g}")
    if population is not None and len(scaled) > population:
        raise ValueError(f"there are {len(scaled)} values of a population of {population}")
    return scaled


def _drop_missing(values: Floats) -> list[float]:
    return [value for value in values.tolist() if not math.isnan(value)]


def _edge(confidence: float) -> float:
    """The logarithm of the capital that excludes a mean: half of the error is for each side."""
    return math.log(2 / (1 - confidence))


def _follow_variance(values: Floats, confidence: float) -> Floats:
    """What the bettor who follows the variance would wager on each value: the predictable plug-in.

    The wager on a value depends only on the values before it. A first mean of 1/2 and a first variance of 1/4 stand
    for one value before the first. Draws without a value do not change the variance, so that the wager does not depend
    on the supposed mean.
    """
    times = np.arange(1, values.shape[-1] + 1)
    is_known = ~np.isnan(values)
    counts = np.cumsum(is_known, axis=-1)
    means = (0.5 + np.cumsum(np.where(is_known, values, 0), axis=-1)) / (counts + 1)
    variances = (0.25 + np.cumsum(np.where(is_known, (values - means) ** 2, 0), axis=-1)) / (counts + 1)
    before = np.concatenate([np.full_like(variances[..., :1], 0.25), variances[..., :-1]], axis=-1)
    wager: Floats = np.sqrt(2 * _edge(confidence) / (before * times * np.log1p(times)))
    return wager


def _bet_above(
    values: Floats, mean: float, population: int | None, wager: Floats, parts: Sequence[float] = _PARTS
) -> Floats:
    """The logarithm of the capital of the bettor who holds that the mean is above `mean`."""
    values = np.where(np.isnan(values), mean, values)
    expected = _expect(values, mean, population)
    safe = np.maximum(expected, _SMALLEST)
    gain = values / safe - 1
    logs = [np.cumsum(np.log1p(part * gain), axis=-1) + math.log(0.5 / len(parts)) for part in parts]
    logs.append(np.cumsum(np.log1p(np.minimum(wager * safe, _MOST) * gain), axis=-1) + math.log(0.5))
    capital: Floats = np.logaddexp.reduce(logs, axis=0)
    if population is not None:
        capital[np.cumsum(values, axis=-1) - population * mean > _ROUNDING * population] = np.inf
    return capital


def _expect(values: Floats, mean: float, population: int | None) -> Floats:
    """What the mean of the values left to draw is before each value, if `mean` is that of the whole population."""
    if population is None:
        return np.full(values.shape, mean)
    before = np.cumsum(values, axis=-1) - values
    left = population - np.arange(values.shape[-1])
    expected: Floats = (population * mean - before) / left
    return expected


def _bisect(is_excluded: Callable[[float], bool]) -> float:
    """The largest number in [0, 1] below which all are excluded; a little less, so that rounding excludes none."""
    if not is_excluded(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_excluded(middle) else (low, middle)
    return low


ALPHA = 0.01
SHORTEST = 5
"""The fewest numbers on either side of a change."""
_PERMUTATIONS = 999
_SEED = 20_240_601
_NO_CHANCE = 1e-9
"""Below this bound on the share of orders with as large a difference, none is tried: it would not be found."""
_BATCH_SIZE = 1_000_000
"""How many permuted numbers are held at a time."""


def find_changes(values: Sequence[float]) -> list[int]:
    """The indexes at which a new level begins, ascending.

    The same numbers give the same result. Fewer than `2 * SHORTEST` numbers have no change.
    """
    random = np.random.default_rng(_SEED)
    found: list[int] = []
    waiting = [(0, len(values))]
    numbers = np.asarray(values, dtype=np.float64)
    while waiting:
        start, end = waiting.pop()
        index = _find_change(numbers[start:end], random)
        if index is not None:
            found.append(start + index)
            waiting += [(start, start + index), (start + index, end)]
    return sorted(found)


def _find_change(values: Floats, random: np.random.Generator) -> int | None:
    """Where the largest difference is, if fewer than a share of `ALPHA` of all orders have one as large."""
    count = len(values)
    if count < 2 * SHORTEST or np.ptp(values) == 0:
        return None
    centred = values - values.mean()
    differences = _measure(centred[None, :])[0]
    if _bound_chance(float(differences.max()), count, float(np.ptp(values))) < _NO_CHANCE:
        return int(differences.argmax()) + SHORTEST
    observed = differences.max() * (1 - 1e-12)  # an order that only rounds otherwise counts as equal
    allowed = int(ALPHA * (_PERMUTATIONS + 1)) - 1
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


def _measure(rows: Floats) -> Floats:
    """For each row of centred numbers and each place, the difference between the sides, in standard errors."""
    count = rows.shape[1]
    before = np.arange(SHORTEST, count - SHORTEST + 1)
    sums = np.cumsum(rows, axis=1)[:, SHORTEST - 1 : count - SHORTEST]
    measured: Floats = np.abs(sums) / np.sqrt(before * (count - before) / count)
    return measured
