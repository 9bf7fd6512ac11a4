"""Shares of yes from a judge that says yes or no and errs: Rogan and Gladen's correction (1978).

The judge's share of yes is corrected by its sensitivity and specificity, which are measured on the labelled rows.
Prediction-powered inference (`corrected.py`) is narrower wherever the labelled rows are drawn from the same rows.
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

METHOD = "rogan-gladen"
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
        UncorrectableError: no label is yes, or none is no, or the labels do not show that the judge tells them apart.
        ValueError: a number is neither 0 nor 1.
    """
    import numpy as np

    everything = np.concatenate([judged, unlabelled])
    if not np.isin(np.concatenate([everything, labelled]), (0.0, 1.0)).all():
        raise ValueError("every decision and every label must be 0 or 1")
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
    of_yes, of_no = _find_rate(judged, is_yes, counts), _find_rate(1 - judged, ~is_yes, counts)
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
    ends = _find_ends(excess, informed, variances, confidence) if informed > 0 else None
    if ends is None:
        raise UncorrectableError("the labels do not show that the judge says yes more often where people do")
    value = excess / informed
    parts = (of_excess - value * of_informed) / informed
    added = (value**2 * of_yes.added + (1 - value) ** 2 * of_no.added) / informed**2
    error = math.sqrt(max(0.0, variances[0] - 2 * value * variances[1] + value**2 * variances[2])) / informed
    interval = Interval(*ends, confidence, METHOD)
    return CorrectedShare(value, interval, error, of_yes.value, of_no.value, parts, added)


def _find_rate(is_right: Floats, of_class: NDArray[np.bool_], counts: Floats) -> _Rate:
    import numpy as np

    size = float(counts[of_class].sum()) + 2 * _ADDED
    rate = (float((counts * is_right)[of_class].sum()) + _ADDED) / size
    parts = np.where(of_class, counts * (is_right - rate), 0.0) / size
    return _Rate(rate, parts, _ADDED * ((1 - rate) ** 2 + rate**2) / size**2)


def _find_ends(
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
