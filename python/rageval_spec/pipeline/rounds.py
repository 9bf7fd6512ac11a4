"""The state of a dataset after some of its questions were asked, in a random order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rageval_spec.data.cell import Cell, split_cells
from rageval_spec.plugin import AnswerMetric

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.fingerprints import Evaluated
    from rageval_spec.history.edits import Edits
    from rageval_spec.plugin import Metric


class Scored(NamedTuple):
    """What a metric says of a question: its status, and its value if that is "scored"."""

    status: str
    value: float | None


Failed: TypeAlias = tuple[str, str | None]


class Pairs(NamedTuple):
    """A cell's values beside a baseline's.

    Attributes:
        values: the two values by query, in the order of the draw; None for a question without a value in both.
        population: how many questions can have a difference, asked or not.
        has_baseline: whether the baseline has any value.
    """

    values: dict[str, tuple[float, float] | None]
    population: int
    has_baseline: bool

    @property
    def shared(self) -> int:
        """How many questions have a value in both."""
        return sum(pair is not None for pair in self.values.values())

    def subtract(self, factor: float = 1.0) -> dict[str, float]:
        """Each value minus the baseline's times `factor`; NaN for a question without both."""
        return {
            query_id: math.nan if pair is None else pair[0] - factor * pair[1] for query_id, pair in self.values.items()
        }


@dataclass(frozen=True)
class Round:
    """What is known after some questions of a dataset were asked.

    Attributes:
        evaluated: all questions of the dataset, asked or not, for what is recorded of the data.
        asked, judged: the ids of all questions that systems answer, and of those with judgements.
        order: the ids of all its questions, in the order in which they are asked.
        count: how many of them were asked.
        values: the values of every system and metric on the dataset.
        failed: the systems, and the metrics of systems, that failed in every round: `(system, None)` or
            `(system, metric)`; None before the first round.
        edits: by the name of an earlier evaluation that has the dataset, how all its questions differ from it.
    """

    evaluated: Evaluated
    asked: frozenset[str]
    judged: frozenset[str]
    order: Sequence[str]
    count: int
    values: pl.DataFrame
    failed: frozenset[Failed] | None = None
    edits: Mapping[str, Edits] = field(default_factory=dict)

    def extend(self, count: int, values: pl.DataFrame, failed: frozenset[Failed]) -> Round:
        """The state after more questions; `values` and `failed` are only of these."""
        import polars as pl

        every = failed if self.failed is None else self.failed & failed
        return replace(self, count=count, values=pl.concat([self.values, values]), failed=every)

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self.evaluated.collection.name

    @cached_property
    def has_judged(self) -> bool:
        """Whether any of the questions asked has judgements."""
        return not self.judged.isdisjoint(self.order[: self.count])

    def list_all(self, metric: Metric[Any]) -> frozenset[str]:
        """The questions of which the metric has a row once all were asked."""
        return self.asked if isinstance(metric, AnswerMetric) else self.judged

    def read(self, system: str, metric: str) -> dict[str, Scored] | None:
        """A cell's rows by query, in the order in which they were drawn; None if there is no such cell."""
        frame = self._cells.get((system, metric))
        if frame is None:
            return None
        rows = {query_id: Scored(*of) for query_id, *of in frame.select("query_id", "status", "value").iter_rows()}
        return {query_id: rows[query_id] for query_id in self.order[: self.count] if query_id in rows}

    def pair(self, cell: Cell, metric: Metric[Any], baseline: str, earlier: Mapping[str, Evaluation]) -> Pairs:
        """A cell's values beside those of a baseline: an evaluation of `earlier`, or another system."""
        every, column = self.list_all(metric), self.read(cell.system, cell.metric) or {}
        if baseline in earlier:
            base = _read_values(earlier[baseline].values, cell)
            every = every & base.keys() & (self.edits[baseline].same if baseline in self.edits else frozenset())
            column = {name: one for name, one in column.items() if name in every}
        else:
            others = self.read(baseline, cell.metric) or {}
            base = {name: one.value for name, one in others.items() if one.status == "scored" and one.value is not None}
        values = {name: _join(one, base.get(name)) for name, one in column.items()}
        return Pairs(values, len(every), bool(base))

    @cached_property
    def _cells(self) -> dict[tuple[str, str], pl.DataFrame]:
        return {(cell.system, cell.metric): frame for cell, frame in split_cells(self.values)}


def list_values(column: Sequence[Scored]) -> list[float]:
    """The values of a column, NaN for a question without one."""
    return [one.value if one.status == "scored" and one.value is not None else math.nan for one in column]


def _join(one: Scored, base: float | None) -> tuple[float, float] | None:
    return None if one.status != "scored" or one.value is None or base is None else (one.value, base)


def _read_values(values: pl.DataFrame, cell: Cell) -> dict[str, float]:
    import polars as pl

    where = [pl.col(name) == getattr(cell, name) for name in ("dataset", "system", "metric")]
    scored = values.filter(*where, pl.col("status") == "scored")
    return dict(scored.select("query_id", "value").iter_rows())
