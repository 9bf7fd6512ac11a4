"""Where steps of a cascade are sure, on scores that can be counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rageval_spec.statistics.bands import Band, choose_band, choose_bands

NAN = float("nan")


def spread(*parts: tuple[float, int, int]) -> tuple[Any, Any]:
    """Scores and labels: for each score, so many no and so many yes."""
    scores = [score for score, no, yes in parts for _ in range(no + yes)]
    labels = [label for _, no, yes in parts for label in [False] * no + [True] * yes]
    return np.array(scores), np.array(labels)


def bounds_of(band: Band) -> tuple[Any, Any]:
    return band.low, band.high


def test_decisions() -> None:
    scores = np.array([0.1, 0.2, 0.5, 0.9, 1.0, NAN])
    assert Band(0.2, 0.9).decide(scores).tolist() == [-1, -1, 0, 1, 1, 0]
    assert Band(None, 0.9).decide(scores).tolist() == [0, 0, 0, 1, 1, 0]
    assert Band(0.2, None).decide(scores).tolist() == [-1, -1, 0, 0, 0, 0]
    assert Band(0.5, 0.5).decide(scores).tolist() == [-1, -1, 1, 1, 1, 0]
    assert not Band().decide(scores).any()


def test_each_side_goes_as_far_as_it_agrees() -> None:
    scores, labels = spread((0.1, 19, 0), (0.2, 0, 1), (0.5, 5, 5), (0.8, 1, 9), (0.9, 1, 9), (1.0, 0, 20))
    # No: 19 of 19, then 19 of 20 at 0.2, then 24 of 30. Yes: 20 of 20, 29 of 30, then 38 of 40 at 0.8.
    assert bounds_of(choose_band(scores, labels, 0.95)) == (pytest.approx(0.35), pytest.approx(0.65))
    assert bounds_of(choose_band(scores, labels, 0.96)) == (pytest.approx(0.15), pytest.approx(0.85))
    assert bounds_of(choose_band(scores, labels, 1.0)) == (pytest.approx(0.15), pytest.approx(0.95))


def test_a_side_needs_ten_rows() -> None:
    scores, labels = spread((0.1, 9, 0), (0.5, 10, 20), (0.9, 0, 10))
    assert bounds_of(choose_band(scores, labels, 0.95)) == (None, pytest.approx(0.7))


def test_a_perfect_step_decides_everything() -> None:
    scores, labels = spread((0.2, 20, 0), (0.6, 0, 20))
    assert bounds_of(choose_band(scores, labels, 0.95)) == (pytest.approx(0.4), pytest.approx(0.4))


def test_sides_that_overlap_meet_where_most_is_right() -> None:
    scores, labels = spread((0.1, 90, 0), (0.4, 3, 2), (0.6, 1, 3), (0.9, 0, 90))
    assert bounds_of(choose_band(scores, labels, 0.9)) == (pytest.approx(0.5), pytest.approx(0.5))


def test_labels_of_one_side_only() -> None:
    scores, labels = spread((0.1, 20, 0), (0.9, 20, 0))
    assert bounds_of(choose_band(scores, labels, 0.95)) == (0.9, None)
    assert bounds_of(choose_band(scores, ~labels, 0.95)) == (None, 0.1)


def test_a_step_without_scores_decides_nothing() -> None:
    assert bounds_of(choose_band(np.full(30, NAN), np.ones(30, dtype=bool), 0.9)) == (None, None)
    scores, labels = spread((0.5, 20, 20))
    assert bounds_of(choose_band(scores, labels, 0.9)) == (None, None)


def split(count: int) -> Any:
    return np.arange(count) % 5


def test_the_second_step_gets_what_the_first_leaves() -> None:
    first = np.array([0.0] * 50 + [0.5] * 100 + [1.0] * 50)
    second = np.array([0.5] * 50 + [0.0] * 50 + [1.0] * 50 + [0.5] * 50)
    labels = np.array([False] * 100 + [True] * 100)
    one, two = choose_bands(np.stack([first, second], axis=1), labels, 0.95, split(200), range(200))
    assert (one.reached, one.decided, one.agreement) == (200, 100, 1.0)
    assert (two.reached, two.decided, two.agreement) == (100, 100, 1.0)
    assert one.band == Band(0.25, 0.75)
    assert two.band == Band(0.5, 0.5)


def test_a_step_that_does_not_agree_on_other_questions_decides_nothing() -> None:
    random = np.random.default_rng(1)
    scores, labels = random.random((200, 1)), random.random(200) < 0.5
    (found,) = choose_bands(scores, labels, 0.95, split(200), range(200))
    assert (found.band, found.decided, found.agreement, found.interval) == (Band(), 0, None, None)


def test_agreement_is_that_of_folds_which_had_no_part() -> None:
    random = np.random.default_rng(2)
    truth = random.random(2000)
    scores, labels = np.clip(truth + random.normal(0, 0.1, 2000), 0, 1)[:, None], random.random(2000) < truth**3
    (found,) = choose_bands(scores, labels, 0.9, split(2000), range(2000))
    assert found.agreement is not None
    assert found.agreement >= 0.9
    fresh = np.clip(random.random(20_000), 0, 1)
    decided = found.band.decide(np.clip(fresh + random.normal(0, 0.1, 20_000), 0, 1))
    right = (decided == 1) == (random.random(20_000) < fresh**3)
    assert right[decided != 0].mean() > 0.88


def test_rows_of_one_question_widen_the_interval() -> None:
    scores = np.array([0.0] * 100 + [1.0] * 100)[:, None]
    labels = np.array([False] * 100 + [True] * 100)
    questions = [place // 10 for place in range(200)]
    folds = np.array(questions) % 5
    (alone,) = choose_bands(scores, labels, 0.9, folds, range(200))
    (grouped,) = choose_bands(scores, labels, 0.9, folds, questions)
    assert alone.interval is not None
    assert grouped.interval is not None
    assert alone.interval.low == pytest.approx(0.981, abs=1e-3)
    assert grouped.interval.low == pytest.approx(0.839, abs=1e-3)
