"""Asks a judge again about frozen answers, and says whether it says something else than before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rageval_spec.data.labels import AnchorSet
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judging.calibrated_judge import find_surroundings
from rageval_spec.judging.composition import asks_chat
from rageval_spec.judging.grade_scores import list_scores
from rageval_spec.libraries import np
from rageval_spec.pipeline.execution.sample_judging import AskedJudge, find_asked
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts, stop_calls
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.judge_identity import digest_criterion, explain_difference, identify_judge
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.statistics.raters.judge_drift import Flips, Shift, compare_agreement, count_flips

_TESTS = 3
"""Each test of drift takes its part of the error: changed decisions, changed values, and agreement with people."""


@dataclass(frozen=True)
class JudgeDrift:
    """Whether a judge has changed since answers were frozen.

    Attributes:
        judge, metric: their names in the spec.
        anchors: the frozen answers; `failed` of them got no value now.
        asked: how often each was asked.
        difference: how the spec's judge differs from the frozen one; None if it does not.
        flips: the decisions and values that changed.
        noise: the share of decisions in which the judge differs from itself now; None if it always says the same.
        shift: its agreement with people.
        has_drifted: whether the judge has changed, by one of the tests.
    """

    judge: str
    metric: str
    anchors: int
    failed: int
    asked: int
    difference: str | None
    flips: Flips
    noise: float | None
    shift: Shift
    has_drifted: bool


def read_anchors(path: Path) -> AnchorSet:
    """The frozen answers of a file. Raises `DataError` if it cannot be read, or is no such file."""
    try:
        return AnchorSet.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def find_frozen(parts: SpecPlugins, metric: str | None, frozen: AnchorSet) -> AskedJudge:
    """The metric and its judge, which must be asked what the judge of the anchors was asked."""
    asked = find_asked(parts, metric or frozen.metric)
    if digest_criterion(asked.criterion) != frozen.criterion:
        raise UsageError(f"{asked.metric.context.name} asks its judge something else than {frozen.metric} did")
    return asked


def build_sample(frozen: AnchorSet, place: int) -> Sample:
    """The sample of an anchor. Its id is its place, because systems and datasets can share ids of queries."""
    anchor = frozen.anchors[place]
    parts: dict[str, Any] = {
        name: getattr(anchor, name)
        for name in ("question", "answer", "contexts", "context_ids", "references", "reference_contexts", "columns")
    }
    return Sample(f"{anchor.query_id} {place}", **parts)


def compare_frozen(
    frozen: AnchorSet, asked: AskedJudge, values: Sequence[Sequence[float | None]], difference: str | None, alpha: float
) -> JudgeDrift | None:
    """The drift on the anchors that got a value each time; None if these are fewer than half."""
    kept = [place for place in range(len(frozen.anchors)) if all(one[place] is not None for one in values)]
    if 2 * len(kept) < len(frozen.anchors):
        return None
    chosen = [frozen.anchors[place] for place in kept]
    before = np.array([anchor.value for anchor in chosen])
    now, *again = (np.array([one[place] for place in kept], dtype=float) for one in values)
    flips = count_flips(before, now, again[0] if again else None, frozen.threshold)
    labelled = np.array([anchor.label for anchor in chosen])
    questions = [(anchor.dataset, anchor.query_id) for anchor in chosen]
    shift = compare_agreement(before, now, labelled, frozen.threshold, questions)
    noise = float(((now >= frozen.threshold) != (again[0] >= frozen.threshold)).mean()) if again else None
    if flips.p_value is None or flips.p_moved is None:
        has_drifted = flips.moved > 0
    else:
        has_drifted = min(flips.p_value, flips.p_moved, shift.p_value) < alpha / _TESTS
    return JudgeDrift(
        asked.judge.context.name,
        asked.metric.context.name,
        len(frozen.anchors),
        len(frozen.anchors) - len(kept),
        len(values),
        difference,
        flips,
        noise,
        shift,
        has_drifted,
    )


def ask_again(spec: Spec, path: Path, metric: str, budget: Budget, alpha: float = 0.05) -> JudgeDrift | None:
    """Ask the judge of a metric about the frozen answers of a file, without stored replies and without a display.

    None if the judge gave a value to fewer than half of them.

    Raises:
        UsageError: the file is of another metric, or its judge was asked something else.
        DataError: the file cannot be read, or the judge cannot be asked.
        LimitError: the budget does not allow it.
    """
    frozen = read_anchors(path)
    if frozen.metric != metric:
        raise UsageError(f"the anchors are of {frozen.metric}, not of {metric}")
    values: list[list[float | None]] = []
    while True:
        parts = build_parts(spec, budget=budget)
        asked = find_frozen(parts, metric, frozen)
        samples = [build_sample(frozen, place) for place in range(len(frozen.anchors))]
        asked.metric.prepare()
        asked.judge.expect([asked.criterion])
        with stop_calls(parts):
            values.append(list_scores(asked.judge.assess(asked.criterion, samples).findings, asked.criterion))
        if budget.stopped is not None:
            raise budget.stopped
        if len(values) == 2 or not asks_chat(asked.judge):
            break
    difference = explain_difference(identify_judge(asked.judge, find_surroundings(asked.judge)), frozen.identity)
    return compare_frozen(frozen, asked, values, difference, alpha)
