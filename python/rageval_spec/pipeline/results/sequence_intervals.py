"""Intervals of an evaluation that stopped early: confidence sequences, which hold although the data chose their size.

They are of the mean over all questions of the dataset, asked or not. Numbers that have no such sequence keep their
intervals, and a note says which they are.
"""

from __future__ import annotations

import math
from collections.abc import Collection as Container
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, SliceResult
from rageval_spec.data.outcomes import AskedQuestions, Cell, Interval, Note
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.pipeline.execution.execution import Execution
from rageval_spec.pipeline.execution.stopping_decision import Round, clip, list_values, range_of
from rageval_spec.pipeline.values.slice_membership import find_slices
from rageval_spec.plugin import Metric
from rageval_spec.spec.blocks.gates import is_bounded_mean
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.statistics.sequential_analysis import compute_sequence_interval
from rageval_spec.wording import count_noun

_Numbers = TypeVar("_Numbers", Evaluation, SliceResult)


@dataclass(frozen=True)
class SequenceIntervals:
    """Replaces the intervals of numbers on datasets of which not all questions were asked.

    `rounds` has the last round of each such dataset, by its name, and `slices` the queries of each slice.
    """

    rounds: Mapping[str, Round]
    metrics: Mapping[str, Metric[Any]]
    earlier: Mapping[str, Evaluation]
    confidence: float
    slices: Mapping[tuple[str, str], Container[str]]

    def renew(self, numbers: _Numbers) -> _Numbers:
        """The same with the new intervals of its aggregates, and of the differences of its comparisons."""
        aggregates = tuple(
            replace(one, interval=self._of_mean(one)) if self._applies(one) else one for one in numbers.aggregates
        )
        return replace(numbers, aggregates=aggregates, comparisons=self.renew_comparisons(numbers.comparisons))

    def renew_comparisons(self, comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
        return tuple(
            replace(one, interval=self._of_difference(one)) if self._applies(one) else one for one in comparisons
        )

    def list_notes(self, aggregates: Sequence[Aggregate], comparisons: Sequence[Comparison]) -> list[Note]:
        """A note on each dataset that says which of its intervals and tests assume that all sizes were fixed."""
        notes = []
        for dataset in self.rounds:
            names = dict.fromkeys(one.metric for one in aggregates if one.dataset == dataset and one.interval)
            others = [name for name in names if not is_bounded_mean(self.metrics[name])]
            unfit = [f"the intervals of {', '.join(others)}"] if others else []
            unfit += ["the p-values"] if any(one.dataset == dataset for one in comparisons) else []
            if unfit:
                message = f"{' and '.join(unfit)} do not take into account that the evaluation stopped early"
                notes.append(Note("not_sequential", message, dataset))
        return notes

    def _applies(self, one: Aggregate | Comparison) -> bool:
        return one.dataset in self.rounds and is_bounded_mean(self.metrics[one.metric])

    def _of_mean(self, one: Aggregate) -> Interval | None:
        done, metric = self.rounds[one.dataset], self.metrics[one.metric]
        column = done.read(one.system, one.metric) or {}
        values = dict(zip(column, list_values([*column.values()]), strict=True))
        return self._find(one.cell, values, len(done.list_all(metric)), range_of(metric))

    def _of_difference(self, one: Comparison) -> Interval | None:
        metric = self.metrics[one.metric]
        pairs = self.rounds[one.dataset].pair(one.cell, metric, one.baseline, self.earlier)
        low, high = range_of(metric)
        return self._find(one.cell, pairs.subtract(), pairs.population, (low - high, high - low))

    def _find(
        self, cell: Cell, values: Mapping[str, float], population: int, bounds: tuple[float, float]
    ) -> Interval | None:
        """The interval of the mean of a cell's values; those outside its slice count as questions without a value."""
        members = values.keys() if cell.slice is None else self.slices[cell.dataset, cell.slice]
        own = [value if name in members else math.nan for name, value in values.items()]
        if all(map(math.isnan, own)):
            return None
        try:
            return compute_sequence_interval(clip(own, bounds), population, self.confidence, bounds)
        except ValueError:  # the metric is wrong about its bounds
            return None


def describe_stopping(
    evaluation: Evaluation,
    execution: Execution,
    spec: Spec,
    metrics: Mapping[str, Metric[Any]],
    earlier: Mapping[str, Evaluation],
) -> Evaluation:
    """The evaluation with notes on how many questions were asked, and with the intervals that hold then.

    A spec without `stopping:` gives the evaluation as it is.
    """
    if spec.stopping is None:
        return evaluation
    told = [note for one in execution.asked for note in _tell(one)]
    if execution.rounds:
        found = find_slices(spec.slices, execution.evaluated).slices
        members = {(one.dataset, one.name): frozenset(one.query_ids) for one in found}
        rounds = {one.dataset: one for one in execution.rounds}
        given = SequenceIntervals(rounds, metrics, earlier, spec.statistics.confidence, members)
        told += given.list_notes(evaluation.aggregates, (*evaluation.comparisons, *evaluation.baselines))
        slices = tuple(given.renew(one) for one in evaluation.slices)
        baselines = given.renew_comparisons(evaluation.baselines)
        evaluation = replace(given.renew(evaluation), baselines=baselines, slices=slices)
    return replace(evaluation, notes=(*told, *evaluation.notes))


def describe_interruption(asked: AskedQuestions) -> str:
    """Where a limit ended a dataset before every gate was decided, as a sentence."""
    questions = count_noun(asked.total, "question")
    drawn = questions if not asked.is_part else f"the first {asked.asked:,} of {questions}"
    return f"a limit was reached while {drawn} were asked"


def _tell(asked: AskedQuestions) -> Iterator[Note]:
    questions = count_noun(asked.total, "question")
    if asked.ending == "decided":
        message = f"asked {asked.asked:,} of {questions}, in random order: {asked.reason}"
        yield Note("stopped_early", message, asked.dataset, count=asked.asked)
    elif asked.ending == "interrupted":
        message = f"{describe_interruption(asked)}, before every gate was decided"
        yield Note("stopped_early", message, asked.dataset, count=asked.asked, level="warning")
    elif asked.ending == "all":
        yield Note("asked_all", f"asked all of {questions}: {asked.reason}", asked.dataset, count=asked.asked)
