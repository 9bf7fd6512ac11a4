"""Means of what people would say, from a judge's values on all rows and people's labels on some of them.

A judge errs, so its mean is biased; labels alone are few, so their interval is wide. Prediction-powered inference
uses both: the judge's mean, corrected by how much the judge errs on the labelled rows. The interval is valid for what
people would say however bad the judge is; a better judge makes it narrower.

Intervals also hold near the ends of what a metric can be, where few labels differ from the rest. With 60 labels of
which three are no, a symmetric interval covers what people would say in about 90% of the cases: the fewer the draw
has of the rare label, the smaller is the variance that it shows. And if the judge missed none of the three, its
errors seem to have no variance at all.

For a judge that says yes or no, there is also Rogan and Gladen's correction (1978): the judge's share of yes is
corrected by its sensitivity and specificity, which are measured on the labelled rows. Prediction-powered inference is
narrower wherever the labelled rows are drawn from the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.libraries import Bools, Floats, Ints, np
from rageval_spec.statistics.intervals import number_clusters

PPI = "ppi++"
STUDENT_T = "student-t"
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
            for one whose values lie closer together than the labels, and negative for one that is the wrong way round;
            not a number for a difference of two means, each with its own weight.
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
    alone = _estimate_variance(labelled, counts, members)
    variance = _estimate_variance(errors, counts, members)
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
    members: Ints,
    others: Ints,
    confidence: float,
    shares: Floats,
) -> CorrectedMean:
    """The corrected mean if rows were chosen with unequal probabilities, or count differently.

    `counts`, of the labelled rows, and `shares`, of all, add up to 1.

    The estimate is linear in the judge's weight: `first + w * second`. Each cluster has its part of both, and `w` makes
    the sum of the squared parts smallest.
    """
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

    `means` are the corrected one, the judge's and the labels'; `variances` are of the first and the last, not a number
    if unknown; `sizes` are the number of labels, and of all rows.
    """
    (value, judged, labelled), (variance, alone), (labels, rows) = means, variances, sizes
    return CorrectedMean(
        value=value,
        interval=_make_interval(value, variance, degrees, confidence, PPI),
        judged=judged,
        labelled=labelled,
        labelled_interval=_make_interval(labelled, alone, degrees, confidence, STUDENT_T),
        labels=labels,
        rows=rows,
        weight=weight,
        worth=labels * alone / variance if variance > 0 else None,
        error=None if math.isnan(variance) else math.sqrt(variance),
        degrees=degrees,
    )


def count_effective(counts: Floats, members: Ints) -> int:
    """The number of equally weighted clusters that tell as much as these: Kish's `sum(w)**2 / sum(w**2)`, at least 2.

    One for a single cluster.
    """
    of_clusters = np.bincount(members, weights=counts)
    return min(len(of_clusters), max(_FEWEST, round(float(of_clusters.sum() ** 2 / (of_clusters**2).sum()))))


def _choose_weight(judged: Floats, labelled: Floats, others: int, counts: Floats) -> float:
    judged = judged - counts @ judged
    spread = float(counts @ judged**2)
    if spread <= _NOTHING:
        return 0.0
    shared = float(counts @ (judged * (labelled - counts @ labelled)))
    return shared / (spread * (1 + len(labelled) / others))


def _estimate_variance(numbers: Floats, counts: Floats, members: Ints) -> float:
    """The variance of the weighted mean; `counts` add up to 1. Not known for one cluster."""
    clusters = int(members.max()) + 1
    if clusters < _FEWEST:
        return math.nan
    apart = np.bincount(members, weights=counts * (numbers - counts @ numbers))
    return float((apart**2).sum()) * clusters / (clusters - 1)


def _number_others(
    clusters: Sequence[Hashable] | None,
    members: Ints,
    other_clusters: Sequence[Hashable] | None,
    count: int,
) -> Ints:
    """The numbers of the clusters of the other rows; those that the labelled rows have too keep their number."""
    first = int(members.max()) + 1
    if clusters is None or other_clusters is None:
        return first + number_clusters(other_clusters, count)
    places = dict(zip(clusters, map(int, members), strict=True))
    return np.array([places.setdefault(cluster, len(places)) for cluster in other_clusters], dtype=np.int64)


