"""Whether values mean what they say: of the answers with 0.8, do people call 80% right?

Values and labels lie between 0 and 1; a label between them is a mean of several people's, or a place on a scale.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from rageval_spec.data.interval import Interval
from rageval_spec.statistics.maps import fit_isotonic
from rageval_spec.statistics.resampling import number_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.statistics.resampling import Floats, Statistic

    Places: TypeAlias = NDArray[np.int64]

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
_NOTHING = 1e-18
"""What rounding can leave of a variance that is 0."""
_ON_EDGE = 1e-9
"""What rounding can take away from a value on the edge of a bin, such as 0.3."""


@dataclass(frozen=True, slots=True)
class Bin:
    """The rows whose values lie in one part of the scale.

    Attributes:
        low, high: the part; `high` belongs to the next bin, except for 1.
        count: the number of its rows.
        value, label: the mean of the judge's values, and of the labels.
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
    losses = list_losses(values, labels)
    return {name: _average(numbers) for name, numbers in losses.items()}


def list_losses(values: Floats, labels: Floats) -> Mapping[Loss, Floats]:
    """The losses of `rate_values` for each row."""
    import numpy as np

    kept = np.clip(values, _LEAST, 1 - _LEAST)
    return {
        "brier": (values - labels) ** 2,
        "log_loss": -(labels * np.log(kept) + (1 - labels) * np.log1p(-kept)),
    }


def _average(numbers: Floats) -> Statistic:
    return lambda weights: weights @ numbers / weights.sum(axis=1)


def list_bins(values: Floats, labels: Floats) -> tuple[Bin, ...]:
    """The bins of equal width that have rows, in ascending order: a reliability diagram."""
    import numpy as np

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
    """The parts of the Brier score."""
    import numpy as np

    total = float(((values - labels) ** 2).mean())
    uncertainty = float(labels.var())
    fitted = fit_isotonic(values, labels)
    best = uncertainty if fitted is None else float(((np.array(fitted.apply(values.tolist())) - labels) ** 2).mean())
    return BrierParts(total - best, uncertainty - best, uncertainty)


def measure_error(
    values: Floats,
    labels: Floats,
    *,
    binning: Binning = "width",
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    seed: int = 42,
) -> CalibrationError:
    """The expected calibration error (ECE) of values between 0 and 1.

    The interval has the errors that would give a plain error like the observed one: bins that are off by as much, times
    a factor, and labels that vary by chance as much as they do here. The value is the one in the middle, which would be
    exceeded as often as not. A bootstrap would add chance a second time; its intervals hardly ever contain 0.

    A plain error may happen to be smaller than that of most perfect judges. This does not show that the error is 0, so
    the upper end is then the one that half of the perfect judges would get (as in a power-constrained limit).

    Args:
        values: the judge's values; at least one.
        labels: what people said of the same rows.
        binning: `width` for ten bins of equal width, `mass` for up to ten with about equally many rows.
        clusters: what each row belongs to; rows of a cluster are not independent. By default each row is its own.
        confidence: the level of the interval.
        seed: equal seeds give equal intervals.
    """
    import numpy as np

    places = _divide_by_width(values) if binning == "width" else _divide_by_mass(values)
    _, places = np.unique(places, return_inverse=True)
    gaps = values - labels
    parts, spread = _find_parts(gaps, places, number_clusters(clusters, len(values)))
    observed = float(abs(parts).sum())
    if spread.trace() <= _NOTHING:
        return CalibrationError(observed, observed, None)
    sizes, axes = np.linalg.eigh(spread)
    draws = np.random.Generator(np.random.PCG64(seed)).standard_normal((_DRAWS, len(parts)))
    noise = draws * np.sqrt(np.maximum(sizes, 0)) @ axes.T
    ends = (1 + confidence) / 2, 0.5, (1 - confidence) / 2
    usual = max(observed, float(np.median(abs(noise).sum(axis=1))))
    low, middle, high = (
        _invert(parts, noise, observed, share, within)
        for share, within in zip(ends, (observed, observed, usual), strict=True)
    )
    return CalibrationError(middle, observed, Interval(low, high, confidence, METHOD))


def _find_parts(gaps: Floats, places: Places, members: Places) -> tuple[Floats, Floats]:
    """What each bin adds to the mean difference of value and label, and the covariance of these parts.

    Both how many rows a bin has and their labels vary by chance. Each bin also gets one cluster's share of the
    variance within bins, because the labels of few rows can be equal by chance.
    """
    import numpy as np

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

    def find_share(factor: float) -> float:
        return float((abs(factor * parts + noise).sum(axis=1) <= within).mean())

    return min(observed * _bisect(find_share, share), 1.0)


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


def _divide_by_width(values: Floats) -> Places:
    """The number of each row's bin of equal width. A value on an edge belongs to the upper bin, 1 to the last."""
    import numpy as np

    return np.clip(np.floor(values * BINS + _ON_EDGE), 0, BINS - 1).astype(np.int64)


def _divide_by_mass(values: Floats) -> Places:
    """The number of each row's bin of about equal mass; equal values are in one bin."""
    import numpy as np

    bins = min(BINS, max(2, len(values) // _FEWEST_IN_BIN))
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    numbers: Places = np.minimum((middle / len(values) * bins).astype(np.int64), bins - 1)[places]
    return numbers
