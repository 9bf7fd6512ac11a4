"""Thresholds by a criterion, and decisions by thresholds that are best on other questions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rageval_spec.calibration.measures import Measuring
from rageval_spec.calibration.thresholds import Criterion, Threshold, decide_outside, find_threshold, rate_decisions

VALUES = np.array([0.1, 0.3, 0.5, 0.7, 0.8, 0.9])
IS_YES = np.array([False, False, True, False, True, True])


def simulate(rows: int, seed: int = 1) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    random = np.random.default_rng(seed)
    is_yes = random.random(rows) < 0.5
    return (0.3 * is_yes + 0.7 * random.random(rows)), is_yes


@pytest.mark.parametrize(
    ("criterion", "threshold"),
    [
        (Criterion(), 0.4),  # recall 1 and specificity 2/3; from 0.8 on, 2/3 and 1: of equally good ones, the lowest
        (Criterion("f1"), 0.4),  # 6/7
        (Criterion("precision", 0.75), 0.4),
        (Criterion("precision", 0.76), 0.75),
        (Criterion("precision", 1.0), 0.75),
    ],
)
def test_the_best_threshold_by_hand(criterion: Criterion, threshold: float) -> None:
    assert find_threshold(VALUES, IS_YES, criterion) == Threshold(str(criterion), threshold)


def test_a_precision_that_no_threshold_reaches_says_what_can_be_reached() -> None:
    found = find_threshold(np.array([0.2, 0.4, 0.9]), np.array([True, True, False]), Criterion("precision", 0.95))
    assert found == Threshold(
        "precision>=0.95",
        None,
        "no threshold reaches a precision of 0.95 on these labels; the highest is 0.667, from 0.200 on",
    )


@pytest.mark.parametrize("is_yes", [np.ones(6, dtype=bool), np.zeros(6, dtype=bool)])
def test_labels_that_all_say_the_same_have_no_threshold(is_yes: NDArray[np.bool_]) -> None:
    assert find_threshold(VALUES, is_yes, Criterion("precision", 0.5)) is None
    assert find_threshold(VALUES, is_yes, Criterion()) is None


def test_the_wanted_precision_is_held_outside_on_average_and_higher_than_without() -> None:
    values, is_yes = simulate(2000)
    taken = decide_outside(values, is_yes, range(2000), Criterion("precision", 0.9), 42)
    assert taken is not None
    assert is_yes[taken].mean() == pytest.approx(0.9, abs=0.03)


def test_no_row_has_a_part_in_its_own_threshold() -> None:
    # Noise: on its own labels, some threshold always looks better than guessing.
    accuracy = []
    for seed in range(40):
        values, is_yes = np.random.default_rng(seed).random(60), np.arange(60) % 2 == 0
        taken = decide_outside(values, is_yes, range(60), Criterion(), seed)
        assert taken is not None
        accuracy.append(float((taken == is_yes).mean()))
    assert np.mean(accuracy) < 0.53


def test_nothing_is_taken_where_the_other_folds_do_not_reach_the_precision() -> None:
    values, is_yes = (np.arange(100) // 2 % 2).astype(np.float64), np.arange(100) % 2 == 0
    taken = decide_outside(values, is_yes, range(100), Criterion("precision", 0.99), 42)
    assert taken is not None and not taken.any()
    measures = {one.name: one for one in rate_decisions(values, is_yes, Criterion("precision", 0.99), how(100))}
    assert measures["precision"].value is None
    assert measures["recall"].value == 0.0


def how(rows: int) -> Measuring:
    return Measuring(range(rows), resamples=200)


@pytest.mark.parametrize("questions", [["a", "b", "c", "d"] * 5, ["a"] * 20])
def test_too_few_questions_are_not_held_out(questions: list[str]) -> None:
    values, is_yes = simulate(20)
    assert decide_outside(values, is_yes, questions, Criterion(), 42) is None
    assert rate_decisions(values, is_yes, Criterion(), Measuring(questions)) == ()


def test_a_fold_whose_others_lack_a_class_is_not_decided() -> None:
    is_yes = np.array([True] + [False] * 19)
    assert decide_outside(np.linspace(0, 1, 20), is_yes, range(20), Criterion(), 42) is None


def test_a_perfect_recall_is_not_certain() -> None:
    values = np.r_[np.full(40, 0.9), np.full(40, 0.1)]
    found = {one.name: one for one in rate_decisions(values, values > 0.5, Criterion(), Measuring([*range(80)], 200))}
    recall = found["recall"]
    assert recall.interval is not None
    assert (recall.value, recall.interval.high) == (1.0, 1.0)
    assert recall.interval.low == pytest.approx(0.025 ** (1 / 40), abs=1e-6)
    assert found["kappa"].interval is None
