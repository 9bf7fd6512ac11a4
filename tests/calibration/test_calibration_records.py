"""What labels showed becomes an entry of `calibration.json`.

The judge behind a metric is found in what an evaluation recorded.

Labelled answers are frozen with what the judge said of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.calibration.calibration_report import (
    check_scores,
    count_labels,
    find_judge,
    freeze_anchors,
    keep_calibration,
)
from rageval_spec.calibration.judge_quality import measure_judge
from rageval_spec.calibration.labelled_items import Joined, join_labels
from rageval_spec.calibration.thresholds import promise
from rageval_spec.data.evaluation import UsedCalibration
from rageval_spec.data.judge_calibration import CalibratedThreshold, Guaranteed, JudgeCalibration
from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError, UsageError
from rageval_spec.plugin.judge_identity import digest_criterion, digest_identity
from tests.answered_evaluation import ANSWER, CLAIMS, answered, sample, value
from tests.history.recorded import JUDGES, METRICS, MODELS, PROMPTS, evaluate
from tests.judges.fakes import FAITHFULNESS
from tests.sample_evaluation import alter, make_evaluation

COUNT = 200


def keep(
    low: float = 0.0, high: float = 1.0, limit: float | None = None, *, placed: bool = False, **recorded: Any
) -> JudgeCalibration:
    """An entry of 200 answers: from 0.5 on, in the judge's scale, they are right, with 10 exceptions below."""
    values = [number / COUNT for number in range(COUNT)]
    metric = next(iter(recorded.get("metrics", {"faithfulness": None})))
    rows = [
        value(f"q{n:03}", metric, low + (high - low) * one, details={"score": low + (high - low) * one})
        for n, one in enumerate(values)
    ]
    spec = evaluate(**{"metrics": {metric: METRICS["faithfulness"]}, **recorded}).provenance.spec
    evaluation = alter(answered(rows), spec=spec, prompts=PROMPTS)
    labels = [Label(f"q{n:03}", metric, float(one >= 0.5 or n % 10 == 9), "ann") for n, one in enumerate(values)]
    joined = join_labels(evaluation, labels, metric, bounds=(low, high) if placed else (0.0, 1.0))
    promised = None if limit is None else promise(joined, limit, 0.95)
    return keep_calibration(evaluation, joined, measure_judge(joined, resamples=50), promised)


def test_an_entry_says_for_which_judge_and_question_it_holds() -> None:
    entry = keep()
    assert (entry.judge, entry.metric, entry.of) == ("strict", "faithfulness", "answers")
    assert entry.criterion == digest_criterion(FAITHFULNESS)
    assert entry.digest == digest_identity(entry.identity)


def test_an_entry_holds_the_threshold_the_map_and_figures_of_questions_held_out() -> None:
    entry = keep()
    assert entry.threshold == CalibratedThreshold(0.4925, "youden")
    assert entry.map is not None
    assert {"balanced_accuracy", "kappa", "brier", "calibration_error"} <= {one.name for one in entry.held_out}


def test_numbers_of_grades_are_placed_on_zero_to_one() -> None:
    rubric = {"use": "rubric", "name": "tone", "criteria": "Is it polite?", "scale": [1, 5], "judge": "grader"}
    graded: dict[str, Any] = {
        "metrics": {"tone": rubric},
        "judges": {"grader": {"use": "grade", "model": "gpt"}},
        "models": MODELS,
    }
    entry = keep(1.0, 5.0, **graded)
    assert entry.scale == (1.0, 5.0)
    assert entry.threshold is not None
    assert entry.threshold.value == pytest.approx(0.4925)
    plain = keep().map
    assert entry.map is not None
    assert plain is not None
    assert entry.map.values == pytest.approx(plain.values)
    assert entry.map.results == plain.results
    placed = keep(1.0, 5.0, placed=True, **graded).threshold
    assert placed is not None
    assert placed.value == pytest.approx(0.4925)


def test_a_guarantee_is_kept_with_what_it_promises() -> None:
    found = keep(limit=0.05).guarantee
    assert isinstance(found, Guaranteed)
    assert (found.limit, found.confidence, found.wrong, found.labels) == (0.05, 0.95, 0, COUNT)
    assert found.threshold == pytest.approx(0.495)
    assert keep(limit=0.001).guarantee is None


def make_joined(labels: list[Label]) -> Joined:
    evaluation = answered([value(f"q{n}", "faithfulness", 0.5) for n in range(3)])
    return join_labels(evaluation, labels, "faithfulness")


def test_labels_are_counted_and_their_digest_does_not_depend_on_their_order() -> None:
    labels = [
        Label("q0", "faithfulness", 1.0, "ann"), Label("q0", "faithfulness", 0.0, "bob"),
        Label("q1", "faithfulness", 1.0, "ann"), Label("q2", "faithfulness", 0.0, "ann"),
    ]  # fmt: skip
    found = count_labels(make_joined(labels))
    assert (found.items, found.yes, found.no) == (3, 1, 1)
    assert (found.questions, found.labels, found.annotators) == (3, 4, 2)
    assert count_labels(make_joined(labels[::-1])).digest == found.digest
    changed = [replace(labels[0], value=0.0), *labels[1:]]
    assert count_labels(make_joined(changed)).digest != found.digest


def test_a_cascade_names_its_members() -> None:
    metrics = {"faithfulness": {"use": "faithfulness", "judge": "fast"}}
    assert keep(metrics=metrics, judges=JUDGES).identity["use"] == "cascade"


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


SPEC = evaluate({"faithfulness": METRICS["faithfulness"]}).provenance.spec


def test_texts_values_and_labels_are_kept() -> None:
    values = [value(f"q{n}", "faithfulness", n / 10, details={"score": n / 10}) for n in range(10)]
    samples = [sample(f"q{n}", contexts=["A."]) for n in range(10)]
    evaluation = alter(answered(values, samples), spec=SPEC, prompts=PROMPTS)
    labels = [Label(f"q{n}", "faithfulness", float(n >= 5), "ann") for n in range(10)]
    joined = join_labels(evaluation, labels, "faithfulness")
    found = freeze_anchors(evaluation, joined, measure_judge(joined, resamples=50))
    assert (found.judge, found.metric, found.criterion) == ("strict", "faithfulness", digest_criterion(FAITHFULNESS))
    assert found.threshold == pytest.approx(0.45)
    assert [anchor.value for anchor in found.anchors] == [n / 10 for n in range(10)]
    assert [anchor.label for anchor in found.anchors] == [0.0] * 5 + [1.0] * 5
    assert (found.anchors[0].answer, found.anchors[0].contexts) == (ANSWER, ("A.",))


def test_labels_of_claims_are_refused() -> None:
    values = [value("q1", "faithfulness", 0.5, details={"claims": list(CLAIMS)})]
    evaluation = alter(answered(values, [sample("q1")]), spec=SPEC, prompts=PROMPTS)
    labels = [Label("q1", "faithfulness", "supported", "ann", claim=0)]
    joined = join_labels(evaluation, labels, "faithfulness")
    with pytest.raises(UsageError, match="labels of claims cannot be frozen; label whole answers"):
        freeze_anchors(evaluation, joined, measure_judge(joined, resamples=50))
