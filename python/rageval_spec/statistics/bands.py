"""Where the steps of a cascade are sure: the scores up to which they say no and from which they say yes.

A step says no up to `low` and yes from `high` on; between them the next step is asked. Each side must agree with the
labels: of the rows that a step decides with no, at least the wanted share are no, and of those with yes, at least that
share are yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec.statistics.proportions import find_wilson_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.data.interval import Interval

    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

FEWEST = 10
"""A side of fewer rows does not show how well it agrees."""
_MARGINS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Parts of the way from the wanted agreement to 1 by which the agreement with known labels must exceed it."""


@dataclass(frozen=True, slots=True)
class Band:
    """The scores between which a step is unsure; None if it never says no, or never yes."""

    low: float | None = None
    high: float | None = None

    def decide(self, scores: Floats) -> Ints:
        """1 where the step says yes, -1 where it says no, and 0 where it is unsure or has no score (NaN)."""
        import numpy as np

        yes = np.zeros(len(scores), dtype=bool) if self.high is None else scores >= self.high
        no = np.zeros(len(scores), dtype=bool) if self.low is None else scores <= self.low
        return yes.astype(np.int64) - (no & ~yes)


@dataclass(frozen=True, slots=True)
class StepChoice:
    """What was chosen for one step, and how it does on questions that had no part in choosing.

    Attributes:
        band: chosen on all rows.
        reached: the rows that the step is asked about, of all.
        decided: those of them that it decides.
        agreeing: those of them that it decides as the labels do.
        interval: of the agreement; None if the step decides nothing.
    """

    band: Band
    reached: int
    decided: int
    agreeing: int
    interval: Interval | None

    @property
    def agreement(self) -> float | None:
        """The share of decided rows that agree with the labels."""
        return self.agreeing / self.decided if self.decided else None


def choose_band(scores: Floats, is_yes: Bools, wanted: float) -> Band:
    """The band that decides most rows, with at least the wanted agreement on each side.

    Args:
        scores: the step's scores; NaN where it has none.
        is_yes: the labels.
        wanted: the agreement, from 0 to 1.
    """
    import numpy as np

    known = ~np.isnan(scores)
    levels, places = np.unique(scores[known], return_inverse=True)
    if not len(levels):
        return Band()
    yes: Floats = np.bincount(places, weights=is_yes[known], minlength=len(levels)).astype(float)
    rows = np.bincount(places, minlength=len(levels))
    below = _find_last(np.cumsum(rows - yes), np.cumsum(rows), wanted)
    above = _find_last(np.cumsum(yes[::-1]), np.cumsum(rows[::-1]), wanted)
    first = None if above is None else len(levels) - 1 - above
    if below is not None and first is not None and below >= first:
        below, first = _divide(yes, rows, first, below)
    low = None if below is None else _between(levels, below, below + 1)
    return Band(low, None if first is None else _between(levels, first, first - 1))


def choose_bands(
    scores: Floats, is_yes: Bools, wanted: float, folds: Ints, questions: Sequence[object]
) -> tuple[StepChoice, ...]:
    """The band of each step but the last, in order; each step gets the rows that the steps before left undecided.

    A band that agrees just enough with known labels agrees less with new ones. So of a few margins the smallest is used
    with which the decisions agree enough on the folds that had no part in choosing. A step that agrees enough with none
    decides nothing.

    Args:
        scores: of shape (rows, steps), without the last step; NaN where a step has no score.
        is_yes: the labels.
        wanted: the agreement, from 0 to 1.
        folds: the fold of each row, from 0.
        questions: the question of each row.
    """
    import numpy as np

    waiting = np.ones(len(is_yes), dtype=bool)
    outside = {int(fold): waiting.copy() for fold in np.unique(folds)}
    chosen = []
    for step in range(scores.shape[1]):
        column = scores[:, step]
        reached = sum(int((waits & (folds == fold)).sum()) for fold, waits in outside.items())
        band, decided = Band(), np.zeros(len(is_yes), dtype=np.int64)
        for margin in _MARGINS:
            target = wanted + margin * (1 - wanted)
            tried, bands = _decide_outside(column, is_yes, target, folds, outside)
            if tried.any() and _agree(tried, is_yes).sum() >= wanted * (tried != 0).sum():
                band, decided = choose_band(np.where(waiting, column, np.nan), is_yes, target), tried
                for fold, waits in outside.items():
                    waits &= bands[fold].decide(column) == 0
                break
        chosen.append(_describe(band, reached, decided, is_yes, questions))
        waiting &= band.decide(column) == 0
    return tuple(chosen)


def _decide_outside(
    scores: Floats, is_yes: Bools, target: float, folds: Ints, outside: dict[int, Bools]
) -> tuple[Ints, dict[int, Band]]:
    """The decisions on each fold by the band that is chosen on the others, and these bands."""
    import numpy as np

    decided = np.zeros(len(scores), dtype=np.int64)
    bands: dict[int, Band] = {}
    for fold, waits in outside.items():
        inside = folds == fold
        bands[fold] = choose_band(np.where(waits & ~inside, scores, np.nan), is_yes, target)
        decided = np.where(inside & waits, bands[fold].decide(scores), decided)
    return decided, bands


def _describe(band: Band, reached: int, decided: Ints, is_yes: Bools, questions: Sequence[object]) -> StepChoice:
    """With several rows of a question, only the number of questions counts for the interval's width."""
    rows = [place for place, found in enumerate(decided.tolist()) if found]
    agreeing = int(_agree(decided, is_yes).sum())
    distinct = len({questions[place] for place in rows})
    share = agreeing / len(rows) if rows else 0.0
    interval = find_wilson_interval(round(share * distinct), distinct)
    return StepChoice(band, reached, len(rows), agreeing, interval)


def _agree(decided: Ints, is_yes: Bools) -> Bools:
    agreeing: Bools = ((decided == 1) & is_yes) | ((decided == -1) & ~is_yes)
    return agreeing


def _find_last(right: Floats, rows: Ints, wanted: float) -> int | None:
    """The last place up to which enough rows are right; None if there is none, or it has too few rows."""
    import numpy as np

    enough = np.flatnonzero((right >= wanted * rows - 1e-9) & (rows >= FEWEST))
    return int(enough[-1]) if len(enough) else None


def _divide(yes: Floats, rows: Ints, first: int, last: int) -> tuple[int | None, int | None]:
    """Where both sides could decide the same rows: the last level that is no and the first that is yes."""
    import numpy as np

    cuts = range(first, last + 2)
    no = np.concatenate([[0], np.cumsum(rows - yes)])
    right = [no[cut] + yes[cut:].sum() for cut in cuts]
    cut = cuts[int(np.argmax(right))]
    return (cut - 1 if cut else None), (cut if cut < len(rows) else None)


def _between(levels: Floats, inside: int, outside: int) -> float:
    """Halfway between the last level that is decided and the next one; at the ends, the level itself."""
    if not 0 <= outside < len(levels):
        return float(levels[inside])
    return float((levels[inside] + levels[outside]) / 2)
