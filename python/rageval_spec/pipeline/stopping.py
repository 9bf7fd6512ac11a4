"""Decides when enough questions have been asked: as soon as no gate's outcome is likely to change any more.

The error is shared among all comparisons of a mean with a bound that gates make on the datasets that can end early. A
comparison that is read at the level 1 - a is wrong with probability a / 2 at most, because it can be wrong on one side
only. The bounds of gates share one half of the allowed error in this way, and their checks that enough questions could
be scored the other half. So a single gate with a single bound is read at the spec's `confidence` itself, and such a
check is mostly certain after some 50 questions of which none failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.cell import Cell
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.fingerprints import Evaluated, Fingerprints, take_fingerprints
from rageval_spec.data.stopping import Asked
from rageval_spec.data.tables import Collection
from rageval_spec.history.edits import Edits, find_edits
from rageval_spec.pipeline.drawing import list_ids, restrict, shuffle
from rageval_spec.pipeline.looks import (
    Look,
    list_bound_looks,
    list_drop_looks,
    list_drops,
    list_half_looks,
    list_share_looks,
    settle,
    warns_of_few,
)
from rageval_spec.pipeline.rounds import Round
from rageval_spec.plugin import AnswerMetric
from rageval_spec.spec.stopping import StoppingNode, explain_undecidable

if TYPE_CHECKING:
    from rageval_spec.pipeline.parts import Parts
    from rageval_spec.plugin import Metric
    from rageval_spec.spec.nodes import GateNode, Spec

_FEWEST_PAIRS = 2
_OF_HALVES = 0.2
"""The part of the error of checks of scored questions that is for the check that half of them could be scored."""
_BOUNDS = ("min", "max", "target", "at_least")


class Levels(NamedTuple):
    """The confidence at which gates' comparisons are read: with bounds, with `min_scored`, and with one half."""

    bounds: float
    shares: float
    halves: float


