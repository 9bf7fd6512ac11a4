"""The judge behind a metric is found in what an evaluation recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.recorded import check_scores, find_judge
from rageval_spec.data.evaluation import UsedCalibration
from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError, UsageError
from tests.answered_evaluation import answered, value
from tests.history.recorded import JUDGES, MODELS, evaluate
from tests.sample_evaluation import make_evaluation

RUBRIC = {"use": "rubric", "name": "tone", "criteria": "Is it polite?", "scale": [1, 5], "judge": "grader"}
GRADER = {"grader": {"use": "grade", "model": "gpt"}}


def test_the_judge_has_the_identity_that_the_results_recorded() -> None:
    found = find_judge(evaluate(), "faithfulness")
    assert (found.judge.context.name, found.criterion.name, found.scale) == ("strict", "faithfulness", (0.0, 1.0))
    assert found.identity["prompts"] == {"verify": "aa", "split": "bb"}
    assert found.identity["models"][0]["settings"]["model"] == "gpt-4o"


def test_judges_that_ask_others_are_identified_with_them() -> None:
    used = {"words": UsedCalibration("d1", "probability", {"faithfulness": 60})}
    metrics = {"faithfulness": {"use": "faithfulness", "judge": "fast"}}
    found = find_judge(evaluate(metrics, calibrations=used), "faithfulness")
    assert [one["name"] for one in found.identity["judges"]] == ["words", "strict"]
    assert found.identity["judges"][0]["calibration"] == "probability:d1"


def test_grades_have_the_scale_of_their_rubric() -> None:
    assert find_judge(evaluate({"tone": RUBRIC}, judges=GRADER, models=MODELS), "tone").scale == (1.0, 5.0)


@pytest.mark.parametrize(
    ("evaluation", "metric", "error", "message"),
    [
        (make_evaluation(), "ndcg@10", DataError, "do not record how ndcg@10 was computed; run the spec again"),
        (evaluate(), "token_f1", UsageError, "token_f1 asks no judge, so there is nothing to calibrate"),
        (
            evaluate({"correct": {"use": "factual_correctness", "judge": "strict"}}),
            "correct",
            UsageError,
            "correct asks its judge 2 questions; a calibration is for one",
        ),
        (
            evaluate(judges={**JUDGES, "strict": {**JUDGES["strict"], "calibration": "c.json"}}),
            "faithfulness",
            UsageError,
            "'strict' has a calibration already, so these values are not its own scores; remove 'calibration:'",
        ),
    ],
)
def test_what_has_no_judge_to_calibrate_is_explained(
    evaluation: Any, metric: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        find_judge(evaluation, metric)


def join(scores: Sequence[float | None]) -> tuple[Any, Any]:
    rows = [
        value(f"q{number}", "faithfulness", 0.5, details={} if score is None else {"score": score})
        for number, score in enumerate(scores)
    ]
    evaluation = answered(rows)
    labels = [Label(f"q{number}", "faithfulness", 1.0, "ann") for number in range(len(scores))]
    return evaluation, join_labels(evaluation, labels, "faithfulness")


def test_a_few_values_that_the_metric_decided_itself_do_not_matter() -> None:
    check_scores(*join([0.5] * 9 + [0.3]))


def test_values_that_are_computed_from_the_scores_are_refused() -> None:
    with pytest.raises(UsageError, match="2 of 10 labelled values of faithfulness are not the judge's scores but comp"):
        check_scores(*join([*[0.5] * 8, 0.3, None]))
