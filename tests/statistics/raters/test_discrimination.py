"""Telling yes from no: by hand, against scikit-learn, in resamples, and where to draw the line.

Where steps of a cascade are sure, on scores that can be counted by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics

from rageval_spec.statistics.raters.discrimination import (
    DECISIONS,
    Band,
    choose_band,
    choose_bands,
    choose_for_precision,
    choose_threshold,
    decide,
    discriminate,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def find(values: Floats, labels: Bools, weights: Floats | None = None, threshold: float = 0.5) -> dict[str, float]:
    counts = np.ones((1, len(values))) if weights is None else weights
    statistics: list[tuple[str, Any]] = [
        *discriminate(values, labels).items(),
        *decide(values, labels, threshold).items(),
    ]
    return {name: float(statistic(counts)[0]) for name, statistic in statistics}


def test_five_rows_by_hand() -> None:
    # Yes at 0.9, 0.6 and 0.4, no at 0.6 and 0.1. Of six pairs, four are right, one is tied, one is wrong: 4.5 / 6.
    # From the best value on: precision 1 at 0.9, 2/3 at 0.6 (with the tie), 3/4 at 0.4: their mean over the yes.
    values, labels = np.array([0.9, 0.6, 0.4, 0.6, 0.1]), np.array([True, True, True, False, False])
    found = find(values, labels)
    assert found["auroc"] == pytest.approx(4.5 / 6)
    assert found["average_precision"] == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert (found["precision"], found["recall"], found["specificity"]) == pytest.approx((2 / 3, 2 / 3, 1 / 2))
    assert found["balanced_accuracy"] == pytest.approx(7 / 12)
    assert found["youden"] == pytest.approx(1 / 6)


rows = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=15)


@given(rows)
def test_auroc_counts_all_pairs(pairs: list[tuple[int, bool]]) -> None:
    yes = [value for value, label in pairs if label]
    no = [value for value, label in pairs if not label]
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in yes for b in no]
    values, labels = np.array([float(value) for value, _ in pairs]), np.array([label for _, label in pairs])
    expected = float(np.mean(wins)) if wins else np.nan
    assert find(values, labels)["auroc"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(rows)
def test_the_chosen_threshold_is_the_best_of_all(pairs: list[tuple[int, bool]]) -> None:
    values, labels = np.array([float(value) for value, _ in pairs]), np.array([label for _, label in pairs])
    choice = choose_threshold(values, labels, "youden")
    if labels.all() or not labels.any():
        assert choice is None
        return
    assert choice is not None
    best = max(find(values, labels, threshold=one)["youden"] for one in np.arange(-0.5, 6.0, 0.5))
    assert choice.value == pytest.approx(best)
    assert find(values, labels, threshold=choice.threshold)["youden"] == pytest.approx(best)


@pytest.mark.parametrize("seed", range(10))
def test_numbers_are_scikit_learns_for_the_rows_and_for_a_resample(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.round(random.normal(size=50), 1)
    labels = values + random.normal(size=50) > 0
    drawn = random.integers(0, 50, 50)
    weights = np.bincount(drawn, minlength=50)[None].astype(float)
    for counts, some, truth in ((None, values, labels), (weights, values[drawn], labels[drawn])):
        found, taken = find(values, labels, counts, 0.2), some >= 0.2
        assert found["auroc"] == pytest.approx(metrics.roc_auc_score(truth, some), abs=1e-12)
        assert found["average_precision"] == pytest.approx(metrics.average_precision_score(truth, some), abs=1e-12)
        assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(truth, taken), abs=1e-12)
        assert found["f1"] == pytest.approx(metrics.f1_score(truth, taken), abs=1e-12)
        assert found["precision"] == pytest.approx(metrics.precision_score(truth, taken), abs=1e-12)
        assert found["recall"] == pytest.approx(metrics.recall_score(truth, taken), abs=1e-12)
        assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(truth, taken), abs=1e-12)


def test_the_lowest_threshold_with_the_wanted_precision_is_chosen() -> None:
    values, labels = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, False])
    best = choose_for_precision(values, labels, 0.6)
    assert best is not None and (best.threshold, best.value) == pytest.approx((0.65, 2 / 3))
    sure = choose_for_precision(values, labels, 0.9)
    assert sure is not None and (sure.threshold, sure.value) == pytest.approx((0.85, 1.0))
    everything = choose_for_precision(values, labels, 0.5)
    assert everything is not None and everything.threshold == 0.6
    assert choose_for_precision(values[1:2], labels[1:2], 0.5) is None
    assert choose_for_precision(np.array([0.9, 0.1]), np.array([False, True]), 0.9) is None


def test_one_class_alone_tells_nothing() -> None:
    found = find(np.array([0.2, 0.7]), np.array([True, True]))
    assert np.isnan(found["auroc"]) and np.isnan(found["specificity"])
    assert found["recall"] == 0.5
    assert set(DECISIONS) < found.keys()


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
    assert alone.interval.low == pytest.approx(0.025 ** (1 / 200))
    assert grouped.interval.low == pytest.approx(0.025 ** (1 / 20))
