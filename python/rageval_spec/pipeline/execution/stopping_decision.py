"""Decides when enough questions have been asked: as soon as no gate's outcome is likely to change any more.

Questions are asked in rounds, in a random order. A gate looks at each of its bounds, and at the share of the
questions that could be scored (`min_scored`). Each look is the comparison of one mean of bounded values with one
number, so a confidence sequence can decide it. A question without a value is NaN. Where equality with the bound
matters, the sample's mean tells; sequences exclude only other means.

The error is shared among all comparisons of a mean with a bound that gates make on the datasets that can end early. A
comparison that is read at the level 1 - a is wrong with probability a / 2 at most, because it can be wrong on one
side only. The bounds of gates share one half of the allowed error in this way, and their checks that enough questions
could be scored the other half. So a single gate with a single bound is read at the spec's `confidence` itself, and
such a check is mostly certain after some 50 questions of which none failed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rageval_spec.data import arithmetic
from rageval_spec.data.datasets import EvaluatedQueries, Fingerprints, take_fingerprints
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import AskedQuestions, Cell, Counted, split_cells
from rageval_spec.data.tables import Collection
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.history.comparability import Edits, find_edits
from rageval_spec.libraries import pl
from rageval_spec.pipeline.planning.question_selection import list_ids, restrict, shuffle
from rageval_spec.plugin import AnswerMetric, Metric
from rageval_spec.spec.blocks.gates import GateNode, explain_undecidable
from rageval_spec.statistics.sequential_analysis import NEARLY_ALL, decide

if TYPE_CHECKING:
    from rageval_spec.data.bands import BandScale
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
    from rageval_spec.spec.blocks.spec_node import Spec


_FEWEST_PAIRS = 2
_OF_HALVES = 0.2
"""The part of the error of checks of scored questions that is for the check that half of them could be scored."""


class Levels(NamedTuple):
    """The confidence at which gates' comparisons are read: with bounds, with `min_scored`, and with one half."""

    bounds: float
    shares: float
    halves: float


