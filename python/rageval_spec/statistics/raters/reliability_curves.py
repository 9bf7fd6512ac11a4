"""Measures whether values mean what they say: people should call 80% of the answers with 0.8 right.

Values and labels lie between 0 and 1; a label between them is a mean of several people's, or a place on a scale.

Maps turn a judge's value into what people would say on average: Platt's curve and isotonic steps. Both rise with the
value, so they keep the order of the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rageval_spec.data.judge_calibration import ScoreMap
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Floats, Ints, np
from rageval_spec.statistics.intervals import number_clusters

if TYPE_CHECKING:
    from rageval_spec.statistics.intervals import Statistic


Loss = Literal["brier", "log_loss"]
Binning = Literal["width", "mass"]
METHOD = "test-inversion"
"""The value of `Interval.method` for calibration errors."""
BINS = 10
_FEWEST_IN_BIN = 10
"""Bins of equal mass have about this many rows at the least, unless there are fewer than twice as many rows."""
_LEAST = 0.001
"""How far values are kept from 0 and 1 for the log loss, which is infinite for a wrong value of 0 or 1."""
_DRAWS = 2000
_NO_CURVE = 1e-18
"""What rounding can leave of a variance that is 0."""
_ON_EDGE = 1e-9
"""What rounding can take away from a value on the edge of a bin, such as 0.3."""


@dataclass(frozen=True, slots=True)
class Bin:
    """The rows whose values lie in one part of the scale: from `low` up to `high`, which only the last bin includes.

    `value` and `label` are the means of the judge's values and of the labels.
    """

    low: float
    high: float
    count: int
    value: float
    label: float


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """How far the mean value and the mean label of a bin are apart, on average over the rows.

    Attributes:
        value: the error without what chance adds to it.
        plain: the error as it is often published. In a bin of few rows the mean of the labels is off by chance, so that
            a perfect judge has an error above 0 too.
        interval: the interval of the error; None if the differences of no bin vary, which does not show what chance
            adds.
    """

    value: float
    plain: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class BrierParts:
    """The Brier score in three parts: `miscalibration - discrimination + uncertainty`.

    The parts of Dimitriadis, Gneiting and Jordan (2021), by the isotonic map of the same rows, so no bins are chosen.

    Attributes:
        miscalibration: what the best rising map would take away; 0 if values mean what they say.
        discrimination: what the judge's order of the answers is worth; 0 for a judge that tells nothing.
        uncertainty: the variance of the labels: the score of always saying their mean.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float


def rate_values(values: Floats, labels: Floats) -> Mapping[Loss, Statistic]:
    """Losses of values that are meant as probabilities, as functions of weights of shape (resamples, rows).

    | name | |
    |---|---|
    | `brier` | the mean squared difference |
    | `log_loss` | the mean cross-entropy; values are kept 0.001 away from 0 and 1 |
    """

    def average(numbers: Floats) -> Statistic:
        return lambda weights: weights @ numbers / weights.sum(axis=1)

    return {name: average(numbers) for name, numbers in list_losses(values, labels).items()}


def list_losses(values: Floats, labels: Floats) -> Mapping[Loss, Floats]:
    """The losses of `rate_values` for each row."""
    kept = np.clip(values, _LEAST, 1 - _LEAST)
    return {
        "brier": (values - labels) ** 2,
        "log_loss": -(labels * np.log(kept) + (1 - labels) * np.log1p(-kept)),
    }


def list_bins(values: Floats, labels: Floats) -> tuple[Bin, ...]:
    """The bins of equal width that have rows, in ascending order: a reliability diagram."""
    places = _divide_by_width(values)
    insides = ((place, places == place) for place in np.unique(places).tolist())
    return tuple(
        Bin(
            place / BINS,
            (place + 1) / BINS,
            int(inside.sum()),
            float(values[inside].mean()),
            float(labels[inside].mean()),
        )
        for place, inside in insides
    )


def split_brier(values: Floats, labels: Floats) -> BrierParts:
    total = float(((values - labels) ** 2).mean())
    uncertainty = float(labels.var())
    fitted = fit_isotonic(values, labels)
    best = (
        uncertainty
        if fitted is None
        else float(((np.array([*map(fitted.apply, values.tolist())]) - labels) ** 2).mean())
    )
    return BrierParts(total - best, uncertainty - best, uncertainty)