class Stopper:
    """Decides whether the questions that were asked are enough for the gates of a spec."""

    def __init__(self, spec: Spec, parts: Parts, earlier: Mapping[str, Evaluation]) -> None:
        """`earlier` has the evaluations that gates compare with, by name."""
        self._spec = spec
        self._parts = parts
        self._earlier = earlier

    @property
    def node(self) -> StoppingNode:
        """The spec's `stopping:`."""
        assert self._spec.stopping is not None, "a spec without it asks every question"
        return self._spec.stopping

    def explain_all(self, dataset: str) -> str | None:
        """Why every question of a dataset is asked; None if fewer can be enough."""
        gates = [gate for gate in self._spec.gates if gate.dataset in (None, dataset)]
        if not gates:
            return "no gate looks at this dataset"
        for gate in gates:
            reason = explain_undecidable(gate, self._metric(gate))
            if reason is not None:
                return f"the gate on {gate.metric} needs them: {reason}"
        return None

    def list_counts(self, dataset: str, total: int) -> Iterator[int]:
        """How many questions of a dataset have been asked after each round, up to all of them."""
        if self.explain_all(dataset) is None:
            yield from range(self.node.first, total, self.node.batch)
        yield total

    def compare_data(self, evaluated: Evaluated) -> dict[str, Edits]:
        """How all questions of a dataset differ from those of each earlier evaluation that has it."""
        import polars as pl

        if not self._earlier:
            return {}
        dataset = evaluated.collection.name
        values = pl.DataFrame({"query_id": evaluated.query_ids}).select(pl.lit(dataset).alias("dataset"), "query_id")
        fingerprints = Fingerprints({dataset: take_fingerprints(evaluated)})
        whole = Evaluation("", "", (dataset,), (), (), (), (), (), (), values, load_fingerprints=lambda: fingerprints)
        found = {name: find_edits(whole, other) for name, other in self._earlier.items()}
        return {name: edits[dataset] for name, edits in found.items() if dataset in edits}

    def take_first(self, asked: Collection) -> Collection:
        """The questions of a dataset that are asked in any case."""
        if self.explain_all(asked.name) is not None:
            return asked
        order = shuffle(list_ids(asked.queries), self._spec.statistics.seed)
        return restrict(asked, order[: self.node.first])

    def describe(self, done: Round, *, is_interrupted: bool) -> Asked:
        """How many questions were asked until the last round, and why no more."""
        dataset, count, total = done.dataset, done.count, len(done.order)
        if is_interrupted:
            return Asked(dataset, count, total, "interrupted", "a limit was reached")
        if count < total:
            rest = ", except where something failed" if done.failed else ""
            return Asked(dataset, count, total, "decided", f"every gate was decided{rest}")
        reason = self.explain_all(dataset) or "not every gate was decided earlier"
        return Asked(dataset, count, total, "all", reason)

    def is_decided(self, done: Round) -> bool:
        """Whether the outcome of every gate on a dataset is certain enough. What failed has no outcome to wait for."""
        return all(
            _is_failed(done, gate, system) or self._is_settled(gate, system, done)
            for gate in self._spec.gates
            if gate.dataset in (None, done.dataset)
            for system in self.list_systems(gate, done.dataset)
        )

    def _is_settled(self, gate: GateNode, system: str, done: Round) -> bool:
        """Whether a gate's outcome on a system is certain enough."""
        metric = self._metric(gate)
        column = done.read(system, gate.metric)
        if column is None:  # the system has no such values, now or later; unless no judged question was drawn yet
            return isinstance(metric, AnswerMetric) or done.has_judged
        if not any(one.status == "scored" for one in column.values()):
            return False
        drawn, population = [*column.values()], len(done.list_all(metric))
        looks = [*list_bound_looks(gate, metric, drawn, population, self._spec.bands.get(gate.metric))]
        if gate.baseline in self._earlier or gate.baseline in self._spec.systems:  # else there is none yet
            edits = done.edits.get(str(gate.baseline))
            if edits is not None and _can_refuse(gate, edits):
                return False
            pairs = done.pair(Cell(done.dataset, system, gate.metric), metric, str(gate.baseline), self._earlier)
            if pairs.shared < _FEWEST_PAIRS:
                return not pairs.has_baseline  # without any value of the baseline, the gate fails
            looks += list_drop_looks(gate, metric, pairs)
        found = [(look, look.decide(self.levels.bounds)) for look in looks]
        found += [(look, look.decide(self.levels.shares)) for look in list_share_looks(gate, metric, drawn, population)]
        if warns_of_few(gate, metric):
            found.append(_decide_half(*list_half_looks(drawn, population), self.levels.halves))
        return settle(found)

    def list_metrics(self, dataset: str) -> set[str]:
        """The metrics of the gates on a dataset."""
        return {gate.metric for gate in self._spec.gates if gate.dataset in (None, dataset)}

    def list_systems(self, gate: GateNode, dataset: str) -> list[str]:
        """The systems on which a gate looks, as far as they can have its metric."""
        only_answers = isinstance(self._metric(gate), AnswerMetric)
        return [
            name
            for name, system in self._parts.systems.items()
            if gate.system in (None, name)
            and name != gate.baseline
            and (not only_answers or system.answers_on(dataset))
        ]

    @cached_property
    def levels(self) -> Levels:
        """The levels at which the comparisons of all gates are read."""
        bounds = shares = halves = 0
        for dataset in self._parts.datasets:
            if self.explain_all(dataset) is None:
                for gate in self._spec.gates:
                    if gate.dataset in (None, dataset):
                        systems = len(self.list_systems(gate, dataset))
                        bounds += systems * sum(getattr(gate, key) is not None for key in _BOUNDS)
                        bounds += systems * len(list_drops(gate))
                        shares += systems * (gate.min_scored > 0)
                        halves += systems * 2 * warns_of_few(gate, self._metric(gate))
        error = 1 - self.node.confidence
        return Levels(
            1 - error / max(bounds, 1),
            1 - (1 - _OF_HALVES) * error / max(shares, 1),
            1 - _OF_HALVES * error / max(halves, 1),
        )

    def _metric(self, gate: GateNode) -> Metric[Any]:
        return self._parts.metrics[gate.metric]


def _can_refuse(gate: GateNode, edits: Edits) -> bool:
    """Whether a gate could be inconclusive because of a question that was edited, asked or not."""
    accepted = gate.accept_changes or ()
    return bool(edits.references and "references" not in accepted) or bool(edits.judgements and "qrels" not in accepted)


def _is_failed(done: Round, gate: GateNode, system: str) -> bool:
    names = (system, str(gate.baseline))
    failed = done.failed or frozenset()
    return any((name, metric) in failed for name in names for metric in (None, gate.metric))


def _decide_half(is_half: Look, is_excused: Look, confidence: float) -> tuple[Look, bool | None]:
    """Whether at least half of the questions have a value, or lack one for another reason than being excused."""
    look = is_half._replace(miss="warn")
    most = is_half.decide(confidence)
    if most is not False:
        return look, most
    excused = is_excused.decide(confidence)
    return look, None if excused is None else not excused
