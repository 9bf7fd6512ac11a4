"""How well a judge's values tell right from wrong, and where to draw the line.

A row is positive if people said yes. Functions take weights of shape (resamples, rows), as in `association`, and return
a number for each resample: not a number where it is undefined, because only one class is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from rageval_spec.statistics.association import sum_groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.statistics.resampling import Floats, Statistic

Discrimination = Literal["auroc", "average_precision"]
Decision = Literal["balanced_accuracy", "f1", "youden", "precision", "recall", "specificity", "kappa"]
Criterion = Literal["f1", "youden"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)


@dataclass(frozen=True, slots=True)
class Choice:
    """A threshold (values from it on are taken as yes) and the criterion's value there."""

    threshold: float
    value: float


def discriminate(values: Floats, is_positive: NDArray[np.bool_]) -> Mapping[Discrimination, Statistic]:
    """What does not depend on a threshold, as functions of weights.

    | name | |
    |---|---|
    | `auroc` | the probability that a positive row has a higher value than a negative one; ties count half |
    | `average_precision` | the mean precision over the positive rows, best value first; ties are taken together |
    """
    import numpy as np

    _, places = np.unique(values, return_inverse=True)

    def split(weights: Floats) -> tuple[Floats, Floats]:
        return sum_groups(weights * is_positive, places), sum_groups(weights * ~is_positive, places)

    def find_auroc(weights: Floats) -> Floats:
        yes, no = split(weights)
        below = np.cumsum(no, axis=1) - no
        return _divide((yes * (below + no / 2)).sum(axis=1), yes.sum(axis=1) * no.sum(axis=1))

    def find_precision(weights: Floats) -> Floats:
        yes, no = (part[:, ::-1] for part in split(weights))
        found, taken = np.cumsum(yes, axis=1), np.cumsum(yes + no, axis=1)
        precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
        return _divide((yes * precision).sum(axis=1), yes.sum(axis=1))

    return {"auroc": find_auroc, "average_precision": find_precision}


def decide(values: Floats, is_positive: NDArray[np.bool_], threshold: float) -> Mapping[Decision, Statistic]:
    """How good the decisions at a threshold are, as functions of weights.

    | name | |
    |---|---|
    | `precision` | of the rows taken as yes, those that are |
    | `recall`, `specificity` | of the yes, and of the no, those found |
    | `f1` | the harmonic mean of precision and recall |
    | `balanced_accuracy`, `youden` | the mean of recall and specificity; their sum less 1 |
    | `kappa` | Cohen's kappa of the decisions with the labels |
    """
    import numpy as np

    taken = values >= threshold
    cells = np.stack([taken & is_positive, taken & ~is_positive, ~taken & is_positive, ~taken & ~is_positive], axis=1)

    def find(name: Decision) -> Statistic:
        return lambda weights: getattr(_Counts(*(weights @ cells).T), name)

    return {name: find(name) for name in DECISIONS}


def choose_threshold(values: Floats, is_positive: NDArray[np.bool_], criterion: Criterion) -> Choice | None:
    """The threshold with the best criterion; of equally good ones, the lowest. None if only one class is there.

    Candidates lie halfway between neighbouring values, and at the lowest value, where everything is taken as yes.
    """
    import numpy as np

    yes = int(is_positive.sum())
    if not 0 < yes < len(values):
        return None
    levels, places = np.unique(values, return_inverse=True)
    hits = np.bincount(places, weights=is_positive, minlength=len(levels))
    misses = np.bincount(places, weights=~is_positive, minlength=len(levels))
    found, wrong = (np.cumsum(counts[::-1])[::-1].astype(float) for counts in (hits, misses))
    scores = getattr(_Counts(found, wrong, yes - found, (len(values) - yes) - wrong), criterion)
    return _choose(levels, scores, int(np.nanargmax(scores)))


def choose_for_precision(values: Floats, is_positive: NDArray[np.bool_], wanted: float) -> Choice | None:
    """The threshold that finds most positive rows at this precision or a higher one; None if no threshold reaches it.

    The value of the choice is the precision there.
    """
    import numpy as np

    if not is_positive.any():
        return None
    levels, precision = _list_precisions(values, is_positive)
    enough = np.flatnonzero(precision >= wanted)
    if not len(enough):
        return None
    return _choose(levels, precision, int(enough[0]))


def find_highest_precision(values: Floats, is_positive: NDArray[np.bool_]) -> Choice:
    """The threshold with the highest precision; of several, the lowest. There must be a row."""
    import numpy as np

    levels, precision = _list_precisions(values, is_positive)
    return _choose(levels, precision, int(np.argmax(precision)))


def _list_precisions(values: Floats, is_positive: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The different values in ascending order, and the precision if each and all above it are taken as yes."""
    import numpy as np

    levels, places = np.unique(values, return_inverse=True)
    hits = np.bincount(places, weights=is_positive, minlength=len(levels))
    taken = np.cumsum(np.bincount(places, minlength=len(levels))[::-1])[::-1]
    return levels, np.cumsum(hits[::-1])[::-1] / taken


def _choose(levels: Floats, scores: Floats, place: int) -> Choice:
    """The threshold that takes the level at a place as yes, and no level below it."""
    threshold = levels[0] if place == 0 else (levels[place - 1] + levels[place]) / 2
    return Choice(float(threshold), float(scores[place]))


def _divide(part: Floats, whole: Floats) -> Floats:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


class _Counts(NamedTuple):
    """Rows rightly taken as yes, wrongly taken as yes, missed, and rightly rejected."""

    hits: Floats
    wrong: Floats
    missed: Floats
    rejected: Floats

    @property
    def precision(self) -> Floats:
        return _divide(self.hits, self.hits + self.wrong)

    @property
    def recall(self) -> Floats:
        return _divide(self.hits, self.hits + self.missed)

    @property
    def specificity(self) -> Floats:
        return _divide(self.rejected, self.rejected + self.wrong)

    @property
    def f1(self) -> Floats:
        return _divide(2 * self.hits, 2 * self.hits + self.wrong + self.missed)

    @property
    def youden(self) -> Floats:
        return self.recall + self.specificity - 1

    @property
    def balanced_accuracy(self) -> Floats:
        return (self.recall + self.specificity) / 2

    @property
    def kappa(self) -> Floats:
        hits, wrong, missed, rejected = self
        chance = (hits + wrong) * (wrong + rejected) + (hits + missed) * (missed + rejected)
        return _divide(2 * (hits * rejected - wrong * missed), chance)