def measure_error(
    values: Floats,
    labels: Floats,
    *,
    binning: Binning = "width",
    clusters: Sequence[Hashable] | None = None,
    seed: int = 42,
) -> CalibrationError:
    """The expected calibration error (ECE) of values between 0 and 1, with its 95 % interval.

    The interval has the errors that would give a plain error like the observed one: bins that are off by as much, times
    a factor, and labels that vary by chance as much as they do here. The value is the one in the middle, which would be
    exceeded as often as not. A bootstrap would add chance a second time; its intervals hardly ever contain 0.

    A plain error may happen to be smaller than that of most perfect judges. This does not show that the error is 0, so
    the upper end is then the one that half of the perfect judges would get (as in a power-constrained limit).

    There is at least one row. The binning is `width` for ten bins of equal width, `mass` for up to ten with about
    equally many rows. By default each row is its own cluster.
    """
    places = _divide_by_width(values) if binning == "width" else _divide_by_mass(values)
    _, places = np.unique(places, return_inverse=True)
    gaps = values - labels
    parts, spread = _compute_parts(gaps, places, number_clusters(clusters, len(values)))
    observed = float(abs(parts).sum())
    if spread.trace() <= _NO_CURVE:
        return CalibrationError(observed, observed, None)
    sizes, axes = np.linalg.eigh(spread)
    draws = np.random.Generator(np.random.PCG64(seed)).standard_normal((_DRAWS, len(parts)))
    noise = axes @ (draws * np.sqrt(np.maximum(sizes, 0))).T  # [bins, draws]: sums over bins are fast this way round
    ends = 0.975, 0.5, 0.025
    usual = max(observed, float(np.median(abs(noise).sum(axis=0))))
    low, middle, high = (
        _invert(parts, noise, observed, share, within)
        for share, within in zip(ends, (observed, observed, usual), strict=True)
    )
    return CalibrationError(middle, observed, Interval(low, high, 0.95, METHOD))


def _compute_parts(gaps: Floats, places: Ints, members: Ints) -> tuple[Floats, Floats]:
    """What each bin adds to the mean difference of value and label, and the covariance of these parts.

    Both how many rows a bin has and their labels vary by chance. Each bin also gets one cluster's share of the
    variance within bins, because the labels of few rows can be equal by chance.
    """
    rows, counts = len(gaps), np.bincount(places)
    sums = np.zeros((int(members.max()) + 1, len(counts)))
    within = sums.copy()
    np.add.at(sums, (members, places), gaps)
    parts = sums.sum(axis=0) / rows
    apart = sums - sums.mean(axis=0)
    np.add.at(within, (members, places), gaps - (parts * rows / counts)[places])
    pooled = float((within**2).sum()) / max(len(sums) - len(counts), 1)
    few = len(sums) / max(len(sums) - 1, 1)
    spread: Floats = (few * apart.T @ apart + pooled * np.eye(len(counts))) / rows**2
    return parts, spread


def _invert(parts: Floats, noise: Floats, observed: float, share: float, within: float) -> float:
    """The error at which this share of the plain errors is at most `within`; 0 if even no error exceeds it.

    It is at most 1, because values and labels are between 0 and 1.
    """

    def share_within(factor: float) -> float:
        return float((abs(factor * parts[:, None] + noise).sum(axis=0) <= within).mean())

    return min(observed * _bisect(share_within, share), 1.0)


def _bisect(find: Callable[[float], float], wanted: float) -> float:
    """Where a falling function of a number above 0 reaches a share."""
    if find(0.0) <= wanted:
        return 0.0
    low, high = 0.0, 1.0
    while find(high) > wanted and high < 1e6:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if find(middle) > wanted else (low, middle)
    return high


def _divide_by_width(values: Floats) -> Ints:
    """The number of each row's bin of equal width. A value on an edge belongs to the upper bin, 1 to the last."""
    return np.clip(np.floor(values * BINS + _ON_EDGE), 0, BINS - 1).astype(np.int64)


