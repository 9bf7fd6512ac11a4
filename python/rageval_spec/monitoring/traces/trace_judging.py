"""Judges traces: each metric of the spec is a series, and each trace gets a value in it, or a state and a reason.

A series is what a number means: the metric with its settings and code, its judge with prompts, models and calibration.
If one of these changes, a new series begins; values of two series are never put together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rageval_spec.data.evidence.citations import load_citations
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass
from rageval_spec.endpoints.pacing import double_wait
from rageval_spec.monitoring.ledger import SPENT, ClaimedTrace, Judgement, Ledger, SampledTrace, State
from rageval_spec.monitoring.traces.sampling import Spending, draw
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.values.answer_values import compute, list_usable
from rageval_spec.plugin import AnswerMetric
from rageval_spec.plugin.block_names import names_in
from rageval_spec.plugin.judge_identity import Surroundings, identify_judge
from rageval_spec.statistics.percentiles import read_percentile
from rageval_spec.systems.shared.trace_system import read_answer

FEEDBACK = "feedback."
"""How the series of what users said begin: `feedback.thumbs`."""
NO_QUESTION = "no span has an input that could be the question"
FIRST_WAIT = 60.0
LONGEST_WAIT = 3600.0
"""Seconds before the first further try of a judgement that failed, and the most between two."""

LEFT_OUT = (
    "the budget does not suffice for all; this trace was left out at random, and any that are judged count for it"
)
Kept: TypeAlias = tuple[ClaimedTrace, float]
"""A trace of the sample, and its weight."""


@dataclass(frozen=True)
class Series:
    """The series that a metric's values belong to at present. `metric` is None for feedback of users."""

    id: int
    name: str
    metric: AnswerMetric[Any] | None = None

    @property
    def percent(self) -> int | None:
        """The percentile that the metric is of; None for a mean."""
        return None if self.metric is None else read_percentile(self.metric.statistic)

    @property
    def lower_is_better(self) -> bool:
        return self.metric is not None and self.metric.higher_is_better is False


