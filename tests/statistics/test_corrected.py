"""Corrected means: by hand, their coverage, clusters, sampling weights, and Student's t."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.corrected import CorrectedMean, correct_mean, find_t

Floats = NDArray[np.float64]


def correct(judged: list[float], labelled: list[float], unlabelled: list[float]) -> CorrectedMean:
    return correct_mean(np.array(judged), np.array(labelled), np.array(unlabelled))


def test_four_labels_by_hand() -> None:
    # On the labelled rows, cov = 1/8 and var = 1/16; with as many others, the weight is 1/8 / (1/16 * (1 + 1)) = 1. The
    # labels' mean is 1/2, the judge's 3/4 there and 1/4 on the others: 1/2 + (1/4 - 3/4) = 0.
    judged, labelled, others = [1.0, 0.5, 1.0, 0.5], [1.0, 0.0, 1.0, 0.0], [0.5, 0.0, 0.5, 0.0]
    found = correct(judged, labelled, others)
    assert found.weight == 1.0
    assert found.value == pytest.approx(0.0)
    assert (found.judged, found.labelled, found.labels, found.rows) == (0.5, 0.5, 4, 8)
    half = stats.t.ppf(0.975, 3) * math.sqrt(np.var([0.0, -0.5, 0.0, -0.5], ddof=1) / 4 + np.var(others, ddof=1) / 4)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((found.value - half, found.value + half))


def test_a_judge_whose_values_lie_close_together_counts_more() -> None:
    truth = np.tile([1.0, 0.0], 100)
    timid = 0.5 + 0.1 * truth
    found = correct_mean(timid[:20], truth[:20], timid[20:])
    assert found.weight == pytest.approx(10 / (1 + 20 / 180))
    assert found.worth is not None and found.worth > 150


def test_a_judge_that_tells_nothing_leaves_the_labels_alone() -> None:
    found = correct([0.9, 0.9, 0.9], [1.0, 0.0, 1.0], [0.9, 0.9])
    assert found.weight == 0.0
    assert found.value == found.labelled == pytest.approx(2 / 3)
    assert found.interval is not None and found.labelled_interval is not None
    assert (found.interval.low, found.interval.high) == (found.labelled_interval.low, found.labelled_interval.high)
    assert found.worth == pytest.approx(3)


def test_a_judge_that_is_always_right_is_worth_more_labels() -> None:
    random = np.random.default_rng(1)
    truth = (random.random(500) < 0.7).astype(np.float64)
    found = correct_mean(truth[:50], truth[:50], truth[50:])
    assert found.worth is not None and 400 < found.worth < 600
    assert found.value == pytest.approx(truth.mean(), abs=1e-9)


def test_without_other_rows_the_labels_decide() -> None:
    found = correct([0.9, 0.1], [1.0, 0.0], [])
    assert (found.value, found.rows) == (0.5, 2)


@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_the_interval_covers_what_people_would_say_however_biased_the_judge(bias: float) -> None:
    random = np.random.default_rng(4)
    hits, widths, alone = 0, 0.0, 0.0
    for _ in range(1000):
        truth = (random.random(400) < 0.7).astype(np.float64)
        judged = np.clip(np.where(truth > 0, random.beta(4, 2, 400), random.beta(2, 4, 400)) + bias, 0, 1)
        found = correct_mean(judged[:60], truth[:60], judged[60:])
        assert found.interval is not None and found.labelled_interval is not None
        hits += found.interval.low <= 0.7 <= found.interval.high
        widths += found.interval.high - found.interval.low
        alone += found.labelled_interval.high - found.labelled_interval.low
    assert 0.93 <= hits / 1000 <= 0.97
    assert widths < alone


def test_answers_to_one_question_count_together() -> None:
    random = np.random.default_rng(2)
    truth, judged = random.random(40), random.random(40)
    once = correct_mean(judged, truth, np.array([]))
    names = [str(place // 3) for place in range(120)]
    thrice = correct_mean(np.repeat(judged, 3), np.repeat(truth, 3), np.array([]), clusters=names)
    assert once.interval is not None and thrice.interval is not None
    assert (thrice.interval.low, thrice.interval.high) == pytest.approx((once.interval.low, once.interval.high))


def test_labelled_and_other_answers_to_one_question_are_not_independent() -> None:
    # Two systems answer each question alike; one answer of each of 40 questions is labelled.
    random = np.random.default_rng(6)
    hits = {"shared": 0, "apart": 0}
    for _ in range(600):
        hard = random.normal(0, 0.3, 40)
        truth = 0.5 + hard + random.normal(0, 0.05, 40)
        judged, others = (0.5 + hard + random.normal(0, 0.2, 40) for _ in range(2))
        names = [f"q{number}" for number in range(40)]
        for kind, clusters in (("shared", names), ("apart", [f"other {name}" for name in names])):
            found = correct_mean(judged, truth, others, clusters=names, other_clusters=clusters)
            assert found.interval is not None
            hits[kind] += found.interval.low <= 0.5 <= found.interval.high
    assert 0.93 <= hits["shared"] / 600 <= 0.97
    assert hits["apart"] / 600 < 0.93


def test_rows_that_were_rarely_chosen_count_more() -> None:
    # Half of the population is bad; bad answers were labelled nine times as often.
    random = np.random.default_rng(3)
    truth = np.repeat([1.0, 0.0], 5000)
    chance = np.where(truth > 0, 0.02, 0.18)
    chosen = random.random(10_000) < chance
    weights = 1 / chance[chosen]
    judged = np.where(random.random(10_000) < 0.8, truth, 1 - truth)
    found = correct_mean(judged[chosen], truth[chosen], np.array([]), weights=weights)
    assert found.interval is not None
    assert found.interval.low < 0.5 < found.interval.high
    assert truth[chosen].mean() < 0.2


def test_one_label_has_no_interval_and_none_is_an_error() -> None:
    assert correct([0.5], [1.0], [0.5, 0.7]).interval is None
    with pytest.raises(ValueError, match="0 labels for 0 judged rows; there must be equally many, at least 1"):
        correct([], [], [0.5])
    with pytest.raises(ValueError, match="1 labels for 2 judged rows"):
        correct([0.1, 0.2], [1.0], [0.5])


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 30, 199, 5000])
@pytest.mark.parametrize("share", [0.005, 0.05, 0.5, 0.6, 0.9, 0.975, 0.9995])
def test_t_is_scipys(degrees: int, share: float) -> None:
    assert find_t(share, degrees) == pytest.approx(stats.t.ppf(share, degrees), rel=1e-5, abs=1e-12)


def test_t_needs_a_degree_of_freedom() -> None:
    with pytest.raises(ValueError, match="at least one degree of freedom"):
        find_t(0.9, 0)


@pytest.mark.parametrize("worst", [20, 100])
def test_labelling_the_worst_answers_besides_some_at_random_does_not_bias_the_mean(worst: int) -> None:
    # The lowest values are labelled for certain, the others with a probability of 0.1.
    random = np.random.default_rng(8)
    hits, means, naive = 0, [], []
    for _ in range(400):
        truth = (random.random(600) < 0.7).astype(np.float64)
        judged = np.clip(np.where(truth > 0, random.beta(4, 2, 600), random.beta(2, 3, 600)) + 0.15, 0, 1)
        chosen = np.zeros(600, dtype=bool)
        chosen[random.choice(600, 60, replace=False)] = True
        lowest = np.argsort(judged)[:worst]
        chosen[lowest] = True
        chance = np.full(600, 0.1)
        chance[lowest] = 1.0
        parts = (judged[chosen], truth[chosen], judged[~chosen])
        found, alike = correct_mean(*parts, weights=1 / chance[chosen]), correct_mean(*parts)
        assert found.interval is not None
        hits += found.interval.low <= 0.7 <= found.interval.high
        means.append(found.value)
        naive.append(alike.labelled)
    assert 0.92 <= hits / 400 <= 0.98
    assert np.mean(means) == pytest.approx(0.7, abs=0.01)
    assert np.mean(naive) < 0.6


def test_equal_weights_are_no_weights() -> None:
    random = np.random.default_rng(9)
    parts = (random.random(30), random.random(30), random.random(50))
    assert correct_mean(*parts, weights=np.full(30, 7.0)) == correct_mean(*parts)


def test_unequal_weights_of_one_cluster_give_no_interval() -> None:
    judged, labelled, others = np.array([0.2, 0.9]), np.array([0.0, 1.0]), np.array([0.5])
    found = correct_mean(judged, labelled, others, weights=np.array([1.0, 4.0]), clusters=["q1", "q1"])
    assert found.interval is None
    assert found.labelled == pytest.approx(0.8)
