"""What systems made of the questions of a dataset: values, rankings and answers of one or more evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

_ROUNDING = 1e-9
NO_SAMPLES = (
    "these results hold values, but not what systems found; name a results folder that a run wrote: --results FOLDER"
)
"""Why nothing can be said of what systems found: records in the history database have no samples."""


@dataclass(frozen=True)
class Measured:
    """The values of one metric.

    Attributes:
        metric: its name.
        systems: the systems, one for each column of `values`.
        query_ids: the questions that every system has a value for, one for each row.
        values: shape (questions, systems); high values are good.
        best: the highest possible value; None if there is none.
        fails_at: a system fails a question if its value is at most this.
    """

    metric: str
    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: NDArray[np.float64]
    best: float | None
    fails_at: float

    @property
    def failed(self) -> list[int]:
        """The rows of the questions that every system fails."""
        return _list_rows(self.values <= self.fails_at)

    @property
    def solved(self) -> list[int]:
        """The rows of the questions that every system solves: all have the highest possible value."""
        if self.best is None:
            return []
        return _list_rows(self.values >= self.best - _ROUNDING)


def _list_rows(holds: NDArray[np.bool_]) -> list[int]:
    """The rows in which something holds for every system."""
    import numpy as np

    return [int(row) for row in np.flatnonzero(holds.all(axis=1))]


@dataclass(frozen=True, slots=True)
class Output:
    """What one system made of one question.

    Attributes:
        doc_ids: the first documents that it found or was given, best first; None if it does not say.
        answer: its answer; None if it only retrieves or failed.
        ranks: the rank of each judged document that it found, by id, from 1.
        relevant: the judged documents, as they were when it was evaluated.
    """

    system: str
    doc_ids: tuple[str, ...] | None
    answer: str | None
    ranks: Mapping[str, int] = field(default_factory=dict)
    relevant: Mapping[str, int] = field(default_factory=dict)


Outputs = Mapping[str, Sequence[Output]]
"""What the systems made of each question, by query id."""


def read_outputs(samples: Iterable[tuple[str, pl.DataFrame]]) -> dict[str, list[Output]]:
    """The outputs in samples of one dataset.

    Args:
        samples: the ends of systems' names, and rows with `system, query_id, answer, context_ids, relevant`.
    """
    found: dict[str, list[Output]] = {}
    for end, block in samples:
        columns = ("system", "query_id", "answer", "context_ids", "relevant")
        for system, query_id, answer, doc_ids, judged in block.select(columns).iter_rows():
            ranks = {one["doc_id"]: one["rank"] for one in judged or () if one["rank"] is not None}
            relevant = {one["doc_id"]: one["relevance"] for one in judged or ()}
            ids = None if doc_ids is None else tuple(doc_ids)
            found.setdefault(query_id, []).append(Output(f"{system}{end}", ids, answer, ranks, relevant))
    return found


def count_rejudged(outputs: Outputs, judged: Mapping[str, Mapping[str, int]]) -> int:
    """The number of questions whose judgements are no longer those of the evaluation.

    Args:
        outputs: what systems made of the questions.
        judged: the judgements of each question as they are now, by query id.
    """
    return sum(
        any(output.relevant and output.relevant != judged[query_id] for output in given)
        for query_id, given in outputs.items()
        if query_id in judged
    )


def combine(metric: str, columns: Mapping[str, Mapping[str, float]], best: float | None, fails_at: float) -> Measured:
    """The values of the questions that every system has one for.

    Args:
        metric: the name of the metric.
        columns: the values by query id of each system; high values are good.
        best: the highest possible value; None if there is none.
        fails_at: a system fails a question if its value is at most this.
    """
    import numpy as np

    shared = set.intersection(*(set(column) for column in columns.values())) if columns else set()
    first = next(iter(columns.values()), {})
    ids = tuple(query_id for query_id in first if query_id in shared)
    values = np.array([[column[query_id] for column in columns.values()] for query_id in ids], dtype=float)
    return Measured(metric, tuple(columns), ids, values.reshape(len(ids), len(columns)), best, fails_at)
