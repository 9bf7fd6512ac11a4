"""What two evaluations have in common, and what else than the systems changed between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ChangedPart: TypeAlias = Literal["references", "qrels", "judge", "prompt", "model", "metric"]
"""What gives a metric's numbers their meaning. Where it changed, two numbers are not of the same kind."""


@dataclass(frozen=True, slots=True)
class Change:
    """A part that changed since a baseline, so that a metric's numbers are not comparable with it.

    Attributes:
        part: what changed; the word that `accept_changes` in a gate takes.
        told: the change as a clause: `the references of 3 queries changed`.
    """

    part: ChangedPart
    told: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many queries of a dataset can be compared with a baseline.

    Attributes:
        same: the queries that are in both with the same question; only they are compared. A question of which one of
            the two recorded no digest counts as the same.
        changed: the queries that are in both with another question.
        added, removed: the queries that are only in this evaluation, or only in the baseline.
    """

    dataset: str
    baseline: str
    same: int
    changed: int = 0
    added: int = 0
    removed: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether both have the same queries."""
        return not (self.changed or self.added or self.removed)

    @property
    def total(self) -> int:
        """The number of this evaluation's queries."""
        return self.same + self.changed + self.added