def _join_variances(
    alone: float,
    errors: Floats,
    counts: Floats,
    members: Ints,
    unlabelled: Floats,
    shares: Floats,
    others: Ints,
) -> float:
    """The variance of the sum of both means, of which `alone` is that of the first.

    Where they share clusters, their covariance is part of it.
    """
    size = int(max(members.max(), others.max())) + 1
    first = np.bincount(members, weights=counts * (errors - counts @ errors), minlength=size)
    second = np.bincount(others, weights=shares * (unlabelled - unlabelled.mean()), minlength=size)
    groups = len(np.unique(others))
    spread = float((second**2).sum()) * (groups / (groups - 1) if groups > 1 else 1.0)
    return max(0.0, alone + spread + 2 * float(first @ second))


def _make_interval(value: float, variance: float, degrees: int, confidence: float, method: str) -> Interval | None:
    if math.isnan(variance):
        return None
    half = kernels.student_quantile((1 + confidence) / 2, degrees) * math.sqrt(variance)
    return Interval(value - half, value + half, confidence, method)


class Side(NamedTuple):
    """One system on each question: the judge's values, the labels, and one over the probability of being labelled.

    Labels are not a number (NaN) where there are none.
    """

    judged: Floats
    labels: Floats
    weights: Floats


def correct_difference(
    first: Side,
    second: Side,
    *,
    clusters: Sequence[Hashable] | None = None,
    shares: Floats | None = None,
    confidence: float = 0.95,
) -> CorrectedMean:
    """The difference of what people would say of two systems, `first - second`, on the same questions.

    Each corrected mean is that of the labels plus a weight times how far the judge's mean over all questions lies from
    that over the labelled ones. The two weights are those with which the difference has the least variance. A question
    adds one part to it, from both systems. `labels` and `worth` count the labels of both systems.

    Both have the same questions in the same order, and at least two labels. By default each question is its own
    cluster, and all have the same of the shares, which add up to 1.
    """
    count = len(first.judged)
    members = number_clusters(clusters, count)
    shares = np.full(count, 1 / count) if shares is None else shares
    own, other = (_split(side, shares, members) for side in (first, second))
    labelled, apart = own.labelled - other.labelled, own.of_labels - other.of_labels
    judge = np.stack([own.of_judge, -other.of_judge])
    varies = np.flatnonzero((judge**2).sum(axis=1) > _NOTHING)
    weights = np.zeros(2)  # with which the sum of the squared parts is smallest; 0 for a judge without any part
    if len(varies):
        weights[varies] = np.linalg.lstsq(judge[varies].T, -apart, rcond=None)[0]
    parts = apart + weights @ judge
    degrees = min(own.effective, other.effective) - 1
    scale = (degrees + 1) / degrees
    means = (
        labelled + float(weights @ np.array([own.gap, -other.gap])),
        float(shares @ (first.judged - second.judged)),
        labelled,
    )
    sizes = sum(int((~np.isnan(side.labels)).sum()) for side in (first, second)), count
    variances = float(parts @ parts) * scale, float(apart @ apart) * scale
    return _describe(means, variances, math.nan, sizes, degrees, confidence)


class _Split(NamedTuple):
    """One side: the labels' mean, the judge's distance from it, and what each cluster moves both by."""

    labelled: float
    gap: float
    of_labels: Floats
    of_judge: Floats
    effective: int


def _split(side: Side, shares: Floats, members: Ints) -> _Split:
    is_labelled = ~np.isnan(side.labels)
    counts = np.where(is_labelled, shares * np.nan_to_num(side.weights), 0.0)
    counts = counts / counts.sum()
    labels = np.where(is_labelled, side.labels, 0.0)
    mean, everything, seen = counts @ labels, shares @ side.judged, counts @ side.judged
    of_judge = shares * (side.judged - everything) - counts * (side.judged - seen)
    own = number_clusters(members[is_labelled].tolist(), is_labelled.sum())
    return _Split(
        float(mean),
        float(everything - seen),
        np.bincount(members, counts * (labels - mean)).astype(float),
        np.bincount(members, of_judge).astype(float),
        max(_FEWEST, count_effective(counts[is_labelled], own)),
    )


PPI_SCORE = "ppi++-score"
SCORE = "score"
ALL_EQUAL = "all-equal"
"""The method of an interval where all labels are the same."""
_UNSEEN = 1.5
"""How many labels, half of them yes and half no, the judge is taken to have misjudged beside those that were drawn."""


