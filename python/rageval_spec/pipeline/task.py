"""The tasks that an engine gets and the results that it returns; both can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.data.note import Note
from rageval_spec.errors import RagevalError
from rageval_spec.pipeline.plan import Step

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Task:
    """A step to compute.

    Attributes:
        step: a step of kind "retrieve", "answer" or "evaluate".
        inputs: the tables of the steps before it, by system: the runs that a system reads, or the run or the answers
            to evaluate. Datasets are not inputs; the process that computes the step opens them.
    """

    step: Step
    inputs: Mapping[str, pl.DataFrame] = field(default_factory=dict)


class Share(NamedTuple):
    """One system's share of a run: its own seconds, the texts that it reused, and the documents that it searched."""

    seconds: float
    reused: int
    documents: int


@dataclass(frozen=True)
class Made:
    """The result of a task.

    Attributes:
        table: the run, the answers or the values; None if there is none, and `error` then says why.
        notes: notes; those on runs and answers need not name the dataset and the system.
        failures: the metrics, or the system, that gave no values.
        share: the cost of a retrieval.
        queries: the number of queries of a retrieval.
    """

    table: pl.DataFrame | None = None
    notes: tuple[Note, ...] = ()
    failures: tuple[Failure, ...] = ()
    error: Exception | None = None
    share: Share | None = None
    queries: int = 0


@dataclass(frozen=True)
class Failure:
    """A system, or one of its metrics, that gave no values. `error` is the exception that it raised."""

    dataset: str
    system: str
    message: str
    error: Exception
    metric: str | None = None

    def __str__(self) -> str:
        """`bm25 on golden: the reason`."""
        what = f"{self.metric} of {self.system}" if self.metric else self.system
        return f"{what} on {self.dataset}: {self.message}"

    def note(self) -> Note:
        """The failure as a note for readers of the results."""
        message = f"{self.metric}: {self.message}" if self.metric else self.message
        return Note("failed", message, self.dataset, self.system)


def explain(error: Exception) -> str:
    """An error's message, preceded by its type unless it is one of this package's errors."""
    return str(error) if isinstance(error, RagevalError) else f"{type(error).__name__}: {error}"