def _divide_by_mass(values: Floats) -> Ints:
    """The number of each row's bin of about equal mass; equal values are in one bin."""
    bins = min(BINS, max(2, len(values) // _FEWEST_IN_BIN))
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    numbers: Ints = np.minimum((middle / len(values) * bins).astype(np.int64), bins - 1)[places]
    return numbers


_NO_MAP = 1e-9
"""What rounding can leave of a rise that is 0."""


def fit_isotonic(values: Floats, labels: Floats) -> ScoreMap | None:
    """The rising line with the least squared error: pool adjacent violators.

    The two ends of each flat part are its points. None if it would map all values to the same number: higher values
    then do not go with higher labels.
    """
    levels, places = np.unique(values, return_inverse=True)
    counts = np.bincount(places, minlength=len(levels)).astype(float)
    means = np.bincount(places, weights=labels, minlength=len(levels)) / np.maximum(counts, 1)
    blocks: list[tuple[float, float, int]] = []  # the mean, the rows and the levels of each
    for mean, count in zip(means.tolist(), counts.tolist(), strict=True):
        block = (mean, count, 1)
        while blocks and blocks[-1][0] >= block[0]:
            before, rows, width = blocks.pop()
            pooled = rows + block[1]
            block = (before * rows + block[0] * block[1]) / pooled, pooled, width + block[2]
        blocks.append(block)
    if not blocks or blocks[-1][0] - blocks[0][0] <= _NO_MAP:
        return None
    points: list[tuple[float, float]] = []
    start = 0
    for mean, _, width in blocks:
        ends = dict.fromkeys((float(levels[start]), float(levels[start + width - 1])))
        points += [(end, mean) for end in ends]
        start += width
    values_and_results = zip(*points, strict=True)
    return ScoreMap("isotonic", None, None, *values_and_results)


_MOST_STEPS = 100
_CLOSE = 1e-10


def fit_platt(values: Floats, labels: Floats) -> ScoreMap | None:
    """The logistic curve that makes the labels most likely, by Newton's method (Lin, Lin and Weng, 2007).

    Labels are drawn a little towards the middle, as if there were one more yes and one more no (Platt, 1999): a judge
    that makes no mistake in the labels still gets a finite slope. A label between 0 and 1 counts as a part of a yes and
    a part of a no. None if the curve does not rise: higher values then do not go with higher labels.
    """
    spread = float(values.std()) if len(values) else 0.0
    if spread <= _NO_MAP:
        return None
    centre = float(values.mean())
    yes = float(labels.sum())
    high, low = (yes + 1) / (yes + 2), 1 / (len(labels) - yes + 2)
    targets = low + labels * (high - low)
    design = np.column_stack([(values - centre) / spread, np.ones_like(values)])
    found = np.array([0.0, math.log((yes + 1) / (len(labels) - yes + 1))])
    loss = _compute_loss(design @ found, targets)
    for _ in range(_MOST_STEPS):
        shares = (1 + np.tanh(design @ found / 2)) / 2
        slope = design.T @ (shares - targets)
        if abs(slope).max() <= _CLOSE * len(labels):
            break
        curve = (design.T * (shares * (1 - shares))) @ design + _CLOSE * np.eye(2)
        step = np.linalg.solve(curve, slope)
        found, loss, moved = _walk(design, targets, found, step, loss)
        if not moved:
            break
    rise = float(found[0]) / spread
    return ScoreMap("platt", rise, float(found[1]) - rise * centre) if found[0] > _NO_MAP else None


def _walk(design: Floats, targets: Floats, start: Floats, step: Floats, loss: float) -> tuple[Floats, float, bool]:
    """Go along the step, half as far each time until the loss falls; and whether it fell."""
    length = 1.0
    while length > _CLOSE:
        there = start - length * step
        reached = _compute_loss(design @ there, targets)
        if reached < loss:
            return there, reached, True
        length /= 2
    return start, loss, False


def _compute_loss(numbers: Floats, targets: Floats) -> float:
    return float((np.logaddexp(0, numbers) - targets * numbers).sum())