class Stopper:
    """Decides whether the questions that were asked are enough for the gates of a spec."""

    def __init__(self, spec: Spec, parts: SpecPlugins, earlier: Mapping[str, Evaluation]) -> None:
        """`earlier` has the evaluations that gates compare with, by name."""
        assert spec.stopping is not None, "a spec without it asks every question"
        self._node = spec.stopping
        self._spec = spec
        self._parts = parts
        self._earlier = earlier

    def explain_all(self, dataset: str) -> str | None:
        """Why every question of a dataset is asked; None if fewer can be enough."""
        gates = self._list_gates(dataset)
        if not gates:
            return "no gate looks at this dataset"
        for gate in gates:
            reason = explain_undecidable(gate, self._parts.metrics[gate.metric])
            if reason is not None:
                return f"the gate on {gate.metric} needs them: {reason}"
        return None

    def list_counts(self, dataset: str, total: int) -> Iterator[int]:
        """How many questions of a dataset have been asked after each round, up to all of them."""
        if self.explain_all(dataset) is None:
            yield from range(self._node.first, total, self._node.batch)
        yield total

    def compare_data(self, evaluated: EvaluatedQueries) -> dict[str, Edits]:
        """How all questions of a dataset differ from those of each earlier evaluation that has it."""
        if not self._earlier:
            return {}
        dataset = evaluated.collection.name
        values = pl.DataFrame({"query_id": evaluated.query_ids}).select(pl.lit(dataset).alias("dataset"), "query_id")
        fingerprints = Fingerprints({dataset: take_fingerprints(evaluated)})
        whole = Evaluation("", (dataset,), (), (), values=values, load_fingerprints=lambda: fingerprints)
        found = {name: find_edits(whole, other) for name, other in self._earlier.items()}
        return {name: edits[dataset] for name, edits in found.items() if dataset in edits}

    def take_first(self, asked: Collection) -> Collection:
        """The questions of a dataset that are asked in any case."""
        if self.explain_all(asked.name) is not None:
            return asked
        order = shuffle(list_ids(asked.queries), self._spec.statistics.seed)
        return restrict(asked, order[: self._node.first])

    def describe(self, done: Round, *, is_interrupted: bool) -> AskedQuestions:
        """How many questions were asked until the last round, and why no more."""
        dataset, count, total = done.dataset, done.count, len(done.order)
        if is_interrupted:
            return AskedQuestions(dataset, count, total, "interrupted", "a limit was reached")
        if count < total:
            rest = ", except where something failed" if done.failed else ""
            return AskedQuestions(dataset, count, total, "decided", f"every gate was decided{rest}")
        reason = self.explain_all(dataset) or "not every gate was decided earlier"
        return AskedQuestions(dataset, count, total, "all", reason)

    def is_decided(self, done: Round) -> bool:
        """Whether the outcome of every gate on a dataset is certain enough. What failed has no outcome to wait for."""
        failed = done.failed or frozenset()
        return all(
            any((name, metric) in failed for name in (system, str(gate.baseline)) for metric in (None, gate.metric))
            or self._is_settled(gate, system, done)
            for gate in self._list_gates(done.dataset)
            for system in self.list_systems(gate, done.dataset)
        )

    def _list_gates(self, dataset: str) -> list[GateNode]:
        return [gate for gate in self._spec.gates if gate.dataset in (None, dataset)]

    def _is_settled(self, gate: GateNode, system: str, done: Round) -> bool:
        metric = self._parts.metrics[gate.metric]
        column = done.read(system, gate.metric)
        if column is None:  # the system has no such values, now or later; unless no judged question was drawn yet
            return isinstance(metric, AnswerMetric) or done.has_judged
        if not any(one.status == "scored" for one in column.values()):
            return False
        drawn, population = [*column.values()], len(done.list_all(metric))
        looks = [*list_bound_looks(gate, metric, drawn, population, self._spec.bands.get(gate.metric))]
        if gate.baseline in self._earlier or gate.baseline in self._spec.systems:  # else there is none yet
            edits, accepted = done.edits.get(str(gate.baseline)), gate.accept_changes or ()
            if edits is not None and (
                (edits.references and "references" not in accepted) or (edits.judgements and "qrels" not in accepted)
            ):  # a question that was edited, asked or not, could make the gate inconclusive
                return False
            pairs = done.pair(Cell(done.dataset, system, gate.metric), metric, str(gate.baseline), self._earlier)
            if pairs.shared < _FEWEST_PAIRS:
                return not pairs.has_baseline  # without any value of the baseline, the gate fails
            looks += list_drop_looks(gate, metric, pairs)
        found = [(look, look.decide(self.levels.bounds)) for look in looks]
        found += [(look, look.decide(self.levels.shares)) for look in list_share_looks(gate, metric, drawn, population)]
        if warns_of_few(gate, metric):
            found.append(_decide_half(*list_half_looks(drawn, population), self.levels.halves))
        return settle_looks(found)

    def list_metrics(self, dataset: str) -> set[str]:
        return {gate.metric for gate in self._list_gates(dataset)}

    def list_systems(self, gate: GateNode, dataset: str) -> list[str]:
        """The systems on which a gate looks, as far as they can have its metric."""
        only_answers = isinstance(self._parts.metrics[gate.metric], AnswerMetric)
        return [
            name
            for name, system in self._parts.systems.items()
            if gate.system in (None, name)
            and name != gate.baseline
            and (not only_answers or system.answers_on(dataset))
        ]

    @cached_property
    def levels(self) -> Levels:
        bounds = shares = halves = 0
        for dataset in self._parts.datasets:
            for gate in self._list_gates(dataset) if self.explain_all(dataset) is None else ():
                systems = len(self.list_systems(gate, dataset))
                scale = self._spec.bands.get(gate.metric)
                bounds += systems * len([*gate.list_bounds(lower_is_better=False, scale=scale)])
                bounds += systems * sum(one.miss != "pass" for one in gate.allowed_drops)
                shares += systems * (gate.min_scored > 0)
                halves += systems * 2 * warns_of_few(gate, self._parts.metrics[gate.metric])
        error = 1 - self._node.confidence
        return Levels(
            1 - error / max(bounds, 1),
            1 - (1 - _OF_HALVES) * error / max(shares, 1),
            1 - _OF_HALVES * error / max(halves, 1),
        )


