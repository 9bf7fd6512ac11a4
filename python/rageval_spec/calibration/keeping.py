"""Turns what labels showed about a judge into an entry of `calibration.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rageval_spec.calibration.maps import MapChoice, choose_map
from rageval_spec.calibration.recorded import check_scores, find_judge
from rageval_spec.data.judge_calibration import (
    Figure,
    Guaranteed,
    JudgeCalibration,
    Labelled,
    ScoreMap,
    Threshold,
)
from rageval_spec.plugin.identity import digest_criterion, digest_identity
from rageval_spec.statistics.maps import PlattMap, ValueMap

if TYPE_CHECKING:
    from rageval_spec.calibration import thresholds
    from rageval_spec.calibration.joining import Joined
    from rageval_spec.calibration.measuring import Calibration, Promise
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.statistics.guarantees import Guarantee

_YES = 0.5


def keep_calibration(
    evaluation: Evaluation, joined: Joined, measured: Calibration, promised: Promise | None = None
) -> JudgeCalibration:
    """The entry of one metric's judge.

    Args:
        evaluation: the results.
        joined: its values beside the labels.
        measured: what the labels showed.
        promised: the guarantee that was asked for.

    Raises:
        UsageError: the values are not the scores of one judge, or the judge is calibrated already.
        DataError: the results do not say how they were made.
    """
    behind = find_judge(evaluation, joined.metric)
    check_scores(evaluation, joined)
    low, high = (0.0, 1.0) if joined.bounds == behind.scale else behind.scale
    choice = measured.map
    if (low, high) != (0.0, 1.0):
        choice = choose_map(replace(joined, judged=tuple((value - low) / (high - low) for value in joined.judged)))
    return JudgeCalibration(
        judge=behind.judge.context.name,
        metric=joined.metric,
        criterion=digest_criterion(behind.criterion),
        of="answers" if joined.items[0][3] is None else "claims",
        scale=behind.scale,
        identity=dict(behind.identity),
        digest=digest_identity(behind.identity),
        labelled=count_labels(joined),
        map=None if choice.chosen is None else write_map(choice.chosen),
        threshold=_keep_threshold(measured.threshold, low, high),
        guarantee=_keep_promise(promised.wanted if promised else None, low, high),
        held_out=tuple(_list_figures(measured, choice)),
    )


def count_labels(joined: Joined) -> Labelled:
    """The labels by people."""
    sides = [label for label in joined.labelled if label != _YES]
    yes = sum(label > _YES for label in sides)
    people = {label.annotator for label in joined.labels}
    return Labelled(
        "people", _digest_labels(joined), len(joined.items), yes, len(sides) - yes, len({*joined.questions}),
        len(joined.labels), len(people),
    )  # fmt: skip


def write_map(found: ValueMap) -> ScoreMap:
    """A map as the file has it."""
    if isinstance(found, PlattMap):
        return ScoreMap("platt", found.slope, found.intercept)
    return ScoreMap("isotonic", values=found.values, results=found.results)


def _digest_labels(joined: Joined) -> str:
    """The sha256 of what was labelled, by whom and how, whatever the order of the files."""
    rows = sorted([*map(str, label.item), label.annotator, str(label.value)] for label in joined.labels)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _keep_threshold(found: thresholds.Threshold | None, low: float, high: float) -> Threshold | None:
    if found is None or found.threshold is None:
        return None
    return Threshold((found.threshold - low) / (high - low), found.criterion)


def _keep_promise(found: Guarantee | None, low: float, high: float) -> Guaranteed | None:
    if found is None:
        return None
    place = (found.threshold - low) / (high - low)
    return Guaranteed(found.limit, found.sent, found.wrong, found.labels, found.confidence, place)


def _list_figures(measured: Calibration, choice: MapChoice) -> Iterator[Figure]:
    for one in measured.decisions:
        ends = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
        yield Figure(one.name, one.value, *ends)
    for trial in choice.trials:
        if trial.kind == (choice.chosen.kind if choice.chosen else "none"):
            yield Figure("brier", trial.brier)
            yield Figure("calibration_error", trial.error.value)
