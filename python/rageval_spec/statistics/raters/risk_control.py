"""Thresholds that keep a promise: of the answers that are sent, at most this share is wrong.

Learn then Test (Angelopoulos, Bates, Candes, Jordan and Lei, 2021) with fixed-sequence testing. Thresholds on a grid
that does not depend on the labels are tested from the strictest on: is the share of wrong answers from it on more
than the limit? Each test is an exact binomial one. Testing stops at the first threshold for which this cannot be
ruled out, so no correction is needed for how many were tested. Several sequences start at different numbers of
answers and share the error, because a start with few answers fails at their first mistake, and one with many gives
coverage away.

The promise holds for new answers like the labelled ones, which must be a random part of them, if answers with a lower
value are not wrong less often. It is broken with a probability of at most 1 - confidence over the choice of the
labels.

Rules can have several thresholds. A cascade sends an answer if a step says yes from its bound on; a waterfall sends
it if every stage has at least its bound. A path from the strictest rule to the loosest relaxes one bound after the
other, so each answer is sent from some place of the path on. This place is a score of the answer, and what holds for
one threshold holds for the path. The path may depend on labels only if these are not used to test it, so labels are
divided into two parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeAlias

from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Bools, Floats, np
from rageval_spec.statistics.intervals import compute_tail, compute_upper

Rule: TypeAlias = "Callable[[Floats, Sequence[float]], Bools]"
"""Which rows of values, of shape (rows, bounds), are sent with these bounds. Lower bounds never send fewer rows."""
NOWHERE = -1.0
"""The score of an answer that no rule of a path sends."""
_SPEEDS = (1.0, 0.5, 0.25, 0.0)
_STRIDE = 5
"""One in so many places of a path suffices to compare it with others."""
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class Path:
    """Bounds from the strictest to the loosest; each sends whatever the ones before send."""

    bounds: tuple[tuple[float, ...], ...]
    rule: Rule

    def score(self, values: Floats) -> Floats:
        """How early the path sends each row: 1 for the first bounds, less for later ones, -1 if it never does."""
        scores = np.full(len(values), NOWHERE)
        for place in range(len(self.bounds) - 1, -1, -1):
            scores[self.rule(values, self.bounds[place])] = self.place(place)
        return scores

    def place(self, place: int) -> float:
        """The score of rows that are sent from this place of the path on."""
        return 1 - place / STEPS

    def find(self, threshold: float) -> tuple[float, ...]:
        """The bounds that send the rows with at least this score."""
        place = min(round((1 - threshold) * STEPS), len(self.bounds) - 1)
        return self.bounds[place]


def level_path(bounds: int, rule: Rule) -> Path:
    """The path on which all bounds go down from 1 to 0 together; it depends on no data."""
    return Path(tuple((1 - step / STEPS,) * bounds for step in range(STEPS + 1)), rule)


def learn_path(values: Floats, is_wrong: Bools, rule: Rule, *, together: bool) -> Path:
    """The best of a few paths on these rows: on each, the bounds move along the columns' quantiles at other speeds.

    The best path is the one whose share of wrong answers is lowest, on average over the numbers of answers sent. There
    are few paths, because the best of many fits the chance in few rows.

    `values` has the shape (rows, bounds), from 0 to 1, and NaN where a row has no value. With `together`, a row must
    reach all bounds, and a slow bound stays low. Else one bound is enough, and a slow one stays high.
    """
    columns = [column[~np.isnan(column) & (column >= 0)] for column in values.T]
    quantiles = [np.quantile(one, np.linspace(0, 1, STEPS + 1)) if len(one) else np.ones(STEPS + 1) for one in columns]
    best, chosen = math.inf, (1.0,) * len(columns)
    for speeds in product(_SPEEDS, repeat=len(columns)):
        if max(speeds) == 1:
            path = _build_path(quantiles, speeds, rule, range(0, STEPS + 1, _STRIDE), together=together)
            risk = _average_risk(path.score(values), is_wrong)
            if risk < best - _NOTHING:
                best, chosen = risk, speeds
    return _build_path(quantiles, chosen, rule, range(STEPS + 1), together=together)


def _build_path(
    quantiles: Sequence[Floats], speeds: Sequence[float], rule: Rule, steps: Sequence[int], *, together: bool
) -> Path:
    """The path that goes from the highest quantiles to the lowest, bounds with a speed below 1 only a part of it."""
    bounds = []
    for step in steps:
        left = STEPS - step
        places = [round(speed * left) if together else STEPS - round(speed * step) for speed in speeds]
        bounds.append(tuple(float(column[place]) for column, place in zip(quantiles, places, strict=True)))
    return Path(tuple(bounds), rule)


def _average_risk(scores: Floats, is_wrong: Bools) -> float:
    """The share of wrong rows among the rows sent, on average over how many are sent; ties are sent together."""
    levels, places = np.unique(scores, return_inverse=True)
    rows = np.cumsum(np.bincount(places, minlength=len(levels))[::-1])
    wrong = np.cumsum(np.bincount(places, weights=is_wrong, minlength=len(levels))[::-1])
    return float(((wrong / rows) * np.diff(rows, prepend=0)).sum() / len(scores))


def send_through_stages(values: Floats, bounds: Sequence[float]) -> Bools:
    """A waterfall: every stage has at least its bound. A stage without a value (NaN) lets the row pass."""
    passes: Bools = np.isnan(values) | (values >= np.array(bounds)[None, :])
    sent: Bools = np.logical_and.reduce(passes, axis=1)
    return sent


def send_through_steps(lows: Sequence[float | None]) -> Rule:
    """A cascade whose steps say no up to `lows`: the first step that is sure decides.

    A step is sure of yes from its bound on. A row without a score (NaN) goes on; the last step says no to what is left.
    """

    def send(values: Floats, bounds: Sequence[float]) -> Bools:
        sent, waiting = np.zeros(len(values), dtype=bool), np.ones(len(values), dtype=bool)
        for column, (low, bound) in enumerate(zip(lows, bounds, strict=True)):
            scores = values[:, column]
            yes = waiting & (scores >= bound)
            no = np.zeros(len(values), dtype=bool) if low is None else waiting & (scores <= low) & ~yes
            sent |= yes
            waiting &= ~yes & ~no
        return sent

    return send


def find_controlled(scores: Floats, is_wrong: Bools, limit: float) -> Guarantee | None:
    """The loosest threshold with which at most the share `limit` of all answers is wrong and sent, on average.

    Conformal risk control (Angelopoulos, Bates, Fisch, Lei and Schuster, 2024): the share of answers that are wrong and
    sent rises as the threshold falls, so its mean over new answers is controlled if one more wrong answer than there
    are keeps the limit, too: `(wrong + 1) / (labels + 1) <= limit`. Unlike `find_guarantee`, it limits the share among
    all answers, and a mean over sets of labels instead of most sets of labels. So its confidence is 0.5. None if the
    labels are too few.
    """
    grid = np.linspace(1, 0, STEPS + 1)
    sent = scores[None, :] >= grid[:, None]
    wrong = (sent & is_wrong[None, :]).sum(axis=1)
    kept = np.flatnonzero((wrong + 1) / (len(scores) + 1) <= limit)
    if not len(kept):
        return None
    last = int(kept[-1])
    return Guarantee(limit, 0.5, float(grid[last]), int(sent[last].sum()), int(wrong[last]), len(scores))


STEPS = 200
"""The number of steps of the grid of thresholds between 0 and 1."""
STARTS = (1.0, 2.0, 4.0)
"""Where sequences start: at multiples of the number of answers that suffices if none of them is wrong."""
_POINTS = 10
_FINEST = 0.001
"""The step of the limits that are tried for the best promise."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A threshold and what it promises.

    With the probability `confidence`, at most the share `limit` is wrong among the answers that are sent: those whose
    value is `threshold` or higher. Of all labelled answers, `sent` would be sent, and `wrong` of them are wrong.
    """

    limit: float
    confidence: float
    threshold: float
    sent: int
    wrong: int
    labels: int

    @property
    def coverage(self) -> float:
        return self.sent / self.labels


@dataclass(frozen=True, slots=True)
class RiskPoint:
    """What a threshold does: the share of answers that it sends, the share of wrong ones among them, and its bound."""

    threshold: float
    coverage: float
    risk: float
    upper: float


def find_guarantee(values: Floats, is_wrong: Bools, limit: float, confidence: float) -> Guarantee | None:
    """The threshold that sends most answers and keeps the promise; None if none can be shown to keep it.

    `values` are the judge's of the labelled answers, from 0 to 1; see `Guarantee` for the others.
    """
    grid = np.linspace(1, 0, STEPS + 1)
    sent = (values[None, :] >= grid[:, None]).sum(axis=1)
    wrong = ((values[None, :] >= grid[:, None]) & is_wrong[None, :]).sum(axis=1)
    starts, error = _plan_starts(len(values), limit, confidence)
    last = -1
    for start in starts:
        place = int(np.searchsorted(sent, start))
        while place <= STEPS and compute_tail(int(wrong[place]), int(sent[place]), limit) <= error:
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


def find_best_limit(values: Floats, is_wrong: Bools, confidence: float) -> Guarantee | None:
    """The guarantee with the smallest limit, in steps of 0.1%, that these labels can show; None if there is none."""
    for step in range(1, round(1 / _FINEST)):
        found = find_guarantee(values, is_wrong, step * _FINEST, confidence)
        if found is not None:
            return found
    return None


def trace_risk(values: Floats, is_wrong: Bools, confidence: float) -> tuple[RiskPoint, ...]:
    """What thresholds between the highest value and the lowest do, each with its own upper bound of the risk.

    The bounds are exact (Clopper and Pearson, 1934) and hold for one threshold that was chosen beforehand, not for the
    best of them. Answers with values below 0 are never sent, whatever the threshold.
    """
    sendable = values[values >= 0]
    if not len(sendable):
        return ()
    levels = np.quantile(values, np.linspace(1, 0, _POINTS + 1)[1:], method="lower")
    levels = np.unique(np.maximum(levels, sendable.min()))[::-1]
    traced = []
    for threshold in levels:
        sent = values >= threshold
        count, wrong = int(sent.sum()), int((sent & is_wrong).sum())
        upper = compute_upper(wrong, count, confidence)
        traced.append(RiskPoint(float(threshold), count / len(values), wrong / count, upper))
    return tuple(traced)


def count_needed(limit: float, error: float) -> int:
    """How many answers show that at most the share `limit` is wrong, if none of them is: `(1 - limit)^n <= error`."""
    return math.ceil(math.log(error) / math.log1p(-limit))