def _decide_half(is_half: Look, is_excused: Look, confidence: float) -> tuple[Look, bool | None]:
    """Whether at least half of the questions have a value, or lack one for another reason than being excused."""
    look = is_half._replace(miss="warn")
    most = is_half.decide(confidence)
    if most is not False:
        return look, most
    excused = is_excused.decide(confidence)
    return look, None if excused is None else not excused


class Scored(NamedTuple):
    """What a metric says of a question: its status, and its value, which only "scored" ones have."""

    status: str
    value: float | None


Failed: TypeAlias = tuple[str, str | None]


class RoundPairs(NamedTuple):
    """A cell's values beside a baseline's, by query, in the order of the draw; None for a question without both.

    `population` is how many questions can have a difference, asked or not.
    """

    values: dict[str, tuple[float, float] | None]
    population: int
    has_baseline: bool

    @property
    def shared(self) -> int:
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
        order: the ids of all its questions, in the order in which they are asked; `count` of them were asked.
        failed: the systems `(system, None)`, and the metrics of systems, that failed in every round; None before the
            first.
        edits: by the name of an earlier evaluation that has the dataset, how all its questions differ from it.
    """

    evaluated: EvaluatedQueries
    asked: frozenset[str]
    judged: frozenset[str]
    order: Sequence[str]
    count: int
    values: pl.DataFrame
    failed: frozenset[Failed] | None = None
    edits: Mapping[str, Edits] = field(default_factory=dict)

    def extend(self, count: int, values: pl.DataFrame, failed: frozenset[Failed]) -> Round:
        """The state after more questions; `values` and `failed` are only of these."""
        every = failed if self.failed is None else self.failed & failed
        return replace(self, count=count, values=pl.concat([self.values, values]), failed=every)

    @property
    def dataset(self) -> str:
        return self.evaluated.collection.name

    @cached_property
    def has_judged(self) -> bool:
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

    def pair(self, cell: Cell, metric: Metric[Any], baseline: str, earlier: Mapping[str, Evaluation]) -> RoundPairs:
        """A cell's values beside those of a baseline: an evaluation of `earlier`, or another system."""
        every, column = self.list_all(metric), self.read(cell.system, cell.metric) or {}
        if baseline in earlier:
            values = earlier[baseline].values
            scored = values.filter(dataset=cell.dataset, system=cell.system, metric=cell.metric, status="scored")
            base = dict(scored.select("query_id", "value").iter_rows())
            every = every & base.keys() & (self.edits[baseline].same if baseline in self.edits else frozenset())
            column = {name: one for name, one in column.items() if name in every}
        else:
            others = self.read(baseline, cell.metric) or {}
            base = {name: one.value for name, one in others.items() if one.value is not None}
        pairs = {
            name: (one.value, base[name]) if one.value is not None and name in base else None
            for name, one in column.items()
        }
        return RoundPairs(pairs, len(every), bool(base))

    @cached_property
    def _cells(self) -> dict[tuple[str, str], pl.DataFrame]:
        return {(cell.system, cell.metric): frame for cell, frame in split_cells(self.values)}


def list_values(column: Sequence[Scored]) -> list[float]:
    """The values of a column, NaN for a question without one."""
    return [math.nan if one.value is None else one.value for one in column]


_ROUNDING = 1e-9
"""Values that are outside a metric's bounds by no more than this are moved to them."""
_HALF = 0.5


Column: TypeAlias = Sequence[Scored]
"""The questions of a cell that were asked, in the order in which they were drawn."""


class Look(NamedTuple):
    """The comparison of a mean with a bound: with `passes_above`, it must be at least the bound, otherwise at most.

    Attributes:
        values: the values of the mean, in the order of the draw; NaN for a question without one.
        population: how many questions there are, asked or not.
        miss: the outcome of the gate if the mean is on the other side.
        is_share: whether it is the share of questions that could be scored, which mostly is all of them.
    """

    values: Sequence[float]
    population: int
    bound: float
    bounds: tuple[float, float]
    passes_above: bool = True
    miss: Counted = "fail"
    is_share: bool = False

    def decide(self, confidence: float) -> bool | None:
        """Whether the bound is met, once that is certain; None before.

        It stays open while the mean of the values seen is on the other side, so that a gate that is decided always has
        the outcome that its number shows.
        """
        known = [value for value in self.values if not math.isnan(value)]
        if not known:
            return None
        values, parts = clip(self.values, self.bounds), {"parts": NEARLY_ALL} if self.is_share else {}
        try:
            decision = decide(values, self.bound, self.population, confidence, self.bounds, **parts)
        except ValueError:  # the metric is wrong about its bounds
            return None
        if decision is None:
            return None
        ends = arithmetic.average(known), self.bound
        seen = arithmetic.reaches(*(ends if self.passes_above else ends[::-1]), terms=len(known))
        return seen if seen == (decision.is_above == self.passes_above) else None


