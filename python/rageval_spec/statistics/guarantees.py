"""Thresholds that keep a promise: of the answers that are sent, at most this share is wrong.

Learn then Test (Angelopoulos, Bates, Candes, Jordan and Lei, 2021) with fixed-sequence testing. Thresholds on a grid
that does not depend on the labels are tested from the strictest on: is the share of wrong answers from it on more than
the limit? Each test is an exact binomial one. Testing stops at the first threshold for which this cannot be ruled out,
so no correction is needed for how many were tested. Several sequences start at different numbers of answers and share
the error, because a start with few answers fails at their first mistake, and one with many gives coverage away.

The promise holds for new answers like the labelled ones, which must be a random part of them, if answers with a lower
value are not wrong less often. It is broken with a probability of at most 1 - confidence over the choice of the labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

STEPS = 200
"""The number of steps of the grid of thresholds between 0 and 1."""
STARTS = (1.0, 2.0, 4.0)
"""Where sequences start: at multiples of the number of answers that suffices if none of them is wrong."""
_FINEST = 0.001
"""The step of the limits that are tried for the best promise."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A threshold and what it promises.

    Attributes:
        limit: the largest share of wrong answers among those that are sent.
        confidence: the probability with which the promise is kept.
        threshold: answers with this value or a higher one are sent.
        sent, wrong: the labelled answers that would be sent, and how many of them are wrong.
        labels: all labelled answers.
    """

    limit: float
    confidence: float
    threshold: float
    sent: int
    wrong: int
    labels: int

    @property
    def coverage(self) -> float:
        """The share of answers that are sent."""
        return self.sent / self.labels


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold does: the share of answers that it sends, the share of wrong ones among them, and its bound."""

    threshold: float
    coverage: float
    risk: float
    upper: float


def find_guarantee(values: Floats, is_wrong: NDArray[np.bool_], limit: float, confidence: float) -> Guarantee | None:
    """The threshold that sends most answers and keeps the promise; None if none can be shown to keep it.

    Args:
        values: the judge's values of the labelled answers, from 0 to 1.
        is_wrong: whether people say that the answer is wrong.
        limit: the largest share of wrong answers among those that are sent, between 0 and 1.
        confidence: the probability with which the promise must be kept.
    """
    import numpy as np

    grid = np.linspace(1, 0, STEPS + 1)
    sent = (values[None, :] >= grid[:, None]).sum(axis=1)
    wrong = ((values[None, :] >= grid[:, None]) & is_wrong[None, :]).sum(axis=1)
    starts, error = _plan_starts(len(values), limit, confidence)
    last = -1
    for start in starts:
        place = int(np.searchsorted(sent, start))
        while place <= STEPS and find_tail(int(wrong[place]), int(sent[place]), limit) <= error:
            last = max(last, place)
            place += 1
    if last < 0:
        return None
    return Guarantee(limit, confidence, float(grid[last]), int(sent[last]), int(wrong[last]), len(values))


def _plan_starts(labels: int, limit: float, confidence: float) -> tuple[list[int], float]:
    """How many answers each sequence starts with, and the error that each may have.

    Only starts that so many labels can reach take a part of the error. None if there are too few labels.
    """
    for count in range(len(STARTS), 0, -1):
        error = (1 - confidence) / count
        fewest = count_needed(limit, error)
        if fewest * STARTS[count - 1] <= labels:
            return [math.ceil(fewest * start) for start in STARTS[:count]], error
    return [], 1 - confidence


def find_best_limit(values: Floats, is_wrong: NDArray[np.bool_], confidence: float) -> Guarantee | None:
    """The guarantee with the smallest limit, in steps of 0.1%, that these labels can show; None if there is none."""
    for step in range(1, round(1 / _FINEST)):
        found = find_guarantee(values, is_wrong, step * _FINEST, confidence)
        if found is not None:
            return found
    return None


def trace_risk(values: Floats, is_wrong: NDArray[np.bool_], confidence: float, points: int = 10) -> tuple[Point, ...]:
    """What thresholds between the highest value and the lowest do, each with its own upper bound of the risk.

    The bounds are exact (Clopper and Pearson, 1934) and hold for one threshold that was chosen beforehand, not for the
    best of them. Answers with values below 0 are never sent, whatever the threshold.
    """
    import numpy as np

    sendable = values[values >= 0]
    if not len(sendable):
        return ()
    levels = np.quantile(values, np.linspace(1, 0, points + 1)[1:], method="lower")
    levels = np.unique(np.maximum(levels, sendable.min()))[::-1]
    traced = []
    for threshold in levels:
        sent = values >= threshold
        count, wrong = int(sent.sum()), int((sent & is_wrong).sum())
        upper = find_upper(wrong, count, confidence)
        traced.append(Point(float(threshold), count / len(values), wrong / count, upper))
    return tuple(traced)


def count_needed(limit: float, error: float) -> int:
    """How many answers show that at most the share `limit` is wrong, if none of them is: `(1 - limit)^n <= error`."""
    return math.ceil(math.log(error) / math.log1p(-limit))


def find_tail(wrong: int, sent: int, limit: float) -> float:
    """The probability of at most this many wrong answers if the share of wrong ones is `limit`; 1 if none was sent."""
    if not sent or wrong >= sent:
        return 1.0
    logs = (
        math.lgamma(sent + 1) - math.lgamma(hits + 1) - math.lgamma(sent - hits + 1)
        + hits * math.log(limit) + (sent - hits) * math.log1p(-limit)
        for hits in range(wrong + 1)
    )  # fmt: skip
    return min(1.0, math.fsum(map(math.exp, logs)))


def find_upper(wrong: int, sent: int, confidence: float) -> float:
    """The largest share of wrong answers that this many of them do not rule out (one-sided, Clopper and Pearson)."""
    if wrong >= sent:
        return 1.0
    low, high = wrong / sent, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if find_tail(wrong, sent, middle) > 1 - confidence else (low, middle)
    return high
