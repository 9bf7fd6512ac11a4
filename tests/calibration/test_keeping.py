"""What labels showed becomes an entry of `calibration.json`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.calibration.joining import Joined, join_labels
from rageval_spec.calibration.keeping import count_labels, keep_calibration
from rageval_spec.calibration.measuring import measure_judge, promise
from rageval_spec.data.judge_calibration import Guaranteed, JudgeCalibration, Threshold
from rageval_spec.data.labels import Label
from rageval_spec.plugin.identity import digest_criterion, digest_identity
from tests.answered_evaluation import answered, value
from tests.history.recorded import JUDGES, METRICS, MODELS, PROMPTS, evaluate
from tests.judges.fakes import FAITHFULNESS

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
    spec = evaluate(**{"metrics": {metric: METRICS["faithfulness"]}, **recorded}).spec
    evaluation = replace(answered(rows), spec=spec, prompts=PROMPTS)
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
    assert entry.threshold == Threshold(0.4925, "youden")
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
