"""The judge behind a metric's values, from what an evaluation recorded of its spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.errors import DataError, UsageError
from rageval_spec.history.recorded_spec import read_recorded_spec
from rageval_spec.plugin.identity import Surroundings, identify_judge
from rageval_spec.plugin.names import names_in

if TYPE_CHECKING:
    from rageval_spec.calibration.joining import Joined
    from rageval_spec.data.assessment import Criterion
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.plugin import AnswerMetric, Judge

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
        """The lowest and the highest score."""
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
    used = {name: f"{one.score}:{one.digest}" for name, one in evaluation.calibrations.items()}
    around = Surroundings(judges, recorded.models, evaluation.prompts, used)
    return RecordedJudge(judge, asking, criteria[0], identify_judge(judge, around))


def check_scores(evaluation: Evaluation, joined: Joined) -> None:
    """Check that the values of the labelled answers are the judge's scores, not something computed from them.

    Raises:
        UsageError: they are not.
    """
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
