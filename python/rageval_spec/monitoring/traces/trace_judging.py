"""Judges traces: each metric of the spec is a series, and each trace gets a value in it, or a state and a reason.

A series is what a number means: the metric with its settings and code, its judge with prompts, models and calibration.
If one of these changes, a new series begins; values of two series are never put together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rageval_spec.data.samples import Sample
from rageval_spec.endpoints.pacing import double_wait
from rageval_spec.monitoring.ledger import ClaimedTrace, Judgement, Ledger, SampledTrace, State
from rageval_spec.monitoring.traces.sampling import Spending
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
        spending: Spending | None = None,
        *,
        begin: bool = True,
    ) -> None:
        """Find the series of each metric, and begin those that are new, unless `begin` is false."""
        self._parts = parts
        self._spending = spending
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
        if self._spending is not None:
            self._spending.budget.begin_batch(retry_failed=False)
        samples = {claimed.trace_id: make_sample(claimed) for claimed, _ in kept}
        for one in list(self.series.values()):
            if one.metric is not None and kept:
                judgements += self._judge_metric(one, kept, samples, now, tries=1)
        return judgements

    def judge_for(self, series: Series, claimed: Sequence[ClaimedTrace], now: float) -> list[Judgement]:
        """What becomes of traces that were chosen before, for one series."""
        kept = [(one, one.weight or 1.0) for one in claimed]
        samples = {one.trace_id: make_sample(one) for one in claimed}
        return list(self._judge_metric(series, kept, samples, now, tries=1))

    def judge_again(self, series: int, retried: Sequence[tuple[int, ClaimedTrace]], now: float) -> list[Judgement]:
        """What becomes of traces that failed in a series before, each with its tries so far."""
        if self._spending is not None:
            self._spending.budget.begin_batch(retry_failed=True)
        found = next((one for one in self.series.values() if one.id == series and one.metric is not None), None)
        made = []
        for tries, claimed in retried:
            kept = [(claimed, claimed.weight or 1.0)]
            if found is None:
                told = "the metric, its judge or its model changed before the judgement succeeded"
                made.append(Judgement(series, claimed.trace_id, "failed", None, kept[0][1], told, tries=tries))
            else:
                made += self._judge_metric(found, kept, {claimed.trace_id: make_sample(claimed)}, now, tries + 1)
        return made

    def _judge_metric(
        self,
        series: Series,
        kept: Sequence[tuple[ClaimedTrace, float]],
        samples: Mapping[str, Sample],
        now: float,
        tries: int,
    ) -> Iterator[Judgement]:
        assert series.metric is not None
        chosen, chance = self._choose(series.metric, samples, kept, now, is_again=tries > 1)
        left_out = [(claimed, weight) for claimed, weight in kept if claimed.trace_id not in chosen]
        yield from (self._leave_out(series, claimed, weight, tries) for claimed, weight in left_out)
        kept = [(claimed, weight / chance) for claimed, weight in kept if claimed.trace_id in chosen]
        table = compute(series.name, series.metric, [samples[claimed.trace_id] for claimed, _ in kept]).values
        calls, cost = (0, 0.0) if self._spending is None else self._spending.record(len(kept), now)
        found = {
            row[0]: row[1:] for row in table.select("query_id", "value", "status", "reason", "details").iter_rows()
        }
        found |= {one.trace_id: (None, "unscorable", NO_QUESTION, None) for one, _ in kept if not one.trace.question}
        for claimed, weight in kept:
            value, status, reason, details = found[claimed.trace_id]
            state, retry_at = self._decide(series.metric, samples[claimed.trace_id], status, claimed, now, tries)
            yield Judgement(
                series.id, claimed.trace_id, state, value, weight, reason, details,
                cost=cost / len(kept) if calls else None, tries=tries, retry_at=retry_at,
            )  # fmt: skip

    def _choose(
        self,
        metric: AnswerMetric[Any],
        samples: Mapping[str, Sample],
        kept: Sequence[tuple[ClaimedTrace, float]],
        now: float,
        *,
        is_again: bool,
    ) -> tuple[set[str], float]:
        """The traces that the budget has room for, and the chance that each had."""
        ids = [claimed.trace_id for claimed, _ in kept]
        if self._spending is None or not self._spending.is_limited:
            return set(ids), 1.0
        self._spending.limit(now)
        if is_again:  # it was chosen before
            return set(ids), 1.0
        expected = metric.estimate(list_usable(metric, [samples[one] for one in ids]))
        return self._spending.choose(ids, sum(map(len, expected.calls.values())), now)

    def _leave_out(self, series: Series, claimed: ClaimedTrace, weight: float, tries: int) -> Judgement:
        told = "the budget of the monitor is spent"
        return Judgement(series.id, claimed.trace_id, "over_budget", None, weight, told, tries=tries)

    def _decide(
        self, metric: AnswerMetric[Any], sample: Sample, status: str, claimed: ClaimedTrace, now: float, tries: int
    ) -> tuple[State, float | None]:
        """The state of a value's status, and when a failure is tried again.

        A trace that the metric cannot measure, or whose system failed, is filtered: trying again would not help.
        """
        if status == "scored":
            return "judged", None
        if status == "unscorable" or (sample.error is not None and not metric.counts_failures):
            return "filtered", None
        if self._spending is not None and self._spending.budget.stopped is not None:
            return "over_budget", None
        wait = double_wait(tries, FIRST_WAIT, LONGEST_WAIT)
        if now + wait > claimed.started + self._retry_for:
            return "failed", None
        return "waiting", now + wait

    def _judge_feedback(self, kept: Iterable[tuple[ClaimedTrace, float]], now: float) -> Iterator[Judgement]:
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
    )