def respect_bounds(
    found: CorrectedMean, labels: Floats, bounds: tuple[float, float], confidence: float
) -> CorrectedMean:
    """The mean of yes and no with intervals that hold where one of the two is rare; most other means as they are.

    The interval has the means that lie no further from the estimate than Student's t allows with the variance that they
    themselves would give (Wilson's score interval, with the number of labels that the estimate is worth). To the
    variance, `_UNSEEN` labels are added by the share of it that the judge took away: only that share rests on how the
    judge treats the rare labels. If all labels are the same, both intervals are those of `bound_equal`, and it is not
    known what the labels are worth. `found` is the mean that `correct_mean` gives of these labels; they are yes and no
    if there are no others than the two bounds.
    """
    low, high = bounds
    if found.error is not None and labels.min() == labels.max():
        equal, _ = bound_equal(found.labelled, found.degrees + 1, bounds, confidence)
        return replace(found, interval=equal, labelled_interval=equal, worth=None)
    width, share = high - low, (found.labelled - low) / (high - low)
    is_yes_no = bool(((labels == low) | (labels == high)).all()) and 0 < share < 1
    if not is_yes_no or found.error is None or found.labelled_interval is None:
        return found
    t = kernels.student_quantile((1 + confidence) / 2, found.degrees)
    alone = ((found.labelled_interval.high - found.labelled_interval.low) / (2 * t)) ** 2
    taken = max(0.0, 1 - found.error**2 / alone) if alone > 0 else 0.0
    count, unseen = found.degrees + 1, _UNSEEN * taken
    added = unseen * (share**2 + (1 - share) ** 2) / 2 / (count * (count + unseen))
    variance = found.error**2 / width**2 * count / (count + unseen) + added

    def reach(value: float, variance: float, method: str) -> Interval:
        lower, upper = _compute_bounded_ends(
            min(max((value - low) / width, 0.0), 1.0), t * t * variance / (share * (1 - share))
        )
        return Interval(low + width * lower, low + width * upper, confidence, method)

    return replace(
        found,
        interval=reach(found.value, variance, PPI_SCORE),
        labelled_interval=reach(found.labelled, alone / width**2, SCORE),
    )


def _compute_bounded_ends(value: float, factor: float) -> tuple[float, float]:
    """The shares `p` with `(value - p)**2 == factor * p * (1 - p)`."""
    middle = (value + factor / 2) / (1 + factor)
    half = math.sqrt(factor * value * (1 - value) + factor**2 / 4) / (1 + factor)
    return max(0.0, middle - half), min(1.0, middle + half)


def bound_equal(value: float, count: int, bounds: tuple[float, float], confidence: float) -> tuple[Interval, float]:
    """The interval of a mean of which `count` labels were drawn that all have one value, and the p-value of 0.

    If the share `1 - ((1 - confidence) / 2) ** (1 / count)` of all labels differs, so many equal labels are drawn with
    half of the probability that the confidence leaves (Clopper and Pearson, 1934). The interval has the means that such
    a share can give within the bounds.
    """
    share = 1 - ((1 - confidence) / 2) ** (1 / count)
    low, high = bounds
    interval = Interval(value - share * (value - low), value + share * (high - value), confidence, ALL_EQUAL)
    farthest = high if value < 0 else -low
    return interval, 1.0 if value == 0 else min(1.0, 2 * (farthest / (farthest + abs(value))) ** count)


ROGAN_GLADEN = "rogan-gladen"
_ADDED = 0.5
"""How many right, and how many wrong, decisions are added to each class, as in Jeffreys' interval."""


class UncorrectableError(ValueError):
    """The labels do not tell how often the judge errs; the message is a sentence that says why."""


@dataclass(frozen=True, slots=True)
class CorrectedShare:
    """A share of yes, corrected by how often the judge errs.

    Attributes:
        value: the corrected share; it can lie outside 0 to 1, where the judge's share is one that it cannot have.
        interval: its interval, which can reach outside too.
        error: its standard error, by the delta method.
        sensitivity: how often the judge says yes where people do; `specificity` how often no where people say no.
        parts: what each row, the labelled ones first, moves the share by. Their squares add up to the variance, but
            for `added`, which is that of the added decisions.
    """

    value: float
    interval: Interval
    error: float
    sensitivity: float
    specificity: float
    parts: Floats
    added: float


@dataclass(frozen=True, slots=True)
class _Rate:
    """How often the judge is right on one class, what each row moves this by, and the variance of what was added."""

    value: float
    parts: Floats
    added: float


