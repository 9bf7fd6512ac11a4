"""The difference of two systems of which people labelled answers to different questions.

`correct_mean` of the differences needs questions with labels for both systems. Where few have them, the corrected means
of the two are subtracted. The judge's values are of the same questions all the same, so the two are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.data.interval import Interval
from rageval_spec.statistics.corrected import METHOD, count_effective, find_t
from rageval_spec.statistics.resampling import number_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.statistics.resampling import Floats

_NOTHING = 1e-20
"""What rounding can leave of a variance that is 0."""


class Side(NamedTuple):
    """One system on each question: the judge's values, the labels, and one over the probability of being labelled.

    Labels are not a number (NaN) where there are none.
    """

    judged: Floats
    labels: Floats
    weights: Floats


@dataclass(frozen=True, slots=True)
class CorrectedDifference:
    """The difference of two corrected means.

    Attributes:
        value: the difference, with its interval.
        labelled: the difference of the labels' means, with its interval.
        labels: the number of labelled answers of both systems.
        worth: how many labels without the judge would give an interval as narrow.
        error: the standard error; `degrees` are those of the interval.
    """

    value: float
    interval: Interval
    labelled: float
    labelled_interval: Interval
    labels: int
    worth: float | None
    error: float
    degrees: int


def correct_difference(
    first: Side,
    second: Side,
    *,
    clusters: Sequence[Hashable] | None = None,
    shares: Floats | None = None,
    confidence: float = 0.95,
) -> CorrectedDifference:
    """The difference of what people would say of two systems, `first - second`, on the same questions.

    Each corrected mean is that of the labels plus a weight times how far the judge's mean over all questions lies from
    that over the labelled ones. The two weights are those with which the difference has the least variance. A question
    adds one part to it, from both systems.

    Args:
        first, second: the systems, on the same questions in the same order; each has at least two labels.
        clusters: what each question belongs to; by default each is on its own.
        shares: how much each question counts; they add up to 1. By default all count alike.
        confidence: the level of the intervals.
    """
    import numpy as np

    count = len(first.judged)
    members = number_clusters(clusters, count)
    shares = np.full(count, 1 / count) if shares is None else shares
    sides = [_split(side, shares, members) for side in (first, second)]
    own, other = sides
    labelled, apart = own.labelled - other.labelled, own.of_labels - other.of_labels
    judge = np.stack([own.of_judge, -other.of_judge])
    weights = _choose_weights(judge, apart)
    value = labelled + float(weights @ np.array([own.gap, -other.gap]))
    parts = apart + weights @ judge
    degrees = min(side.effective for side in sides) - 1
    scale = (degrees + 1) / degrees
    variance, alone = float(parts @ parts) * scale, float(apart @ apart) * scale
    size = sum(int((~np.isnan(side.labels)).sum()) for side in (first, second))
    return CorrectedDifference(
        value,
        _make_interval(value, variance, degrees, confidence, METHOD),
        labelled,
        _make_interval(labelled, alone, degrees, confidence, "student-t"),
        size,
        size * alone / variance if variance > 0 else None,
        math.sqrt(variance),
        degrees,
    )


class _Split(NamedTuple):
    """One side: the labels' mean, the judge's distance from it, and what each cluster moves both by."""

    labelled: float
    gap: float
    of_labels: Floats
    of_judge: Floats
    effective: int


def _split(side: Side, shares: Floats, members: NDArray[np.int64]) -> _Split:
    import numpy as np

    is_labelled = ~np.isnan(side.labels)
    counts = np.where(is_labelled, shares * np.nan_to_num(side.weights), 0.0)
    counts = counts / counts.sum()
    labels = np.where(is_labelled, side.labels, 0.0)
    mean, everything, seen = counts @ labels, shares @ side.judged, counts @ side.judged
    of_judge = shares * (side.judged - everything) - counts * (side.judged - seen)
    size = int(members.max()) + 1
    return _Split(
        float(mean),
        float(everything - seen),
        np.bincount(members, counts * (labels - mean), minlength=size).astype(float),
        np.bincount(members, of_judge, minlength=size).astype(float),
        max(2, count_effective(counts[is_labelled], number_clusters(members[is_labelled].tolist(), is_labelled.sum()))),
    )


def _choose_weights(judge: Floats, apart: Floats) -> Floats:
    """The weights of both judges' parts that make the sum of the squared parts smallest; 0 for a judge without any."""
    import numpy as np

    varies = np.flatnonzero((judge**2).sum(axis=1) > _NOTHING)
    weights = np.zeros(len(judge))
    if len(varies):
        weights[varies] = np.linalg.lstsq(judge[varies].T, -apart, rcond=None)[0]
    return weights


def _make_interval(value: float, variance: float, degrees: int, confidence: float, method: str) -> Interval:
    half = find_t((1 + confidence) / 2, degrees) * math.sqrt(variance)
    return Interval(value - half, value + half, confidence, method)