class TraceJudge:
    """Judges traces with the metrics of a spec. Feedback of users becomes series as its names are seen."""

    def __init__(
        self,
        parts: SpecPlugins,
        ledger: Ledger,
        retry_for: float,
        now: float,
        spending: Spending,
        *,
        begin: bool = True,
    ) -> None:
        """Find the series of each metric, and begin those that are new, unless `begin` is false."""
        self._parts = parts
        self.spending = spending
        self._ledger = ledger
        self._retry_for = retry_for
        self.series: dict[str, Series] = {}
        for name, metric in parts.answer_metrics.items():
            description = self._describe(metric)
            identity = hashlib.sha256(json.dumps(description, sort_keys=True, default=str).encode()).hexdigest()[:16]
            self.series[name] = Series(ledger.find_series(name, identity, description, now, begin=begin), name, metric)

    def prepare(self) -> None:
        """Load what the metrics need, once."""
        for one in self.series.values():
            if one.metric is not None:
                one.metric.prepare()

    def judge(self, sampled: Sequence[SampledTrace], now: float) -> list[Judgement]:
        """What becomes of the traces in the sample, for each series."""
        kept = [(one.claimed, float(one.weight)) for one in sampled if one.weight is not None]
        judgements = list(self._judge_feedback(kept, now))
        self.spending.budget.begin_batch(retry_failed=False)
        samples = {claimed.trace_id: make_sample(claimed) for claimed, _ in kept}
        chance = self._find_chance(samples, [one.started for one, _ in kept], len(sampled), now)
        for one in list(self.series.values()):
            if one.metric is not None and kept:
                judgements += self._judge_metric(one, kept, samples, now, chance=chance)
        return judgements

    def judge_for(
        self, series: Series, claimed: Sequence[ClaimedTrace], now: float, *, earlier: int | None = None
    ) -> list[Judgement]:
        """What becomes of traces that were chosen before, for one series; all of them while the budget lasts.

        `earlier` is how often they were tried; None if they do not wait for a further try.
        """
        kept = [(one, one.weight or 1.0) for one in claimed]
        samples = {one.trace_id: make_sample(one) for one in claimed}
        return list(self._judge_metric(series, kept, samples, now, earlier=earlier))

    def judge_again(self, series: int, tries: int, claimed: Sequence[ClaimedTrace], now: float) -> list[Judgement]:
        """What becomes of traces that failed in a series before, after so many tries."""
        self.spending.budget.begin_batch(retry_failed=True)
        found = next((one for one in self.series.values() if one.id == series and one.metric is not None), None)
        if found is not None:
            return self.judge_for(found, claimed, now, earlier=tries)
        why = "the metric, its judge or its model changed before the judgement succeeded"
        return [Judgement(series, one.trace_id, "failed", None, one.weight or 1.0, why, tries=tries) for one in claimed]

    def _judge_metric(
        self,
        series: Series,
        kept: Sequence[Kept],
        samples: Mapping[str, Sample],
        now: float,
        *,
        chance: float = 1.0,
        earlier: int | None = None,
    ) -> Iterator[Judgement]:
        assert series.metric is not None
        self.spending.limit(now)
        kept, left_out = self._thin(series.metric, samples, kept, chance)
        told = LEFT_OUT if chance else SPENT
        yield from (Judgement(series.id, one.trace_id, "over_budget", None, weight, told) for one, weight in left_out)
        computed = compute(series.name, series.metric, [samples[claimed.trace_id] for claimed, _ in kept])
        calls, cost = self.spending.record(now)
        found = {
            row[0]: row[1:]
            for row in computed.values.select("query_id", "value", "status", "reason", "details").iter_rows()
        }
        found |= {one.trace_id: (None, "unscorable", NO_QUESTION, None) for one, _ in kept if not one.trace.question}
        for claimed, weight in kept:
            value, status, reason, details = found[claimed.trace_id]
            tries = (earlier or 0) + 1
            if claimed.trace_id not in computed.unfinished:
                state, retry_at = self._decide(series.metric, samples[claimed.trace_id], status, now, tries)
            elif earlier is None:
                state, retry_at, reason = "over_budget", None, SPENT
            else:  # nothing was tried
                state, retry_at, tries = "waiting", now + double_wait(tries, FIRST_WAIT, LONGEST_WAIT), earlier
            yield Judgement(
                series.id, claimed.trace_id, state, value, weight, reason, details,
                cost=cost / len(kept) if calls else None, tries=tries, retry_at=retry_at,
            )  # fmt: skip

    def _find_chance(self, samples: Mapping[str, Sample], started: Sequence[float], claimed: int, now: float) -> float:
        """The chance that the budget leaves to each trace that needs a call, of a batch of so many claimed ones."""
        if not self.spending.is_limited or not samples:
            return 1.0
        metrics = [one.metric for one in self.series.values() if one.metric is not None]
        calls = sum(_count_calls(one, [*samples.values()]) for one in metrics)
        if not calls:
            return 1.0
        due = max(1.0, self._ledger.count_overdue(now) / claimed)
        chance = self.spending.find_chance(calls * due, now)
        self.spending.note_needed(calls, started)
        return chance

    def count_affordable(self, metric: AnswerMetric[Any], claimed: Sequence[ClaimedTrace], now: float) -> int:
        """How many of some traces can be judged without taking the budget from those that are still to come."""
        if not self.spending.is_limited:
            return len(claimed)
        calls, room = _count_calls(metric, [*map(make_sample, claimed)]), self.spending.find_room(now)
        return len(claimed) if calls <= room else int(len(claimed) * room / calls)

    def _thin(
        self, metric: AnswerMetric[Any], samples: Mapping[str, Sample], kept: Sequence[Kept], chance: float
    ) -> tuple[list[Kept], list[Kept]]:
        """The traces to judge, with their weights, and those that the budget leaves out. What needs no call stays."""
        if chance >= 1:
            return [*kept], []
        judged, left_out = list[Kept](), list[Kept]()
        for claimed, weight in kept:
            if not _count_calls(metric, [samples[claimed.trace_id]]):
                judged.append((claimed, weight))
            elif draw(f"budget {claimed.trace_id}") < chance:
                judged.append((claimed, weight / chance))
            else:
                left_out.append((claimed, weight))
        return judged, left_out

    def _decide(
        self, metric: AnswerMetric[Any], sample: Sample, status: str, now: float, tries: int
    ) -> tuple[State, float | None]:
        """The state of a value's status, and when a failure is tried again.

        A trace that the metric cannot measure, or whose system failed, is filtered: trying again would not help.
        """
        if status == "scored":
            return "judged", None
        if status == "unscorable" or (sample.error is not None and not metric.counts_failures):
            return "filtered", None
        waits = [double_wait(one, FIRST_WAIT, LONGEST_WAIT) for one in range(1, tries + 1)]
        return ("failed", None) if sum(waits) > self._retry_for else ("waiting", now + waits[-1])

    def _judge_feedback(self, kept: Iterable[Kept], now: float) -> Iterator[Judgement]:
        for claimed, weight in kept:
            for name, value in claimed.trace.list_columns():
                if name.startswith(FEEDBACK) and isinstance(value, (int, float)):
                    if name not in self.series:
                        self.series[name] = Series(self._ledger.find_series(name, "", {}, now), name)
                    yield Judgement(self.series[name].id, claimed.trace_id, "judged", float(value), weight)

    def _describe(self, metric: AnswerMetric[Any]) -> dict[str, Any]:
        around = Surroundings(self._parts.judges, self._parts.models)
        judges = [identify_judge(self._parts.judges[name], around) for name in names_in(metric.node, "judges")]
        models = {
            name: self._parts.models[name].content() for name in metric.asked_models() if name in self._parts.models
        }
        return {"metric": metric.content(), "judges": judges, "models": models}


def _count_calls(metric: AnswerMetric[Any], samples: Sequence[Sample]) -> int:
    """The calls that a metric would make for samples; a cascade is asked what its steps without calls decide."""
    return sum(map(len, metric.estimate(list_usable(metric, samples)).calls.values()))


def make_sample(claimed: ClaimedTrace) -> Sample:
    """The sample of a trace, under the id that the ledger knows it by."""
    trace, row = claimed.trace, read_answer(claimed.trace)
    return Sample(
        claimed.trace_id,
        trace.question,
        answer=row.answer,
        contexts=row.contexts,
        context_ids=row.context_ids,
        scores=row.scores,
        references=trace.references,
        reference_contexts=trace.reference_contexts,
        error=row.error,
        seconds=row.seconds,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost=row.cost,
        cache_read_tokens=row.cache_read_tokens,
        cache_write_tokens=row.cache_write_tokens,
        truncated=row.truncated,
        answer_columns=json.loads(row.answer_columns or "null"),
        citations=load_citations(row.citations),
        steps=trace.steps or None,
    )
