"""An evaluation that was kept: itself, and what it does not hold so that equal input gives equal bytes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rageval_spec.data.evaluation import Evaluation


@dataclass(frozen=True)
class Record:
    """An evaluation with its time, commit and label.

    Attributes:
        id: names this record and no other.
        time: when it was kept, in UTC; None where that was not written down.
        commit: of the repository that the spec is in, with `-dirty` after it where files differed from it; None
            outside of a repository, or where it was not written down.
        label: under which it is found again; None for a results folder.
    """

    id: str
    time: datetime | None
    commit: str | None
    label: str | None
    evaluation: Evaluation
