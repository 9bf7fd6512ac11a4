"""What an engine is handed and what it gives back; both can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.data.evaluation import Note
from rageval_spec.errors import RagevalError
from rageval_spec.pipeline.plan import Step

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Task:
    """A step to compute.

    Attributes:
        step: of kind "retrieve", "answer" or "evaluate".
        inputs: the tables of the steps before it, by the system that each is of: the runs that a system reads, or the
            run or the answers that are evaluated. Datasets are no inputs: whoever computes a step opens them.
    """

    step: Step
    inputs: Mapping[str, pl.DataFrame] = field(default_factory=dict)


class Share(NamedTuple):
    """What one system gave to a run: its own seconds, the texts that it reused, and the documents that it searched."""

    seconds: float
    reused: int
    documents: int


@dataclass(frozen=True)
class Made:
    """What came of a task.

    Attributes:
        table: the run, the answers or the values; None where there is none, and `error` says why.
        notes: of runs and answers, they need name neither the dataset nor the system.
        failures: what gave no values, of those that were wanted.
        share: what a retrieval took.
        queries: how many a retrieval was asked.
    """

    table: pl.DataFrame | None = None
    notes: tuple[Note, ...] = ()
    failures: tuple[Failure, ...] = ()
    error: Exception | None = None
    share: Share | None = None
    queries: int = 0


@dataclass(frozen=True)
class Failure:
    """A system, or one metric of it, that gave no values. `error` is what it raised."""

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
        """The same for whoever reads the results."""
        message = f"{self.metric}: {self.message}" if self.metric else self.message
        return Note("failed", message, self.dataset, self.system)


def explain(error: Exception) -> str:
    """What an error says; where it is none of ours, its type too."""
    return str(error) if isinstance(error, RagevalError) else f"{type(error).__name__}: {error}"
