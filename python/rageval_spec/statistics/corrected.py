"""Means of what people would say, from a judge's values on all rows and people's labels on some of them.

A judge errs, so its mean is biased; labels alone are few, so their interval is wide. Prediction-powered inference uses
both: the judge's mean, corrected by how much the judge errs on the labelled rows. The interval is valid for what people
would say however bad the judge is; a better judge makes it narrower.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from rageval_spec.data.interval import Interval
from rageval_spec.statistics.resampling import number_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.statistics.resampling import Floats

METHOD = "ppi++"
LABELS_ALONE = "student-t"
_NOTHING = 1e-20
"""What rounding can leave of a variance that is 0."""
_FEWEST = 2
"""The fewest labelled clusters for an interval."""


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """A mean corrected by labels, beside the two that it is made from.

    Attributes:
        value: the corrected mean.
        interval: its interval; None with fewer than two labelled clusters.
        judged: the judge's mean over all rows.
        labelled: the labels' mean, and `labelled_interval` what labels alone would give.
        labels: the number of labelled rows; `rows` is that of all rows.
        weight: how much the judge's values count: 0 for a judge that tells nothing, near 1 for a perfect one, more
            for one whose values lie closer together than the labels, and negative for one that is the wrong way round.
        worth: how many labels without the judge would give an interval as narrow; at least about `labels`.
        error: the standard error of the corrected mean; None with fewer than two labelled clusters.
        degrees: the degrees of freedom of the interval.
    """

    value: float
    interval: Interval | None
    judged: float
    labelled: float
    labelled_interval: Interval | None
    labels: int
    rows: int
    weight: float
    worth: float | None
    error: float | None = None
    degrees: int = 0


def correct_mean(
    judged: Floats,
    labelled: Floats,
    unlabelled: Floats,
    *,
    weights: Floats | None = None,
    clusters: Sequence[Hashable] | None = None,
    other_clusters: Sequence[Hashable] | None = None,
    shares: Floats | None = None,
    confidence: float = 0.95,
) -> CorrectedMean:
    """The mean of what people would say on all rows: PPI++ (Angelopoulos, Duchi and Zrnic, 2023).

    With the weight `w` of the judge, the estimate is `mean(labelled - w * judged) + w * mean(unlabelled)`; `w` is the
    one with the least variance, `cov(labelled, judged) / (var(judged) * (1 + n / N))`.

    If rows were chosen for labelling with unequal probabilities, the other rows are not like all rows either. Then the
    estimate is `mean(labelled - w * judged) + w * mean(judged and unlabelled)`, its first mean weighted by one over the
    probabilities (Zrnic and Candès, 2024: active inference).

    Args:
        judged: the judge's values on the labelled rows.
        labelled: what people said of the same rows, on the same scale. For a comparison of two systems, both are
            differences of the systems.
        unlabelled: the judge's values on the other rows; may be empty.
        weights: for each labelled row, one over the probability with which it was chosen for labelling; by default all
            rows were equally likely, which equal weights mean too.
        clusters, other_clusters: what each labelled, and each other, row belongs to; rows of a cluster are not
            independent, and a cluster may have rows of both kinds. By default each row is its own.
        shares: how much each row counts in the mean, the labelled rows first, adding up to 1; by default all count the
            same.
        confidence: the level of the intervals.

    Raises:
        ValueError: there are no labels, or the series differ in length.
    """
    import numpy as np

    if not len(labelled) or len(judged) != len(labelled):
        raise ValueError(
            f"{len(labelled)} labels for {len(judged)} judged rows; there must be equally many, at least 1"
        )
    counts = np.ones_like(labelled) if weights is None else np.asarray(weights, dtype=float)
    counts = counts if shares is None else counts * shares[: len(labelled)]
    counts = counts / counts.sum()
    members = number_clusters(clusters, len(labelled))
    if shares is not None or (len(unlabelled) and counts.min() < counts.max()):
        others = _number_others(clusters, members, other_clusters, len(unlabelled))
        equal = np.full(len(labelled) + len(unlabelled), 1 / (len(labelled) + len(unlabelled)))
        own = equal if shares is None else shares
        return _correct_unequal(judged, labelled, unlabelled, counts, members, others, confidence, own)
    weight = _choose_weight(judged, labelled, len(unlabelled), counts) if len(unlabelled) else 0.0
    errors = labelled - weight * judged
    value = float(counts @ errors) + (weight * float(unlabelled.mean()) if len(unlabelled) else 0.0)
    degrees = int(members.max())
    alone = _find_variance(labelled, counts, members)
    variance = _find_variance(errors, counts, members)
    if weight and degrees > 0:
        shares = np.full(len(unlabelled), weight / len(unlabelled))
        others = _number_others(clusters, members, other_clusters, len(unlabelled))
        variance = _join_variances(variance, errors, counts, members, unlabelled, shares, others)
    sizes = len(labelled), len(labelled) + len(unlabelled)
    means = value, float(np.concatenate([judged, unlabelled]).mean()), float(counts @ labelled)
    return _describe(means, (variance, alone), weight, sizes, degrees, confidence)


def _correct_unequal(
    judged: Floats,
    labelled: Floats,
    unlabelled: Floats,
    counts: Floats,
    members: NDArray[np.int64],
    others: NDArray[np.int64],
    confidence: float,
    shares: Floats,
) -> CorrectedMean:
    """The corrected mean if rows were chosen with unequal probabilities, or count differently.

    `counts`, of the labelled rows, and `shares`, of all, add up to 1.

    The estimate is linear in the judge's weight: `first + w * second`. Each cluster has its part of both, and `w` makes
    the sum of the squared parts smallest.
    """
    import numpy as np

    everything = np.concatenate([judged, unlabelled])
    alone, mean = float(counts @ labelled), float(shares @ everything)
    size = int(max(members.max(), others.max(initial=0))) + 1
    first = np.bincount(members, weights=counts * (labelled - alone), minlength=size)
    second = np.bincount(np.concatenate([members, others]), weights=shares * (everything - mean))
    second = second - np.bincount(members, weights=counts * (judged - counts @ judged), minlength=size)
    spread = float(second @ second)
    weight = -float(first @ second) / spread if spread > _NOTHING else 0.0
    value = alone + weight * (mean - float(counts @ judged))
    clusters, degrees = int(members.max()) + 1, count_effective(counts, members) - 1
    scale = clusters / (clusters - 1) if clusters >= _FEWEST else math.nan
    variance = float(((first + weight * second) ** 2).sum()) * scale
    variance_alone = float((first**2).sum()) * scale
    sizes = len(labelled), len(everything)
    return _describe((value, mean, alone), (variance, variance_alone), weight, sizes, degrees, confidence)


def _describe(
    means: tuple[float, float, float],
    variances: tuple[float, float],
    weight: float,
    sizes: tuple[int, int],
    degrees: int,
    confidence: float,
) -> CorrectedMean:
    """The corrected mean with its intervals.

    Args:
        means: the corrected mean, the judge's and the labels'.
        variances: of the corrected mean and of the labels'; not a number if unknown.
        weight: the judge's weight.
        sizes: the number of labels, and of all rows.
        degrees: of freedom.
        confidence: the level of the intervals.
    """
    (value, judged, labelled), (variance, alone), (labels, rows) = means, variances, sizes
    return CorrectedMean(
        value=value,
        interval=_make_interval(value, variance, degrees, confidence, METHOD),
        judged=judged,
        labelled=labelled,
        labelled_interval=_make_interval(labelled, alone, degrees, confidence, LABELS_ALONE),
        labels=labels,
        rows=rows,
        weight=weight,
        worth=labels * alone / variance if variance > 0 else None,
        error=None if math.isnan(variance) else math.sqrt(variance),
        degrees=degrees,
    )


def count_effective(counts: Floats, members: NDArray[np.int64]) -> int:
    """The number of equally weighted clusters that tell as much as these: Kish's `sum(w)**2 / sum(w**2)`, at least 2.

    One for a single cluster.
    """
    import numpy as np

    of_clusters = np.bincount(members, weights=counts)
    return min(len(of_clusters), max(_FEWEST, round(float(of_clusters.sum() ** 2 / (of_clusters**2).sum()))))


def _choose_weight(judged: Floats, labelled: Floats, others: int, counts: Floats) -> float:
    judged = judged - counts @ judged
    spread = float(counts @ judged**2)
    if spread <= _NOTHING:
        return 0.0
    shared = float(counts @ (judged * (labelled - counts @ labelled)))
    return shared / (spread * (1 + len(labelled) / others))


def _find_variance(numbers: Floats, counts: Floats, members: NDArray[np.int64]) -> float:
    """The variance of the weighted mean; `counts` add up to 1. Not known for one cluster."""
    import numpy as np

    clusters = int(members.max()) + 1
    if clusters < _FEWEST:
        return math.nan
    apart = np.bincount(members, weights=counts * (numbers - counts @ numbers))
    return float((apart**2).sum()) * clusters / (clusters - 1)


def _number_others(
    clusters: Sequence[Hashable] | None,
    members: NDArray[np.int64],
    other_clusters: Sequence[Hashable] | None,
    count: int,
) -> NDArray[np.int64]:
    """The numbers of the clusters of the other rows; those that the labelled rows have too keep their number."""
    import numpy as np

    first = int(members.max()) + 1
    if clusters is None or other_clusters is None:
        return first + number_clusters(other_clusters, count)
    places = dict(zip(clusters, map(int, members), strict=True))
    return np.array([places.setdefault(cluster, len(places)) for cluster in other_clusters], dtype=np.int64)


def _join_variances(
    alone: float,
    errors: Floats,
    counts: Floats,
    members: NDArray[np.int64],
    unlabelled: Floats,
    shares: Floats,
    others: NDArray[np.int64],
) -> float:
    """The variance of the sum of both means, of which `alone` is that of the first.

    Where they share clusters, their covariance is part of it.
    """
    import numpy as np

    size = int(max(members.max(), others.max())) + 1
    first = np.bincount(members, weights=counts * (errors - counts @ errors), minlength=size)
    second = np.bincount(others, weights=shares * (unlabelled - unlabelled.mean()), minlength=size)
    groups = len(np.unique(others))
    spread = float((second**2).sum()) * (groups / (groups - 1) if groups > 1 else 1.0)
    return max(0.0, alone + spread + 2 * float(first @ second))


def _make_interval(value: float, variance: float, degrees: int, confidence: float, method: str) -> Interval | None:
    if math.isnan(variance):
        return None
    half = find_t((1 + confidence) / 2, degrees) * math.sqrt(variance)
    return Interval(value - half, value + half, confidence, method)


def find_t(share: float, degrees: int) -> float:
    """The quantile of Student's t distribution.

    Exact for 1 and 2 degrees of freedom; from 3 on, Hill's approximation (1970, algorithm 396), whose relative error is
    below 1e-5.
    """
    if degrees < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    if share < 0.5:
        return -find_t(1 - share, degrees)
    if share == 0.5:
        return 0.0
    if degrees == 1:
        return math.tan(math.pi * (share - 0.5))
    if degrees == 2:
        tails = 4 * share * (1 - share)
        return (2 * share - 1) * math.sqrt(2 / tails)
    return _find_t_by_hill(2 * (1 - share), degrees)


def _find_t_by_hill(tails: float, degrees: int) -> float:
    """The number that is exceeded, in either direction, with the probability `tails`."""
    a = 1 / (degrees - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * degrees
    y = (d * tails) ** (2 / degrees)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tails / 2)
        y = x * x
        if degrees < 5:
            c += 0.3 * (degrees - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        tail = 1 / (((degrees + 6) / (degrees * y) - 0.089 * d - 0.822) * (degrees + 2) * 3)
        y = ((tail + 0.5 / (degrees + 4)) * y - 1) * (degrees + 1) / (degrees + 2) + 1 / y
    return math.sqrt(degrees * y)
