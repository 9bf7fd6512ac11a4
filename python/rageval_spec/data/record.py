"""A saved evaluation, with the time, commit and label that an `Evaluation` itself must not hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rageval_spec.data.evaluation import Evaluation


@dataclass(frozen=True)
class Record:
    """An evaluation with its time, commit and label.

    Attributes:
        id: the unique id of this record.
        time: when it was saved, in UTC; None if that was not recorded.
        commit: the commit of the repository that holds the spec, followed by `-dirty` if files differed from it; None
            outside a repository, or if it was not recorded.
        label: the name that finds it again; None for a results folder.
    """

    id: str
    time: datetime | None
    commit: str | None
    label: str | None
    evaluation: Evaluation
