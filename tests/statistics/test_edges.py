"""Intervals of corrected means hold where almost all labels are yes: by their definition, and by drawing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.corrected import CorrectedMean, correct_mean
from rageval_spec.statistics.edges import respect_bounds

Floats = NDArray[np.float64]


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
