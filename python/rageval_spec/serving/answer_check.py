"""Checks one answer before a user sees it: accept it, hold it back for a person, or reject it.

The spec's metrics of answers measure it, and its gates decide: below a gate's `min` or `at_least` (above its `max`) the
answer is rejected, short of its `target` a person decides. A judge of stages, such as `waterfall`, decides by itself.
What cannot be measured, because a judge fails or a part is missing, goes to a person: nothing unknown is accepted. Only
an answer that does nothing but refuse is accepted without a value, because nothing of it can be wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.judging.composition import REJECTED, asks_chat
from rageval_spec.judging.refusals import REFUSES
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.values.answer_values import MOST_METRICS_AT_ONCE, brief_judges, measure
from rageval_spec.plugin import AnswerMetric, Metric
from rageval_spec.spec.blocks.gates import GateBound
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.threads import map_in_threads
from rageval_spec.wording import tell_apart

Outcome: TypeAlias = Literal["accept", "person", "reject"]
OUTCOMES: Sequence[Outcome] = ("reject", "person", "accept")
"""The worst first."""
_GIVEN = frozenset({"answer", "contexts"})
_WRITE = "gate a metric of questions, contexts and answers: gates: [{metric: faithfulness, min: 0.5}]"


class MetricOutcome(NamedTuple):
    """What one metric came to: its outcome, why, its value, and the stage of a judge that decided."""

    metric: str
    outcome: Outcome
    reason: str
    value: float | None = None
    stage: str | None = None


@dataclass(frozen=True)
class AnswerCheck:
    """The check that a spec describes.

    Attributes:
        bounds: what each metric's value must reach, by metric.
        remarks: what the spec has that holds no answer back.
    """

    metrics: Mapping[str, AnswerMetric[Any]]
    bounds: Mapping[str, Sequence[GateBound]]
    remarks: Sequence[str] = ()

    @classmethod
    def of(cls, spec: Spec, parts: SpecPlugins) -> AnswerCheck:
        """The check of a spec, with what its metrics need loaded.

        Raises:
            UsageError: no answer could be held back, or a metric or a judge does not fit the spec.
        """
        useless = {name: why for name, one in parts.metrics.items() if (why := _explain_useless(one)) is not None}
        metrics = {name: one for name, one in parts.answer_metrics.items() if name not in useless}
        for section, plugins in (("metrics", metrics), ("judges", parts.judges)):
            for name, plugin in plugins.items():
                try:
                    fault = plugin.check()
                except RagevalError as error:
                    fault = str(error)
                if fault is not None:
                    raise UsageError(f"{spec.path}: {section}.{name}: {fault}")
        bounds = {name: [*_list_bounds(spec, name, one)] for name, one in metrics.items()}
        decided = [name for name, one in metrics.items() if any(judge.holds_back for judge in one.judges())]
        idle = [name for name in metrics if not bounds[name] and name not in decided]
        remarks = [*_remark_on(spec, useless, idle)]
        if len(idle) == len(metrics):
            raise UsageError("\n".join([f"{spec.path}: no answer can be held back; {_WRITE}", *remarks]))
        brief_judges(metrics)
        for one in metrics.values():
            one.prepare()
        return cls(metrics, bounds, remarks)

    @property
    def asks_chat(self) -> bool:
        """Whether a check asks a chat model."""
        return any(asks_chat(judge) for metric in self.metrics.values() for judge in metric.judges())

    def check(self, question: str, contexts: Sequence[str] | None, answer: str) -> dict[str, Any]:
        """The outcome as JSON types: `outcome`, `reasons`, `checks` (one for each metric) and `seconds`.

        An empty list of contexts counts as none: a retrieval that found nothing says nothing against the answer.
        """
        begun = time.perf_counter()
        sample = Sample("check", question, answer, tuple(contexts) if contexts else None)
        names, workers = [*self.metrics], min(len(self.metrics), MOST_METRICS_AT_ONCE)
        in_threads = partial(map_in_threads, workers=workers, name="metric")
        checks = [*(map if workers == 1 else in_threads)(lambda name: self._measure(name, sample), names)]
        outcome = next(one for one in OUTCOMES if any(check.outcome == one for check in checks))
        return {
            "outcome": outcome,
            "reasons": [f"{one.metric}: {one.reason}" for one in checks if one.outcome == outcome],
            "checks": [one._asdict() for one in checks],
            "seconds": round(time.perf_counter() - begun, 6),
        }

    def _measure(self, name: str, sample: Sample) -> MetricOutcome:
        found = measure(name, self.metrics[name], [sample]).measurements[0]
        stage = (found.details or {}).get("decided_by")
        outcome, why = self._decide(name, found.value, found.reason or "", found.status)
        return MetricOutcome(name, outcome, why, found.value, stage if isinstance(stage, str) else None)

    def _decide(self, name: str, value: float | None, told: str, status: str) -> tuple[Outcome, str]:
        """The outcome of a metric, and why."""
        if status == "error":
            return "person", f"it could not be measured: {told}"
        if value is None:
            return "accept" if told.startswith(REFUSES) else "person", told or "it has no value"
        if told.startswith(REJECTED):
            return "reject", told
        missed = [one for one in self.bounds[name] if (value < one.bound if one.passes_above else value > one.bound)]
        if not missed:
            return "accept", told or f"{value:.3g}"
        worst = next((bound for bound in missed if bound.miss == "fail"), missed[0])
        return "reject" if worst.miss == "fail" else "person", _describe(value, worst)


def _describe(value: float, bound: GateBound) -> str:
    shown, limit = tell_apart(value, bound.bound, lambda number, digits: f"{number:.{digits}g}", 3)
    return f"{shown} is {'below' if bound.passes_above else 'above'} the {bound.kind} {limit}"


def _explain_useless(metric: Metric[Any]) -> str | None:
    """Why a check can never measure a metric; None if it can."""
    if not isinstance(metric, AnswerMetric):
        return "is about rankings, not about an answer"
    if metric.group == "operation":
        return "is about the application, not about the answer"
    if lacking := sorted(metric.needs - _GIVEN):
        return f"needs '{lacking[0]}', which a check does not have"
    if columns := [name for _, name in metric.question_columns()]:
        return f"reads the column '{columns[0]}', which a check does not have"
    return None


def _list_bounds(spec: Spec, name: str, metric: Metric[Any]) -> Iterator[GateBound]:
    """What the spec's gates demand of a metric's value; those on slices are about many answers."""
    for gate in spec.gates:
        if gate.metric == name and gate.slice is None:
            lower_is_better = metric.higher_is_better is False
            yield from gate.list_bounds(lower_is_better=lower_is_better, scale=spec.bands.get(name))


def _remark_on(spec: Spec, useless: Mapping[str, str], idle: Sequence[str]) -> Iterator[str]:
    """What is in the spec and holds no answer back, with the reason and what to write."""
    gated = {gate.metric for gate in spec.gates}
    for name, why in useless.items():
        yield f"{name} {why}, so it is not measured" + (" and its gate holds no answer back" if name in gated else "")
    for name in idle:
        has = "only gates on slices or on changes from a baseline" if name in gated else "no gate"
        yield f"{name} has {has}, so it holds no answer back; write gates: [{{metric: {name}, min: 0.5}}]"
