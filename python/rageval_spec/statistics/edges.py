"""Intervals of corrected means that hold near the ends of what a metric can be, where few labels differ from the rest.

With 60 labels of which three are no, a symmetric interval covers what people would say in about 90% of the cases: the
fewer the draw has of the rare label, the smaller is the variance that it shows. And if the judge missed none of the
three, its errors seem to have no variance at all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from rageval_spec.data.interval import Interval
from rageval_spec.statistics.corrected import CorrectedMean, find_t

if TYPE_CHECKING:
    from rageval_spec.statistics.resampling import Floats

METHOD = "ppi++-score"
LABELS_ALONE = "score"
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
    judge treats the rare labels. If all labels are the same, both intervals are those of `bound_equal`,
    and it is not known what the labels are worth.

    Args:
        found: the mean, as `correct_mean` gives it.
        labels: the labels that it comes from.
        bounds: the lowest and the highest possible label. The labels are yes and no if there are no others.
        confidence: the level of the intervals.
    """
    low, high = bounds
    if found.error is not None and labels.min() == labels.max():
        equal, _ = bound_equal(found.labelled, found.degrees + 1, bounds, confidence)
        return replace(found, interval=equal, labelled_interval=equal, worth=None)
    width, share = high - low, (found.labelled - low) / (high - low)
    is_yes_no = bool(((labels == low) | (labels == high)).all()) and 0 < share < 1
    if not is_yes_no or found.error is None or found.labelled_interval is None:
        return found
    t = find_t((1 + confidence) / 2, found.degrees)
    alone = ((found.labelled_interval.high - found.labelled_interval.low) / (2 * t)) ** 2
    taken = max(0.0, 1 - found.error**2 / alone) if alone > 0 else 0.0
    count, unseen = found.degrees + 1, _UNSEEN * taken
    added = unseen * (share**2 + (1 - share) ** 2) / 2 / (count * (count + unseen))
    variance = found.error**2 / width**2 * count / (count + unseen) + added

    def reach(value: float, variance: float, method: str) -> Interval:
        lower, upper = _find_ends(min(max((value - low) / width, 0.0), 1.0), t * t * variance / (share * (1 - share)))
        return Interval(low + width * lower, low + width * upper, confidence, method)

    return replace(
        found,
        interval=reach(found.value, variance, METHOD),
        labelled_interval=reach(found.labelled, alone / width**2, LABELS_ALONE),
    )


def _find_ends(value: float, factor: float) -> tuple[float, float]:
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
