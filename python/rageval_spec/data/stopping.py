"""How many questions were asked by an evaluation that stops when its gates are decided, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Ending = Literal["decided", "all", "interrupted"]
"""Why no more questions of a dataset were asked: every gate was decided; all were asked; or a limit was reached."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How many questions of a dataset were asked.

    Attributes:
        asked, total: the number of questions that were asked, and of all questions. If a limit was reached, some of
            those asked may have no answer.
        ending: why no more were asked.
        reason: the same as the end of a sentence, such as `every gate was decided`.
    """

    dataset: str
    asked: int
    total: int
    ending: Ending
    reason: str

    @property
    def is_part(self) -> bool:
        """Whether some questions were not asked."""
        return self.asked < self.total


@dataclass(frozen=True, slots=True)
class Stopping:
    """What became of the spec's `stopping:`.

    Attributes:
        confidence: the probability that all gates have the outcome that all questions would have given them.
        first, batch: how many questions were asked at first, and then at a time.
        seed: the seed of the order in which questions were asked.
        datasets: how many questions of each dataset were asked.
    """

    confidence: float
    first: int
    batch: int
    seed: int
    datasets: tuple[Asked, ...]

    def find(self, dataset: str) -> Asked | None:
        """What is known of a dataset; None if it has no questions to ask."""
        return next((one for one in self.datasets if one.dataset == dataset), None)
