"""Folds of questions."""

from __future__ import annotations

import numpy as np

from rageval_spec.calibration.folds import FOLDS, deal_folds


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
