"""How many labels an interval needs: by hand, against what corrected means really get, and without a judge."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.raters.corrected_means import correct_mean
from rageval_spec.statistics.raters.label_counts import Spread, bound_worth, estimate_spread, find_first

Floats = NDArray[np.float64]


def simulate(rows: int, skill: float, seed: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    truth = (random.random(rows) < 0.6).astype(np.float64)
    return np.where(random.random(rows) < skill, truth, random.random(rows)), truth


def test_labels_alone_by_hand() -> None:
    # 1/4 / n: with 385 labels, 1.966 * sqrt(0.25 / 385) = 0.0501; with 387, 0.04997.
    spread = Spread(0.25, 0.0, 10_000)
    found = spread.count_labels(0.1, judged=False)
    assert found is not None
    half = [stats.t.ppf(0.975, count - 1) * math.sqrt(0.25 / count) for count in (found - 1, found)]
    assert half[1] <= 0.05 < half[0]
    assert spread.count_labels(0.1) == found


def test_a_judge_that_explains_half_needs_about_half_the_labels() -> None:
    without, with_judge = (Spread(0.25, 0.5, 1_000_000).count_labels(0.1, judged=judged) for judged in (False, True))
    assert without is not None and with_judge is not None
    assert with_judge / without == pytest.approx(0.5, abs=0.01)


def test_a_width_that_all_labels_do_not_reach() -> None:
    spread = Spread(0.25, 0.9, 100)
    assert spread.count_labels(0.01) is None
    assert spread.count_labels(0.01, judged=False) == pytest.approx(0.25 * (2 * 1.96 / 0.01) ** 2, rel=0.001)


@pytest.mark.parametrize("skill", [0.0, 0.5, 0.9])
def test_the_expected_width_is_the_one_that_labels_give(skill: float) -> None:
    judged, truth = simulate(1000, skill, 1)
    spread = estimate_spread(correct_mean(judged[:800], truth[:800], judged[800:]), 800)
    assert spread is not None
    for labels in (40, 100, 600):
        widths = []
        for seed in range(60):
            order = np.random.default_rng(seed).permutation(1000)
            kept, rest = order[:labels], order[labels:]
            interval = correct_mean(judged[kept], truth[kept], judged[rest]).interval
            assert interval is not None
            widths.append((interval.high - interval.low) ** 2)
        assert spread.expect_width(labels) == pytest.approx(np.mean(widths) ** 0.5, rel=0.08)


def test_the_width_with_the_labels_that_there_are_is_the_one_there_is() -> None:
    judged, truth = simulate(500, 0.7, 2)
    mean = correct_mean(judged[:80], truth[:80], judged[80:])
    spread = estimate_spread(mean, 80)
    assert spread is not None and mean.interval is not None and mean.labelled_interval is not None
    assert spread.expect_width(80) == pytest.approx(mean.interval.high - mean.interval.low)
    assert spread.expect_width(80, judged=False) == pytest.approx(
        mean.labelled_interval.high - mean.labelled_interval.low
    )


def test_answers_to_one_question_say_less() -> None:
    judged, truth = simulate(100, 0.7, 3)
    names = [row // 4 for row in range(400)]
    thrice = correct_mean(np.repeat(judged, 4), np.repeat(truth, 4), np.array([]), clusters=names)
    together, apart = (estimate_spread(thrice, 100), estimate_spread(correct_mean(judged, truth, np.array([])), 100))
    assert together is not None and apart is not None
    assert together.variance == pytest.approx(4 * apart.variance)
    assert together.expect_width(400) == pytest.approx(apart.expect_width(100))


def test_the_interval_of_the_number_of_labels_contains_it() -> None:
    hits = 0
    for seed in range(60):
        judged, truth = simulate(5000, 0.6, seed)
        mean = correct_mean(judged[:150], truth[:150], judged[150:])
        spread = estimate_spread(mean, 150)
        assert spread is not None
        bounds = spread.bound_labels(0.1, 150)
        assert bounds.low <= (spread.count_labels(0.1) or 5000) <= bounds.high
        exact = estimate_spread(correct_mean(judged[:2500], truth[:2500], judged[2500:]), 2500)
        needed = None if exact is None else exact.count_labels(0.1)
        assert needed is not None
        hits += bounds.low <= needed <= bounds.high
    assert hits >= 53


def test_one_label_has_no_spread() -> None:
    assert estimate_spread(correct_mean(np.array([0.5]), np.array([1.0]), np.array([0.2])), 1) is None
    assert Spread(0.25, 0.0, 10).expect_width(1) == math.inf


@pytest.mark.parametrize(
    ("bound", "most", "found"), [(5, 10, 5), (10, 10, 10), (11, 10, None), (1, 1, 1), (1, 0, None)]
)
def test_the_first_number_that_is_enough(bound: int, most: int, found: int | None) -> None:
    assert find_first(lambda number: number >= bound, most) == found


@pytest.mark.parametrize("labels", [4, 5, 8, 10, 20, 60])
def test_the_interval_of_few_labels_contains_the_number_and_what_many_labels_show(labels: int) -> None:
    counted = worth = 0
    for seed in range(60):
        judged, truth = simulate(5000, 0.6, seed)
        mean = correct_mean(judged[:labels], truth[:labels], judged[labels:])
        spread, exact = (
            estimate_spread(mean, labels),
            estimate_spread(correct_mean(judged[:2500], truth[:2500], judged[2500:]), 2500),
        )
        assert exact is not None
        if spread is None or spread.variance <= 0 or mean.worth is None:
            counted, worth = counted + 1, worth + 1
            continue
        bounds, ends = spread.bound_labels(0.1, labels), bound_worth(labels, mean.worth, 5000, labels)
        assert (ends is not None) == (labels >= 10)
        assert bounds.low <= (spread.count_labels(0.1) or 5000) <= bounds.high
        counted += bounds.low <= (exact.count_labels(0.1) or 5000) <= bounds.high
        if ends is None:
            worth += 1
            continue
        assert ends[0] <= mean.worth <= ends[1]
        worth += ends[0] <= labels / (1 - exact.explained * (1 - labels / 5000)) <= ends[1]
    assert min(counted, worth) >= 51


@pytest.mark.parametrize("labels", [1, 2, 5, 9])
def test_labels_of_a_few_questions_do_not_tell_what_they_are_worth(labels: int) -> None:
    assert bound_worth(labels, 28.0, 500, labels) is None
