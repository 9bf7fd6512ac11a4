"""Where to draw the line between yes and no, and how good decisions by such a line are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from rageval_spec.calibration.folds import deal_folds
from rageval_spec.calibration.measures import BETWEEN, Measure, Measuring
from rageval_spec.statistics.discrimination import (
    Choice,
    Decision,
    choose_for_precision,
    choose_threshold,
    decide,
    find_highest_precision,
)
from rageval_spec.statistics.proportions import find_exact_interval
from rageval_spec.wording import format_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]

_DECISIONS: tuple[Decision, ...] = ("balanced_accuracy", "f1", "precision", "recall", "kappa")


@dataclass(frozen=True, slots=True)
class Criterion:
    """What the best threshold is: the one with the highest F1 or Youden's index, or the lowest that is precise enough.

    Attributes:
        name: `f1`, `youden` or `precision`.
        wanted: the wanted precision; None for the other criteria.
    """

    name: Literal["f1", "youden", "precision"] = "youden"
    wanted: float | None = None

    def __str__(self) -> str:
        """As the command line has it: `f1`, `precision>=0.95`."""
        return self.name if self.wanted is None else f"{self.name}>={self.wanted:g}"

    def choose(self, values: Floats, is_yes: Bools) -> Choice | None:
        """The best threshold; None if only one class is there, or if no threshold reaches the wanted precision."""
        if self.name == "precision":
            return choose_for_precision(values, is_yes, self.wanted or 0.0)
        return choose_threshold(values, is_yes, self.name)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where to draw the line.

    Attributes:
        criterion: what it is the best by: `youden`, `f1`, `precision>=0.95`.
        threshold: values from it on are taken as yes; None if no threshold reaches the wanted precision.
        reason: why there is none.
    """

    criterion: str
    threshold: float | None
    reason: str | None = None


def find_threshold(values: Floats, is_yes: Bools, criterion: Criterion) -> Threshold | None:
    """The best threshold on these labels; None if only one class is there."""
    if not 0 < is_yes.sum() < len(is_yes):
        return None
    choice = criterion.choose(values, is_yes)
    if choice is not None:
        return Threshold(str(criterion), choice.threshold)
    best = find_highest_precision(values, is_yes)
    return Threshold(
        str(criterion),
        None,
        f"no threshold reaches a precision of {criterion.wanted:g} on these labels; the highest is "
        f"{format_number(best.value)}, from {format_number(best.threshold)} on",
    )


def rate_decisions(values: Floats, is_yes: Bools, criterion: Criterion, how: Measuring) -> tuple[Measure, ...]:
    """How good decisions are by thresholds that are best on other questions.

    Each fold's rows are decided by the threshold of the other folds. Empty if there are fewer questions than folds, or
    a part without one of the classes.
    """
    taken = decide_outside(values, is_yes, how.questions, criterion, how.seed)
    if taken is None:
        return ()
    decisions = decide(taken.astype(float), is_yes, BETWEEN)
    found = (how.measure(name, decisions[name]) for name in _DECISIONS)
    among = {"precision": taken, "recall": is_yes}
    return tuple(_bound_perfect(one, among[one.name], how.questions) if one.name in among else one for one in found)


def _bound_perfect(found: Measure, among: Bools, questions: Sequence[Hashable]) -> Measure:
    """A share that is 0 or 1 with its exact interval (Clopper and Pearson), as if each question had one row."""
    if found.value not in (0.0, 1.0):
        return found
    total = len({question for question, counts in zip(questions, among, strict=True) if counts})
    return Measure(found.name, found.value, find_exact_interval(total if found.value else 0, total))


def decide_outside(
    values: Floats, is_yes: Bools, questions: Sequence[Hashable], criterion: Criterion, seed: int
) -> Bools | None:
    """Which rows are taken as yes, each by the threshold that is best on the questions of the other folds.

    None of a fold is, if no threshold reaches the wanted precision on the others. None if there are fewer questions
    than folds, or a part without one of the classes.
    """
    import numpy as np

    folds = deal_folds(questions, seed)
    if folds is None:
        return None
    taken = np.zeros(len(values), dtype=bool)
    for fold in np.unique(folds):
        inside = folds == fold
        if not 0 < is_yes[~inside].sum() < (~inside).sum():
            return None
        choice = criterion.choose(values[~inside], is_yes[~inside])
        if choice is not None:
            taken[inside] = values[inside] >= choice.threshold
    return taken
