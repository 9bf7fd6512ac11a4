"""Turns what labels showed about a judge into an entry of `calibration.json`, or into frozen answers.

Frozen answers keep their labels and what the judge said of them. The judge behind a metric's values is read from what
an evaluation recorded of its spec.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from rageval_spec.calibration.judge_quality import Calibration, Promise
from rageval_spec.calibration.labelled_items import Joined, read_samples
from rageval_spec.calibration.reliability import MapChoice, choose_map
from rageval_spec.data import judge_calibration
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.findings import Criterion
from rageval_spec.data.labels import FORMAT_VERSION, Anchor, AnchorSet
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history.metric_definitions import read_recorded_spec
from rageval_spec.plugin import AnswerMetric, Judge
from rageval_spec.plugin.block_names import names_in
from rageval_spec.plugin.judge_identity import Surroundings, digest_criterion, digest_identity, identify_judge
from rageval_spec.statistics.raters.reliability_curves import PlattMap, ValueMap

_YES = 0.5


def keep_calibration(
    evaluation: Evaluation, joined: Joined, measured: Calibration, promised: Promise | None = None
) -> judge_calibration.JudgeCalibration:
    """The entry of one metric's judge, with the guarantee that was asked for; errors are those of `find_judge`.

    Raises:
        UsageError: the values are not the scores of one judge.
    """
    behind = find_judge(evaluation, joined.metric)
    check_scores(evaluation, joined)
    low, high = (0.0, 1.0) if joined.bounds == behind.scale else behind.scale
    choice = measured.map
    if (low, high) != (0.0, 1.0):
        choice = choose_map(replace(joined, judged=tuple((value - low) / (high - low) for value in joined.judged)))
    threshold = guarantee = None
    if measured.threshold is not None and measured.threshold.threshold is not None:
        place = (measured.threshold.threshold - low) / (high - low)
        threshold = judge_calibration.CalibratedThreshold(place, measured.threshold.criterion)
    if promised is not None and (kept := promised.wanted) is not None:
        place = (kept.threshold - low) / (high - low)
        counts = (kept.limit, kept.sent, kept.wrong, kept.labels, kept.confidence)
        guarantee = judge_calibration.Guaranteed(*counts, place)
    return judge_calibration.JudgeCalibration(
        judge=behind.judge.context.name,
        metric=joined.metric,
        criterion=digest_criterion(behind.criterion),
        of="answers" if joined.items[0][3] is None else "claims",
        scale=behind.scale,
        identity=dict(behind.identity),
        digest=digest_identity(behind.identity),
        labelled=count_labels(joined),
        map=None if choice.chosen is None else write_map(choice.chosen),
        threshold=threshold,
        guarantee=guarantee,
        held_out=tuple(_list_figures(measured, choice)),
    )


def count_labels(joined: Joined) -> judge_calibration.CalibrationLabels:
    sides = [label for label in joined.labelled if label != _YES]
    yes = sum(label > _YES for label in sides)
    people = {label.annotator for label in joined.labels}
    # The same digest whatever the order of the files is.
    rows = sorted([*map(str, label.item), label.annotator, str(label.value)] for label in joined.labels)
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return judge_calibration.CalibrationLabels(
        "people", digest, len(joined.items), yes, len(sides) - yes, len({*joined.questions}),
        len(joined.labels), len(people),
    )  # fmt: skip


def write_map(found: ValueMap) -> judge_calibration.ScoreMap:
    if isinstance(found, PlattMap):
        return judge_calibration.ScoreMap("platt", found.slope, found.intercept)
    return judge_calibration.ScoreMap("isotonic", values=found.values, results=found.results)


def _list_figures(measured: Calibration, choice: MapChoice) -> Iterator[judge_calibration.Figure]:
    for one in measured.decisions:
        ends = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
        yield judge_calibration.Figure(one.name, one.value, *ends)
    for trial in choice.trials:
        if trial.kind == (choice.chosen.kind if choice.chosen else "none"):
            yield judge_calibration.Figure("brier", trial.brier)
            yield judge_calibration.Figure("calibration_error", trial.error.value)


_MOST_OTHER = 0.1
"""The share of values that may differ from the judge's score: those of answers that the metric decides by itself."""
_ROUNDING = 1e-9


class RecordedJudge(NamedTuple):
    """The judge that a metric asked, what the metric asked it, and what its scores depend on."""

    judge: Judge[Any]
    metric: AnswerMetric[Any]
    criterion: Criterion
    identity: Mapping[str, Any]

    @property
    def scale(self) -> tuple[float, float]:
        is_grade = self.criterion.kind == "grade" and self.criterion.scale is not None
        return self.criterion.scale if is_grade and self.criterion.scale else (0.0, 1.0)