def clip(values: Sequence[float], bounds: tuple[float, float]) -> list[float]:
    """The values; those that rounding moved out of the bounds are moved back."""
    low, high = bounds
    ends = low - _ROUNDING, high + _ROUNDING
    return [min(max(value, low), high) if ends[0] <= value <= ends[1] else value for value in values]


def list_bound_looks(
    gate: GateNode, metric: Metric[Any], column: Column, population: int, scale: BandScale | None
) -> Iterator[Look]:
    """The looks at the bounds of a gate on the number itself; `scale` is that of its metric."""
    values, ends = list_values(column), range_of(metric)
    for one in gate.list_bounds(lower_is_better=metric.higher_is_better is False, scale=scale):
        yield Look(values, population, one.bound, ends, one.passes_above, one.miss)


def list_drop_looks(gate: GateNode, metric: Metric[Any], pairs: RoundPairs) -> Iterator[Look]:
    """The looks at the drops that a gate allows.

    A drop by a share of the baseline's mean, where that is not negative, is a bound of the mean of each value minus the
    rest of the baseline's value: with at most 5% below it, of `value - 0.95 * base`.
    """
    lower_is_better = metric.higher_is_better is False
    sign = 1 if lower_is_better else -1
    for drop, miss, _ in gate.allowed_drops:
        if miss == "pass":
            continue
        factor = 1 + sign * drop.number if drop.is_share else 1.0
        bound = 0.0 if drop.is_share else sign * drop.number
        low, high = range_of(metric)
        ends = -factor * low, -factor * high
        bounds = low + min(ends), high + max(ends)
        values = [*pairs.subtract(factor).values()]
        yield Look(values, pairs.population, bound, bounds, not lower_is_better, miss)


def list_share_looks(gate: GateNode, metric: Metric[Any], column: Column, population: int) -> Iterator[Look]:
    """The look at the share of the questions that could be scored, for `min_scored`."""
    if gate.min_scored > 0:
        shares = [math.nan if metric.excuses and one.status == "unscorable" else _is_scored(one) for one in column]
        yield Look(shares, population, gate.min_scored, (0.0, 1.0), is_share=True)


def warns_of_few(gate: GateNode, metric: Metric[Any]) -> bool:
    """Whether the gate warns if most questions are excused; see `gate_bounds.check_half`."""
    return metric.excuses and not metric.is_partial and "min_scored" not in gate.model_fields_set


def list_half_looks(column: Column, population: int) -> tuple[Look, Look]:
    """Whether half of the questions could be scored; and whether, if not, it is because the others are excused."""
    scored = [_is_scored(one) for one in column]
    excused = [_is_scored(one) + 2.0 * (one.status == "unscorable") for one in column]
    return Look(scored, population, _HALF, (0.0, 1.0)), Look(excused, population, 1.0, (0.0, 2.0))


def range_of(metric: Metric[Any]) -> tuple[float, float]:
    """The bounds of a metric that has both."""
    low, high = metric.bounds
    assert high is not None, "gates on other metrics need every question"
    return low, high


def settle_looks(looks: Iterable[tuple[Look, bool | None]]) -> bool:
    """Whether the outcome of a gate is certain: `looks` are its bounds, and whether each is met (None: open)."""
    order: Mapping[str, int] = {"pass": 0, "warn": 1, "fail": 2}
    best = worst = order["pass"]
    for look, is_met in looks:
        miss = order[look.miss]
        best = max(best, miss) if is_met is False else best
        worst = max(worst, miss) if is_met is not True else worst
    return best == worst


def _is_scored(one: Scored) -> float:
    return float(one.status == "scored")
