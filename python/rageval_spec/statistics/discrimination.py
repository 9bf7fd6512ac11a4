"""How well a judge's values tell right from wrong, and where to draw the line.

A row is positive if people said yes. Functions take weights of shape (resamples, rows), as in `association`, and return
a number for each resample: not a number where it is undefined, because only one class is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rageval_spec.statistics.association import sum_groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Statistic: TypeAlias = Callable[[Floats], Floats]

Discrimination = Literal["auroc", "average_precision"]
Decision = Literal["balanced_accuracy", "f1", "youden", "precision", "recall", "specificity", "kappa"]
Criterion = Literal["f1", "youden"]


class Choice(NamedTuple):
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
    | `precision`, `recall`, `specificity` | of the rows taken as yes, those that are; of the yes, and the no, those found |
    | `f1` | the harmonic mean of precision and recall |
    | `balanced_accuracy`, `youden` | the mean of recall and specificity; their sum less 1 |
    | `kappa` | Cohen's kappa of the decisions with the labels |
    """
    import numpy as np

    taken = values >= threshold
    cells = np.stack([taken & is_positive, taken & ~is_positive, ~taken & is_positive, ~taken & ~is_positive], axis=1)
    return {name: lambda weights, find=find: find(*(weights @ cells).T) for name, find in _DECISIONS.items()}  # type: ignore[misc]


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
    found, wrong = (np.cumsum(counts[::-1])[::-1] for counts in (hits, misses))
    scores = _DECISIONS[criterion](found, wrong, yes - found, (len(values) - yes) - wrong)
    best = int(np.nanargmax(scores))
    threshold = levels[0] if best == 0 else (levels[best - 1] + levels[best]) / 2
    return Choice(float(threshold), float(scores[best]))


def choose_for_precision(values: Floats, is_positive: NDArray[np.bool_], wanted: float) -> Choice | None:
    """The threshold that finds most positive rows at this precision or a higher one; None if no threshold reaches it.

    The value of the choice is the precision there.
    """
    import numpy as np

    if not is_positive.any():
        return None
    levels, places = np.unique(values, return_inverse=True)
    hits = np.bincount(places, weights=is_positive, minlength=len(levels))
    taken = np.cumsum(np.bincount(places, minlength=len(levels))[::-1])[::-1]
    precision = np.cumsum(hits[::-1])[::-1] / taken
    enough = np.flatnonzero(precision >= wanted)
    if not len(enough):
        return None
    best = int(enough[0])
    threshold = levels[0] if best == 0 else (levels[best - 1] + levels[best]) / 2
    return Choice(float(threshold), float(precision[best]))


def _divide(part: Floats, whole: Floats) -> Floats:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def _find_youden(hits: Floats, wrong: Floats, missed: Floats, rejected: Floats) -> Floats:
    return _divide(hits, hits + missed) + _divide(rejected, rejected + wrong) - 1


def _find_kappa(hits: Floats, wrong: Floats, missed: Floats, rejected: Floats) -> Floats:
    chance = (hits + wrong) * (wrong + rejected) + (hits + missed) * (missed + rejected)
    return _divide(2 * (hits * rejected - wrong * missed), chance)


_Cells: TypeAlias = "Callable[[Floats, Floats, Floats, Floats], Floats]"
_DECISIONS: Mapping[Decision, _Cells] = {
    "precision": lambda hits, wrong, missed, rejected: _divide(hits, hits + wrong),
    "recall": lambda hits, wrong, missed, rejected: _divide(hits, hits + missed),
    "specificity": lambda hits, wrong, missed, rejected: _divide(rejected, rejected + wrong),
    "f1": lambda hits, wrong, missed, rejected: _divide(2 * hits, 2 * hits + wrong + missed),
    "balanced_accuracy": lambda hits, wrong, missed, rejected: (_find_youden(hits, wrong, missed, rejected) + 1) / 2,
    "youden": _find_youden,
    "kappa": _find_kappa,
}
"""By counts of rows: rightly taken as yes, wrongly taken as yes, missed, rightly rejected."""
