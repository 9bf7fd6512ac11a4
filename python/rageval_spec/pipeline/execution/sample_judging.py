"""Asks the judges of a spec about samples that are already there, with its limits and its store of replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.errors import UsageError
from rageval_spec.judging.calibrated_judge import CalibratedJudge
from rageval_spec.pipeline.cost_estimate import ModelCalls, add_up
from rageval_spec.pipeline.planning.preflight import check_wiring
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts, prepare_models, stop_calls
from rageval_spec.plugin import AnswerMetric, Judge
from rageval_spec.plugin.budget import Budget
from rageval_spec.store.store import open_store
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    from rageval_spec.data.findings import Criterion
    from rageval_spec.data.samples import Sample
    from rageval_spec.progress import ProgressDisplay
    from rageval_spec.spec.blocks.spec_node import Spec


class AskedJudge(NamedTuple):
    """The judge of a metric, without its calibration, and what the metric asks it."""

    metric: AnswerMetric[Any]
    judge: Judge[Any]
    criterion: Criterion


@contextmanager
def open_parts(
    spec: Spec, store: Path | None, display: ProgressDisplay, budget: Budget | None = None
) -> Iterator[SpecPlugins]:
    """The plugins of a spec, ready to be asked. Replies are kept in the store; without one, nothing is reused.

    `budget` is what may be spent; by default what the spec allows.
    """
    with closing(open_store(store)) as opened:
        budget = spec.limits.budget() if budget is None else budget
        parts = build_parts(spec, display.counting, opened.answers, opened.fingerprint, budget, display.tell)
        check_wiring(spec, parts, asks_questions=False)
        prepare_models(parts, display)
        with stop_calls(parts):
            yield parts


def find_asked(parts: SpecPlugins, metric: str) -> AskedJudge:
    """The judge of a metric. Raises `UsageError` if there is no such metric, or it does not ask one judge one thing."""
    found = parts.answer_metrics.get(metric)
    judged = [name for name, one in parts.answer_metrics.items() if one.judges()]
    if found is None or metric not in judged:
        raise UsageError(f"the spec has no metric '{metric}' with a judge; it has {list_choices(judged) or 'none'}")
    judges, criteria = found.judges(), found.criteria()
    if len(judges) != 1 or len(criteria) != 1:
        raise UsageError(f"{metric} asks its judge {len(criteria)} questions; name a metric that asks one")
    (judge,) = judges
    return AskedJudge(found, judge.plain if isinstance(judge, CalibratedJudge) else judge, criteria[0])


def expect_calls(
    parts: SpecPlugins, judges: Sequence[Judge[Any]], criterion: Criterion, samples: Sequence[Sample]
) -> tuple[ModelCalls, ...]:
    """The calls that these judges would make about all of the samples, and whose replies are not stored yet."""
    estimate = judges[0].estimate(criterion, samples)
    for judge in judges[1:]:
        estimate |= judge.estimate(criterion, samples)
    return tuple(calls for calls in add_up(parts, estimate) if calls.calls)
