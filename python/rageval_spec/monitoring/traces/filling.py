"""Fills a series with what came before it began: a new metric, or a new judge, on the traces that are still kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import UsageError
from rageval_spec.monitoring.ledger import ClaimedTrace, Ledger
from rageval_spec.monitoring.traces.trace_judging import Series, TraceJudge, make_sample
from rageval_spec.pipeline.cost_estimate import ModelCalls, add_up
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.values.answer_values import list_usable
from rageval_spec.progress import Progress, ignore_progress

BLOCK = 500


@dataclass(frozen=True)
class FillingPlan:
    """What filling a series would take: the traces without a value, and the calls of each model."""

    metric: str
    traces: int
    calls: tuple[ModelCalls, ...]


@dataclass(frozen=True)
class Filler:
    """Fills one series of a monitor; traces that began before `since` are left out."""

    ledger: Ledger
    judge: TraceJudge
    parts: SpecPlugins
    since: float

    def plan(self, metric: str) -> FillingPlan:
        """What it would take. Makes no call."""
        series = self._find(metric)
        assert series.metric is not None
        traces, calls = 0, dict[str, ModelCalls]()
        for block in self._read_blocks(series):
            traces += len(block)
            usable = list_usable(series.metric, [make_sample(one) for one in block])
            for one in add_up(self.parts, series.metric.estimate(usable)):
                calls[one.model] = one if one.model not in calls else _add(calls[one.model], one)
        return FillingPlan(metric, traces, tuple(calls.values()))

    def fill(self, metric: str, clock: Callable[[], float], progress: Progress = ignore_progress) -> Iterator[int]:
        """Judge the traces, block by block; how many each time, and 0 while the budget has no room.

        What is written stays, so a filling that is killed goes on. What the budget refuses is left for later.
        """
        return self._fill(self._find(metric), clock, progress)  # a metric that is not there is an error at once

    def has_more(self, metric: str) -> bool:
        """Whether traces are left that `fill` would judge."""
        return bool(self.ledger.read_unfilled(self._find(metric).id, self.since, 1))

    def _fill(self, series: Series, clock: Callable[[], float], progress: Progress) -> Iterator[int]:
        assert series.metric is not None
        after, done, total = "", 0, self.ledger.count_unfilled(series.id, self.since)
        while block := self.ledger.read_unfilled(series.id, self.since, BLOCK, after):
            some = block[: self.judge.count_affordable(series.metric, block, clock())]
            started = {one.trace_id: one.started for one in some}
            made = self.judge.judge_for(series, some, clock()) if some else []
            filled = [one for one in made if one.state != "over_budget"]
            self.ledger.fill([(one, started[one.trace_id]) for one in filled], series.id, clock())
            if some and len(filled) == len(made):
                after = some[-1].trace_id
            done += len(filled)
            progress(done, max(total, done))
            yield len(filled)

    def _read_blocks(self, series: Series) -> Iterator[list[ClaimedTrace]]:
        after = ""
        while block := self.ledger.read_unfilled(series.id, self.since, BLOCK, after):
            yield block
            after = block[-1].trace_id

    def _find(self, metric: str) -> Series:
        found = self.judge.series.get(metric)
        if found is None or found.metric is None:
            known = ", ".join(name for name, one in self.judge.series.items() if one.metric is not None)
            raise UsageError(f"--metric {metric}: the spec has no such metric of answers; there are {known}")
        return found


def _add(first: ModelCalls, second: ModelCalls) -> ModelCalls:
    tokens = type(first.tokens)(first.tokens.input + second.tokens.input, first.tokens.output + second.tokens.output)
    cost = None if first.cost is None or second.cost is None else first.cost + second.cost
    return ModelCalls(first.model, first.calls + second.calls, tokens, cost)