def find_judge(evaluation: Evaluation, metric: str) -> RecordedJudge:
    """The judge behind a metric.

    Raises:
        UsageError: the metric asks no judge, or several things; the judge is calibrated already.
        DataError: the results do not say how they were made.
    """
    recorded = read_recorded_spec(evaluation)
    if recorded is None or metric not in recorded.metrics:
        raise DataError(f"the results do not record how {metric} was computed; run the spec again")
    named = names_in(recorded.metrics[metric].node, "judges")
    if len(named) != 1 or named[0] not in recorded.judges:
        raise UsageError(f"{metric} asks no judge, so there is nothing to calibrate")
    judges: dict[str, Judge[Any]] = {}
    context = replace(recorded.metrics[metric].context, judges=judges, models=recorded.models)
    for name, judge in recorded.judges.items():
        judges[name] = judge.copy_with(replace(judge.context, judges=judges, models=recorded.models))
    asking: Any = type(recorded.metrics[metric])(recorded.metrics[metric].node, context)
    judge = judges[named[0]]
    if judge.node.calibrated is not None:
        raise UsageError(
            f"the judge '{named[0]}' has a calibration already, so these values are not its own scores; remove "
            "'calibration:', run the spec again and calibrate these results"
        )
    criteria = asking.criteria()
    if len(criteria) != 1:
        raise UsageError(f"{metric} asks its judge {len(criteria)} questions; a calibration is for one")
    used = {name: f"{one.score}:{one.digest}" for name, one in evaluation.provenance.calibrations.items()}
    around = Surroundings(judges, recorded.models, evaluation.provenance.prompts, used)
    return RecordedJudge(judge, asking, criteria[0], identify_judge(judge, around))


def check_scores(evaluation: Evaluation, joined: Joined) -> None:
    """Check that the labelled values are the judge's own scores: a UsageError if they are computed from them."""
    if any(item[3] is not None for item in joined.items):
        return
    rows = evaluation.values.filter(metric=joined.metric).select("dataset", "system", "query_id", "value", "details")
    wanted = {item[:3] for item in joined.items}
    found = [(value, details) for *item, value, details in rows.iter_rows() if tuple(item) in wanted]
    other = sum(not _is_score(value, details) for value, details in found)
    if other > _MOST_OTHER * len(found):
        raise UsageError(
            f"{other} of {len(found)} labelled values of {joined.metric} are not the judge's scores but computed from "
            "them, so a calibration of the judge cannot be made of them; label its claims, or another metric"
        )


def _is_score(value: float, details: str | None) -> bool:
    score = json.loads(details).get("score") if details else None
    return isinstance(score, (int, float)) and abs(value - score) <= _ROUNDING * max(1.0, abs(value))


def freeze_anchors(evaluation: Evaluation, joined: Joined, measured: Calibration) -> AnchorSet:
    """The labelled answers of one metric as anchors.

    A yes is a score from the best threshold on, or from 0.5 on if the labels show none.

    Raises:
        UsageError: claims are labelled; the values are not the scores of one judge, or the judge has a calibration.
        DataError: the results lack the answers' texts.
    """
    if any(item[3] is not None for item in joined.items):
        raise UsageError("labels of claims cannot be frozen; label whole answers")
    behind = find_judge(evaluation, joined.metric)
    check_scores(evaluation, joined)
    low, high = (0.0, 1.0) if joined.bounds == behind.scale else behind.scale
    samples = read_samples(evaluation, [item[:3] for item in joined.items])
    chosen = None if measured.threshold is None else measured.threshold.threshold
    anchors = []
    for item, value, label in zip(joined.items, joined.judged, joined.labelled, strict=True):
        sample = samples[item[:3]]
        anchors.append(
            Anchor(
                *item[:3],
                sample.question,
                sample.answer or "",
                label,
                (value - low) / (high - low),
                sample.contexts,
                sample.context_ids,
                sample.references,
                sample.reference_contexts,
                None if sample.columns is None else dict(sample.columns),
            )
        )
    return AnchorSet(
        FORMAT_VERSION,
        behind.judge.context.name,
        joined.metric,
        digest_criterion(behind.criterion),
        dict(behind.identity),
        digest_identity(behind.identity),
        _YES if chosen is None else (chosen - low) / (high - low),
        tuple(anchors),
    )
