"""Finds where the steps of a cascade decide by themselves, so that they agree with labels or with the last step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rageval_spec.calibration.folds import FOLDS, deal_folds
from rageval_spec.data.judge_calibration import Figure, Labelled, StepBounds
from rageval_spec.errors import UsageError
from rageval_spec.statistics.bands import StepChoice, choose_bands

if TYPE_CHECKING:
    from rageval_spec.data.interval import Interval

_YES = 0.5


@dataclass(frozen=True)
class Asked:
    """What all steps of a cascade said of the same answers.

    Attributes:
        items: dataset, system and query of each answer.
        scores: the scores of each step, in the order of the answers, from 0 to 1; None where it has none.
        together: the cluster of each question that belongs together with others, by dataset and query.
    """

    items: Sequence[tuple[str, str, str]]
    scores: Sequence[Sequence[float | None]]
    together: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    @property
    def clusters(self) -> list[tuple[str, str | int]]:
        """What of each answer is independent of the others: its question, or the question's cluster."""
        return [self.together.get(question, question) for question in self.questions]

    @property
    def questions(self) -> list[tuple[str, str]]:
        """The question of each answer."""
        return [(dataset, query_id) for dataset, _, query_id in self.items]

    def find_last(self) -> tuple[list[int], list[float]]:
        """The places of the answers that the last step has a score for, and these scores."""
        known = [(place, score) for place, score in enumerate(self.scores[-1]) if score is not None]
        return [place for place, _ in known], [score for _, score in known]

    def take(self, places: Sequence[int]) -> Asked:
        """Only the answers at these places."""
        scores = [[one[place] for place in places] for one in self.scores]
        return Asked([self.items[place] for place in places], scores, self.together)


@dataclass(frozen=True)
class Bands:
    """Where the steps of a cascade decide by themselves.

    Attributes:
        wanted: the agreement that was wanted.
        items: the answers.
        steps: one for each step but the last.
        spared: the places of the answers about which the last step need not be asked.
    """

    wanted: float
    items: int
    steps: tuple[StepChoice, ...]
    spared: tuple[int, ...]

    def list_bounds(self) -> tuple[StepBounds, ...]:
        """The bounds, as a calibration has them."""
        return tuple(StepBounds(place, one.band.low, one.band.high) for place, one in enumerate(self.steps))

    def list_figures(self, names: Sequence[str]) -> Iterator[Figure]:
        """What each step decides and how often it agrees, on questions held out."""
        for name, one in zip(names, self.steps, strict=False):
            ends = _list_ends(one.interval)
            yield Figure(f"decided by {name}", one.decided / self.items)
            yield Figure(f"agreement of {name}", one.agreement, *ends)


def find_bands(asked: Asked, labels: Sequence[float], wanted: float, seed: int = 42) -> Bands:
    """Choose the bands of a cascade's steps.

    Args:
        asked: what the steps said.
        labels: what people, or the last step, say of each answer, from 0 to 1; above 0.5 is yes.
        wanted: the share of its decisions with which each step must agree, from 0.5 to 1.
        seed: the seed of the folds.

    Raises:
        UsageError: there are fewer questions than folds.
    """
    import numpy as np

    folds = deal_folds(asked.clusters, seed)
    if folds is None:
        raise UsageError(
            f"{len(asked.items)} answers are too few to hold questions out; label at least {FOLDS} questions"
        )
    scores = np.array([[np.nan if one is None else one for one in step] for step in asked.scores[:-1]]).T
    steps = choose_bands(scores, np.array(labels) > _YES, wanted, folds, asked.clusters)
    waiting = np.ones(len(labels), dtype=bool)
    for place, step in enumerate(steps):
        waiting &= step.band.decide(scores[:, place]) == 0
    return Bands(wanted, len(labels), steps, tuple(np.flatnonzero(~waiting).tolist()))


def count_decisions(asked: Asked, decisions: Sequence[float]) -> Labelled:
    """The last step's own decisions, counted as labels."""
    rows = [[*item, decision] for item, decision in zip(asked.items, decisions, strict=True)]
    yes = sum(decision > _YES for decision in decisions)
    digest = hashlib.sha256(json.dumps(sorted(rows)).encode()).hexdigest()
    count = len(rows)
    return Labelled("last step", digest, count, yes, count - yes, len({*asked.questions}), count, 1)


def _list_ends(interval: Interval | None) -> tuple[float, float] | tuple[None, None]:
    return (None, None) if interval is None else (interval.low, interval.high)