def correct_share(
    judged: Floats,
    labelled: Floats,
    unlabelled: Floats,
    *,
    weights: Floats | None = None,
    clusters: Sequence[Hashable] | None = None,
    shares: Floats | None = None,
    confidence: float = 0.95,
) -> CorrectedShare:
    """The share of rows of which people would say yes, `(yes + specificity - 1) / (sensitivity + specificity - 1)`.

    `yes` is the judge's share of yes on all rows. Half a right and half a wrong decision are added to sensitivity and
    specificity, because a judge that never erred on a few labels can err. The interval is Fieller's (1954), of a ratio:
    it has the shares that the data do not rule out, and covers better than one of two or so standard errors on each
    side. It takes into account that all three come from the same rows.

    Args:
        judged: the judge's decisions on the labelled rows, 0 or 1.
        labelled: what people said of the same rows, 0 or 1.
        unlabelled: the judge's decisions on the other rows.
        weights: for each labelled row, one over the probability with which it was chosen; by default all are equal.
        clusters: what each labelled and then each other row belongs to; by default each row is its own.
        shares: how much each row counts, the labelled rows first, adding up to 1; by default all count the same.
        confidence: the level of the interval.

    Raises:
        UncorrectableError: a number is neither 0 nor 1; no label is yes, or none is no; or the labels do not show that
            the judge tells them apart.
    """
    everything = np.concatenate([judged, unlabelled])
    if not np.isin(np.concatenate([everything, labelled]), (0.0, 1.0)).all():
        raise UncorrectableError(
            "Rogan and Gladen's correction needs values and labels that are yes or no (1 or 0); where annotators "
            "disagree, adjudicate; or write 'correction: ppi'"
        )
    is_yes = labelled == 1
    if not is_yes.any() or is_yes.all():
        said = "yes" if is_yes.any() else "no"
        raise UncorrectableError(
            f"all {len(labelled)} labels are {said}, so they do not show how often the judge errs on the others"
        )
    own = np.full(len(everything), 1 / len(everything)) if shares is None else shares
    counts = np.ones(len(labelled)) if weights is None else weights
    counts = counts if shares is None else counts * shares[: len(labelled)]
    counts = counts / counts.mean()
    of_yes, of_no = _estimate_rate(judged, is_yes, counts), _estimate_rate(1 - judged, ~is_yes, counts)
    share, informed = float(everything.mean() if shares is None else own @ everything), of_yes.value + of_no.value - 1
    excess = share + of_no.value - 1  # of which the corrected share is the ratio to `informed`
    members = number_clusters(clusters, len(everything))
    of_excess, of_informed = own * (everything - share), np.zeros(len(everything))
    of_excess[: len(judged)] += of_no.parts
    of_informed[: len(judged)] = of_yes.parts + of_no.parts
    first, second = (np.bincount(members, weights=parts) for parts in (of_excess, of_informed))
    variances = (
        float(first @ first) + of_no.added,
        float(first @ second) + of_no.added,
        float(second @ second) + of_yes.added + of_no.added,
    )
    ends = _compute_share_ends(excess, informed, variances, confidence) if informed > 0 else None
    if ends is None:
        raise UncorrectableError("the labels do not show that the judge says yes more often where people do")
    value = excess / informed
    parts = (of_excess - value * of_informed) / informed
    added = (value**2 * of_yes.added + (1 - value) ** 2 * of_no.added) / informed**2
    error = math.sqrt(max(0.0, variances[0] - 2 * value * variances[1] + value**2 * variances[2])) / informed
    interval = Interval(*ends, confidence, ROGAN_GLADEN)
    return CorrectedShare(value, interval, error, of_yes.value, of_no.value, parts, added)


def _estimate_rate(is_right: Floats, of_class: Bools, counts: Floats) -> _Rate:
    size = float(counts[of_class].sum()) + 2 * _ADDED
    rate = (float((counts * is_right)[of_class].sum()) + _ADDED) / size
    parts = np.where(of_class, counts * (is_right - rate), 0.0) / size
    return _Rate(rate, parts, _ADDED * ((1 - rate) ** 2 + rate**2) / size**2)


def _compute_share_ends(
    excess: float, informed: float, variances: tuple[float, float, float], confidence: float
) -> tuple[float, float] | None:
    """The ratios that are not ruled out: `(excess - ratio * informed)**2` is at most its variance times `z**2`.

    `variances` are those of `excess`, of both together, and of `informed`. None if no ratio is ruled out.
    """
    limit = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    square = informed**2 - limit * variances[2]
    middle = excess * informed - limit * variances[1]
    if square <= 0:
        return None
    root = math.sqrt(max(0.0, middle**2 - square * (excess**2 - limit * variances[0])))
    return (middle - root) / square, (middle + root) / square
