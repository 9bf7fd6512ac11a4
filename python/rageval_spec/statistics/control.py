"""Rules of several thresholds, and the risk that they keep: as a path from the strictest rule to the loosest.

A cascade sends an answer if a step says yes from its bound on; a waterfall sends it if every stage has at least its
bound. A path relaxes one bound after the other, so each answer is sent from some place of the path on. This place is a
score of the answer, and what holds for one threshold (`guarantees.py`) holds for the path.

The path may depend on labels only if these are not used to test it, so labels are divided into two parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec.statistics.guarantees import STEPS, Guarantee

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]

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
        import numpy as np

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

    Args:
        values: of shape (rows, bounds), from 0 to 1; NaN where a row has no value.
        is_wrong: whether people say that the answer is wrong.
        rule: which rows are sent.
        together: whether a row must reach all bounds; a slow bound then stays low. Else one bound is enough, and a slow
            one stays high.
    """
    import numpy as np

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
    import numpy as np

    levels, places = np.unique(scores, return_inverse=True)
    rows = np.cumsum(np.bincount(places, minlength=len(levels))[::-1])
    wrong = np.cumsum(np.bincount(places, weights=is_wrong, minlength=len(levels))[::-1])
    return float(((wrong / rows) * np.diff(rows, prepend=0)).sum() / len(scores))


def send_through_stages(values: Floats, bounds: Sequence[float]) -> Bools:
    """A waterfall: every stage has at least its bound. A stage without a value (NaN) lets the row pass."""
    import numpy as np

    passes: Bools = np.isnan(values) | (values >= np.array(bounds)[None, :])
    sent: Bools = np.logical_and.reduce(passes, axis=1)
    return sent


def send_through_steps(lows: Sequence[float | None]) -> Rule:
    """A cascade whose steps say no up to `lows`: the first step that is sure decides.

    A step is sure of yes from its bound on. A row without a score (NaN) goes on; the last step says no to what is left.
    """

    def send(values: Floats, bounds: Sequence[float]) -> Bools:
        import numpy as np

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
    all answers, and a mean over sets of labels instead of most sets of labels.

    Returns:
        The guarantee; its confidence is 0.5, because a mean is all that it holds for. None if the labels are too few.
    """
    import numpy as np

    grid = np.linspace(1, 0, STEPS + 1)
    sent = scores[None, :] >= grid[:, None]
    wrong = (sent & is_wrong[None, :]).sum(axis=1)
    kept = np.flatnonzero((wrong + 1) / (len(scores) + 1) <= limit)
    if not len(kept):
        return None
    last = int(kept[-1])
    return Guarantee(limit, 0.5, float(grid[last]), int(sent[last].sum()), int(wrong[last]), len(scores))
