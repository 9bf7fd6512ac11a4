"""Thresholds by a criterion, and decisions by thresholds that are best on other questions.

The bands of a cascade are chosen from what its steps said of the same answers.

Promises of judges of several steps.

Folds of questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rageval_spec.calibration.measures import Measuring
from rageval_spec.calibration.thresholds import (
    FOLDS,
    BestThreshold,
    StepScores,
    ThresholdCriterion,
    count_decisions,
    deal_folds,
    decide_outside,
    find_bands,
    find_threshold,
    promise_steps,
    rate_decisions,
)
from rageval_spec.data.judge_calibration import Figure, StepBounds
from rageval_spec.errors import UsageError
from rageval_spec.statistics.raters.risk_control import send_through_stages

VALUES = np.array([0.1, 0.3, 0.5, 0.7, 0.8, 0.9])
IS_YES = np.array([False, False, True, False, True, True])


def simulate(rows: int, seed: int = 1) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    random = np.random.default_rng(seed)
    is_yes = random.random(rows) < 0.5
    return (0.3 * is_yes + 0.7 * random.random(rows)), is_yes


@pytest.mark.parametrize(
    ("criterion", "threshold"),
    [
        (
            ThresholdCriterion(),
            0.4,
        ),  # recall 1 and specificity 2/3; from 0.8 on, 2/3 and 1: of equally good ones, the lowest
        (ThresholdCriterion("f1"), 0.4),  # 6/7
        (ThresholdCriterion("precision", 0.75), 0.4),
        (ThresholdCriterion("precision", 0.76), 0.75),
        (ThresholdCriterion("precision", 1.0), 0.75),
    ],
)
def test_the_best_threshold_by_hand(criterion: ThresholdCriterion, threshold: float) -> None:
    assert find_threshold(VALUES, IS_YES, criterion) == BestThreshold(str(criterion), threshold)


def test_a_precision_that_no_threshold_reaches_says_what_can_be_reached() -> None:
    found = find_threshold(
        np.array([0.2, 0.4, 0.9]), np.array([True, True, False]), ThresholdCriterion("precision", 0.95)
    )
    assert found == BestThreshold(
        "precision>=0.95",
        None,
        "no threshold reaches a precision of 0.95 on these labels; the highest is 0.667, from 0.200 on",
    )


@pytest.mark.parametrize("is_yes", [np.ones(6, dtype=bool), np.zeros(6, dtype=bool)])
def test_labels_that_all_say_the_same_have_no_threshold(is_yes: NDArray[np.bool_]) -> None:
    assert find_threshold(VALUES, is_yes, ThresholdCriterion("precision", 0.5)) is None
    assert find_threshold(VALUES, is_yes, ThresholdCriterion()) is None


def test_the_wanted_precision_is_held_outside_on_average_and_higher_than_without() -> None:
    values, is_yes = simulate(2000)
    taken = decide_outside(values, is_yes, range(2000), ThresholdCriterion("precision", 0.9), 42)
    assert taken is not None
    assert is_yes[taken].mean() == pytest.approx(0.9, abs=0.03)


def test_no_row_has_a_part_in_its_own_threshold() -> None:
    # Noise: on its own labels, some threshold always looks better than guessing.
    accuracy = []
    for seed in range(40):
        values, is_yes = np.random.default_rng(seed).random(60), np.arange(60) % 2 == 0
        taken = decide_outside(values, is_yes, range(60), ThresholdCriterion(), seed)
        assert taken is not None
        accuracy.append(float((taken == is_yes).mean()))
    assert np.mean(accuracy) < 0.53


def test_nothing_is_taken_where_the_other_folds_do_not_reach_the_precision() -> None:
    values, is_yes = (np.arange(100) // 2 % 2).astype(np.float64), np.arange(100) % 2 == 0
    taken = decide_outside(values, is_yes, range(100), ThresholdCriterion("precision", 0.99), 42)
    assert taken is not None and not taken.any()
    measures = {
        one.name: one for one in rate_decisions(values, is_yes, ThresholdCriterion("precision", 0.99), how(100))
    }
    assert measures["precision"].value is None
    assert measures["recall"].value == 0.0


def how(rows: int) -> Measuring:
    return Measuring(range(rows), resamples=200)


@pytest.mark.parametrize("questions", [["a", "b", "c", "d"] * 5, ["a"] * 20])
def test_too_few_questions_are_not_held_out(questions: list[str]) -> None:
    values, is_yes = simulate(20)
    assert decide_outside(values, is_yes, questions, ThresholdCriterion(), 42) is None
    assert rate_decisions(values, is_yes, ThresholdCriterion(), Measuring(questions)) == ()


def test_a_fold_whose_others_lack_a_class_is_not_decided() -> None:
    is_yes = np.array([True] + [False] * 19)
    assert decide_outside(np.linspace(0, 1, 20), is_yes, range(20), ThresholdCriterion(), 42) is None


def test_a_perfect_recall_is_not_certain() -> None:
    values = np.r_[np.full(40, 0.9), np.full(40, 0.1)]
    found = {
        one.name: one
        for one in rate_decisions(values, values > 0.5, ThresholdCriterion(), Measuring([*range(80)], 200))
    }
    recall = found["recall"]
    assert recall.interval is not None
    assert (recall.value, recall.interval.high) == (1.0, 1.0)
    assert recall.interval.low == pytest.approx(0.025 ** (1 / 40), abs=1e-6)
    assert found["kappa"].interval is None


def make(count: int = 100) -> StepScores:
    """The first step is sure of the first and the last quarter; it has no score of the second answer."""
    quarter = count // 4
    first: list[float | None] = [*[0.0] * quarter, *[0.5] * (count - 2 * quarter), *[1.0] * quarter]
    first[1] = None
    last: list[float | None] = [0.2 if place < count // 2 else 0.7 for place in range(count)]
    return StepScores([("golden", "v1", f"q{place}") for place in range(count)], [first, last])


def test_the_bounds_the_figures_and_what_the_last_step_is_spared() -> None:
    asked = make()
    found = find_bands(asked, [score or 0.0 for score in asked.scores[-1]], 0.95)
    assert found.list_bounds() == (StepBounds(0, 0.25, 0.75),)
    assert found.spared == (0, *range(2, 25), *range(75, 100))
    share, agreement = found.list_figures(["cheap", "dear"])
    assert share == Figure("decided by cheap", 0.49)
    assert (agreement.name, agreement.value, agreement.high) == ("agreement of cheap", 1.0, 1.0)
    assert agreement.low == pytest.approx(0.927, abs=1e-3)


def test_scores_of_some_answers_are_taken() -> None:
    asked = make(8)
    assert asked.take([1, 7]) == StepScores([asked.items[1], asked.items[7]], [[None, 1.0], [0.2, 0.7]])


def test_decisions_of_the_last_step_are_counted_as_labels() -> None:
    found = count_decisions(make(8), [0.2] * 4 + [0.7] * 4)
    assert (found.by, found.items, found.yes, found.no, found.questions) == ("last step", 8, 4, 4, 8)


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(UsageError, match="4 answers are too few to hold questions out; label at least 5 questions"):
        find_bands(make(4), [0.0] * 4, 0.95)


def test_clusters_of_questions_are_held_out_as_a_whole() -> None:
    asked = make()
    together = {(dataset, name): (dataset, place // 50) for place, (dataset, _, name) in enumerate(asked.items)}
    clustered = StepScores(asked.items, asked.scores, together)
    assert clustered.take([1, 99]).clusters == [("golden", 0), ("golden", 1)]
    with pytest.raises(UsageError, match="too few"):
        find_bands(clustered, [0.0] * 100, 0.95)


def make_items(count: int) -> tuple[Sequence[Sequence[float | None]], list[float]]:
    """Answers that are wrong where their second value is below 0.4; the first one says nothing."""
    random = np.random.default_rng(1)
    values = random.random((count, 2)).tolist()
    return values, [float(row[1] >= 0.4) for row in values]


def promise(count: int, limit: float, **options: Any) -> Any:
    values, labelled = make_items(count)
    questions = options.pop("questions", range(count))
    return promise_steps(values, labelled, questions, send_through_stages, limit, 0.95, together=True, **options)


def test_bounds_are_found_and_the_labels_that_were_learnt_from_are_not_tested() -> None:
    found = promise(400, 0.05)
    assert (found.items, found.learnt, found.wanted.labels) == (400, 100, 300)
    assert found.bounds[1] > 0.35
    assert found.bounds[0] < 0.35
    assert found.wanted.sent > 100
    assert found.best == found.wanted


def test_few_labels_lower_all_bounds_together() -> None:
    found = promise(140, 0.2)
    assert (found.learnt, found.wanted.labels) == (0, 140)
    assert found.bounds[0] == found.bounds[1]


def test_the_best_promise_is_named_if_the_wanted_one_cannot_be_kept() -> None:
    found = promise(100, 0.005)
    assert (found.bounds, found.wanted) == (None, None)
    assert found.best.limit > 0.005
    assert found.best_bounds is not None


def test_one_answer_of_each_question_counts() -> None:
    assert promise(400, 0.05, questions=[place // 2 for place in range(400)]).items == 200


def test_conformal_risk_control_limits_a_mean() -> None:
    found = promise(400, 0.05, control="crc")
    assert found.control == "crc"
    assert (found.wanted.wrong + 1) / (found.wanted.labels + 1) <= 0.05
    assert found.best is None
    assert promise(10, 0.05, control="crc").bounds is None


def test_the_curve_goes_from_few_answers_to_many() -> None:
    curve = promise(400, 0.05).curve
    assert [one.coverage for one in curve] == sorted(one.coverage for one in curve)
    assert all(one.risk <= one.upper for one in curve)


def test_all_answers_to_a_question_are_in_one_fold() -> None:
    questions = [f"q{number % 23}" for number in range(69)]
    folds = deal_folds(questions, 42)
    assert folds is not None
    assert all(len(set(folds[[one == name for one in questions]])) == 1 for name in questions)
    assert sorted(set(folds.tolist())) == list(range(FOLDS))
    assert np.bincount(folds[:23]).min() >= 4


def test_the_seed_decides() -> None:
    questions = [str(number) for number in range(50)]
    first, again, other = (deal_folds(questions, seed) for seed in (1, 1, 2))
    assert first is not None and again is not None and other is not None
    assert (first == again).all()
    assert (first != other).any()


def test_fewer_questions_than_folds_cannot_be_divided() -> None:
    assert deal_folds(["a", "b", "c", "d"] * 10, 42) is None
    assert deal_folds([], 42) is None
