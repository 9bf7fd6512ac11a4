"""Corrected means: by hand, their coverage, clusters, sampling weights, and Student's t.

Intervals of corrected means hold where almost all labels are yes: by their definition, and by drawing.

Rogan and Gladen's correction: by hand, against a slow search, and its coverage.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.raters.corrected_means import (
    CorrectedMean,
    UncorrectableError,
    correct_mean,
    correct_share,
    respect_bounds,
)

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


def draw(random: np.random.Generator, rate: float, count: int) -> tuple[Floats, Floats]:
    """Labels, and the values of a judge that misses half of the answers that are wrong."""
    labels = (random.random(count) < rate).astype(float)
    return np.where(labels == 1, 1.0, (random.random(count) < 0.5).astype(float)), labels


def find(judged: Floats, labels: Floats, labelled: int, bounds: tuple[float, float] = (0.0, 1.0)) -> CorrectedMean:
    found = correct_mean(judged[:labelled], labels[:labelled], judged[labelled:])
    return respect_bounds(found, labels[:labelled], bounds, 0.95)


@pytest.mark.parametrize(("yes", "count"), [(57, 60), (3, 60), (50, 100)])
def test_without_a_judge_the_interval_is_wilsons_with_students_t(yes: int, count: int) -> None:
    labels = np.array([1.0] * yes + [0.0] * (count - yes))
    found = find(np.full(count, 0.5), labels, count)
    share, t = yes / count, stats.t.ppf(0.975, count - 1)
    factor = t**2 / (count - 1)
    ends = sorted(np.roots([1 + factor, -(2 * share + factor), share**2]).real)
    assert found.interval is not None and found.interval.method == "ppi++-score"
    assert (found.interval.low, found.interval.high) == pytest.approx(ends, rel=1e-5)
    assert found.labelled_interval is not None
    assert (found.labelled_interval.low, found.labelled_interval.high) == pytest.approx(ends, rel=1e-5)
    wilson = stats.binomtest(yes, count).proportion_ci(0.95, "wilson")
    assert (found.interval.low, found.interval.high) == pytest.approx((wilson.low, wilson.high), abs=0.006)


def test_the_interval_holds_where_few_labels_are_no() -> None:
    random = np.random.default_rng(5)
    plain, held = 0, 0
    for _ in range(1000):
        judged, labels = draw(random, 0.92, 400)
        before, after = correct_mean(judged[:60], labels[:60], judged[60:]).interval, find(judged, labels, 60).interval
        assert before is not None and after is not None
        plain += before.low <= 0.92 <= before.high
        held += after.low <= 0.92 <= after.high
    assert plain < 900
    assert 940 <= held <= 970


def test_where_yes_and_no_are_frequent_the_width_stays() -> None:
    judged, labels = draw(np.random.default_rng(2), 0.5, 500)
    before, after = correct_mean(judged[:100], labels[:100], judged[100:]).interval, find(judged, labels, 100).interval
    assert before is not None and after is not None
    assert after.high - after.low == pytest.approx(before.high - before.low, rel=0.02)


def test_the_interval_moves_with_the_scale() -> None:
    judged, labels = draw(np.random.default_rng(3), 0.9, 200)
    one, five = find(judged, labels, 60), find(4 * judged + 1, 4 * labels + 1, 60, (1.0, 5.0))
    assert one.interval is not None and five.interval is not None
    assert five.interval.low == pytest.approx(4 * one.interval.low + 1, rel=1e-12)
    assert five.interval.high == pytest.approx(4 * one.interval.high + 1, rel=1e-12)


def test_a_judge_that_missed_nothing_among_few_labels_is_not_taken_as_perfect() -> None:
    labels = np.array([1.0] * 57 + [0.0] * 3)
    judged = np.concatenate([labels, np.ones(95), np.zeros(5)])
    before = correct_mean(judged[:60], labels, judged[60:]).interval
    after = respect_bounds(correct_mean(judged[:60], labels, judged[60:]), labels, (0.0, 1.0), 0.95).interval
    assert before is not None and after is not None
    assert after.low < before.low - 0.005


def test_grades_keep_their_interval_and_equal_labels_have_that_of_their_number() -> None:
    judged, labels = draw(np.random.default_rng(4), 0.9, 200)
    labels[0] = 0.5
    plain = correct_mean(judged[:60], labels[:60], judged[60:])
    assert find(judged, labels, 60) == plain
    equal = find(judged, np.ones(200), 60)
    assert equal.interval is not None and equal.interval == equal.labelled_interval and equal.worth is None
    exact = stats.binomtest(60, 60).proportion_ci(0.95, "exact")
    assert (equal.interval.low, equal.interval.high) == pytest.approx((exact.low, 1.0))


Z = 1.959963984540054


def rows(right_yes: int, yes: int, right_no: int, no: int) -> tuple[Floats, Floats]:
    """Decisions and labels of a judge that is right on some of the answers that people call good, and of the others."""
    judged = [1.0] * right_yes + [0.0] * (yes - right_yes) + [0.0] * right_no + [1.0] * (no - right_no)
    return np.array(judged), np.array([1.0] * yes + [0.0] * no)


def test_by_hand() -> None:
    # With half a right and half a wrong decision added: sensitivity (18 + 0.5) / (20 + 1), specificity
    # (8 + 0.5) / (12 + 1). The judge says yes on 22 of the 32 labelled answers and on 48 of 68 others: 70 of 100.
    judged, labelled = rows(18, 20, 8, 12)
    others = np.array([1.0] * 48 + [0.0] * 20)
    found = correct_share(judged, labelled, others)
    sensitivity, specificity = 18.5 / 21, 8.5 / 13
    assert (found.sensitivity, found.specificity) == pytest.approx((sensitivity, specificity), rel=1e-14)
    assert found.value == pytest.approx((0.7 + specificity - 1) / (sensitivity + specificity - 1), rel=1e-14)
    assert found.interval.low < found.value < found.interval.high
    assert float(found.parts @ found.parts) + found.added == pytest.approx(found.error**2, rel=1e-12)


@given(
    right_yes=st.integers(0, 30), wrong_yes=st.integers(0, 15), right_no=st.integers(0, 30),
    wrong_no=st.integers(0, 15), yes=st.integers(0, 60), no=st.integers(0, 60),
)  # fmt: skip
def test_the_interval_has_the_shares_that_are_not_ruled_out(
    right_yes: int, wrong_yes: int, right_no: int, wrong_no: int, yes: int, no: int
) -> None:
    """A slow reference: test each share on its own, with the variance that each row contributes to it."""
    assume(right_yes + wrong_yes and right_no + wrong_no)
    judged, labelled = rows(right_yes, right_yes + wrong_yes, right_no, right_no + wrong_no)
    others = np.array([1.0] * yes + [0.0] * no)
    try:
        found = correct_share(judged, labelled, others)
    except UncorrectableError:
        return
    total, said = len(judged) + len(others), float(judged.sum() + others.sum())
    sizes = right_yes + wrong_yes + 1, right_no + wrong_no + 1
    rates = (right_yes + 0.5) / sizes[0], (right_no + 0.5) / sizes[1]

    def deviates(share: float) -> float:
        """How far the data lie from what they would be with this share, in standard errors."""
        variance = 0.0
        for place in range(total):
            decision = judged[place] if place < len(judged) else others[place - len(judged)]
            part = (decision - said / total) / total
            if place < len(judged) and labelled[place]:
                part -= share * (decision - rates[0]) / sizes[0]
            elif place < len(judged):
                part += (1 - share) * (1 - decision - rates[1]) / sizes[1]
            variance += part**2
        variance += share**2 * 0.5 * (rates[0] ** 2 + (1 - rates[0]) ** 2) / sizes[0] ** 2
        variance += (1 - share) ** 2 * 0.5 * (rates[1] ** 2 + (1 - rates[1]) ** 2) / sizes[1] ** 2
        return abs(said / total + rates[1] - 1 - share * (sum(rates) - 1)) / math.sqrt(variance)

    assert deviates(found.value) == pytest.approx(0, abs=1e-6)
    for end in (found.interval.low, found.interval.high):
        assert deviates(end) == pytest.approx(Z, rel=1e-6)


@pytest.mark.parametrize(
    ("share", "sensitivity", "specificity", "labels", "others"),
    [(0.7, 0.8, 0.7, 100, 400), (0.8, 0.97, 0.9, 100, 400), (0.9, 0.9, 0.8, 150, 1000), (0.7, 0.9, 0.9, 60, 1000)],
)
def test_the_interval_covers_the_share(
    share: float, sensitivity: float, specificity: float, labels: int, others: int
) -> None:
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(1000):
        truth = (random.random(labels + others) < share).astype(float)
        says_yes = random.random(labels + others) < np.where(truth == 1, sensitivity, 1 - specificity)
        judged = says_yes.astype(float)
        try:
            interval = correct_share(judged[:labels], truth[:labels], judged[labels:]).interval
        except UncorrectableError:
            covered += 1  # nothing is promised
            continue
        covered += interval.low <= share <= interval.high
    assert 935 <= covered <= 985


def test_more_rows_of_a_cluster_tell_no_more() -> None:
    judged, labelled = rows(36, 40, 16, 24)
    alone = correct_share(judged, labelled, judged)
    twice = correct_share(np.tile(judged, 2), np.tile(labelled, 2), np.tile(judged, 2))
    together = correct_share(
        np.tile(judged, 2),
        np.tile(labelled, 2),
        np.tile(judged, 2),
        clusters=[*range(64), *range(64), *range(64, 128), *range(64, 128)],
    )
    assert twice.error < 0.75 * alone.error
    assert together.error == pytest.approx(alone.error, rel=0.05)


def test_rows_that_were_chosen_more_often_count_less() -> None:
    judged, labelled = rows(18, 20, 8, 12)
    weights = np.where(judged == 1, 0.5, 1.0)  # answers that the judge likes were twice as likely to be labelled
    found = correct_share(judged, labelled, np.zeros(100), weights=weights)
    scale = 1 / weights.mean()
    expected = (18 * 0.5 * scale + 0.5) / ((18 * 0.5 + 2) * scale + 1)
    assert found.sensitivity == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((10, 12, 0, 0), "all 12 labels are yes, so they do not show how often the judge errs on the others"),
        ((0, 0, 5, 12), "all 12 labels are no"),
        ((5, 10, 5, 10), "the labels do not show that the judge says yes more often where people do"),
        ((6, 10, 6, 10), "the labels do not show that"),
    ],
)
def test_labels_that_do_not_tell_are_refused(counts: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(UncorrectableError, match=message):
        correct_share(*rows(*counts), np.ones(20))


def test_a_number_that_is_no_decision_is_refused() -> None:
    with pytest.raises(ValueError, match="needs values and labels that are yes or no"):
        correct_share(np.array([0.5, 1.0]), np.array([0.0, 1.0]), np.ones(2))
