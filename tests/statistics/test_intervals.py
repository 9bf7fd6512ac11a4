"""BCa intervals: against scipy's, their coverage, clusters, and what has no interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import beta, binomtest, fisher_exact

from rageval_spec.statistics.intervals import (
    bootstrap_interval,
    compute_exact_interval,
    compute_p_of_excess,
    compute_p_value,
    number_clusters,
)

if TYPE_CHECKING:
    from rageval_spec.libraries import Floats
    from rageval_spec.statistics.intervals import Statistic


def mean_of(numbers: Floats) -> Statistic:
    return lambda weights: weights @ numbers / weights.sum(axis=1)


def variance_of(numbers: Floats) -> Statistic:
    def find(weights: Floats) -> Floats:
        total = weights.sum(axis=1)
        variance: Floats = (weights @ numbers**2) / total - (weights @ numbers / total) ** 2
        return variance

    return find


def test_the_ends_are_scipys() -> None:
    numbers = np.random.default_rng(3).exponential(size=60)
    expected = stats.bootstrap((numbers,), np.var, n_resamples=20_000, method="BCa", rng=1).confidence_interval
    found = bootstrap_interval(variance_of(numbers), 60, resamples=20_000)
    assert found is not None
    assert found.low == pytest.approx(expected.low, rel=0.03)
    assert found.high == pytest.approx(expected.high, rel=0.03)


def test_two_rows_by_hand() -> None:
    # Of the four resamples, one has the first row twice, one the second, and two both: quarters, so the ends of a 95%
    # interval are the numbers themselves.
    found = bootstrap_interval(mean_of(np.array([0.0, 1.0])), 2, resamples=4000)
    assert found is not None and (found.low, found.high) == (0.0, 1.0)


def test_intervals_cover_their_confidence() -> None:
    random = np.random.default_rng(5)
    hits = 0
    for draw in range(400):
        found = bootstrap_interval(mean_of(random.beta(2, 1, size=60)), 60, resamples=400, seed=draw)
        assert found is not None
        hits += found.low <= 2 / 3 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


def test_rows_of_a_cluster_are_drawn_together() -> None:
    numbers = np.random.default_rng(2).normal(size=50)
    alone = bootstrap_interval(mean_of(numbers), 50)
    repeated = bootstrap_interval(
        mean_of(np.repeat(numbers, 4)), 200, clusters=[str(place // 4) for place in range(200)]
    )
    naive = bootstrap_interval(mean_of(np.repeat(numbers, 4)), 200)
    assert naive is not None and alone is not None and repeated is not None
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))
    assert naive.high - naive.low == pytest.approx((alone.high - alone.low) / 2, rel=0.15)


def test_more_clusters_than_are_left_out_one_by_one() -> None:
    numbers = np.random.default_rng(2).exponential(size=2500)
    found = bootstrap_interval(mean_of(numbers), 2500, resamples=500)
    assert found is not None
    assert found.low < numbers.mean() < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * numbers.std() / 50, rel=0.15)


def test_equal_seeds_give_equal_intervals() -> None:
    numbers = np.random.default_rng(2).normal(size=30)
    assert bootstrap_interval(mean_of(numbers), 30) == bootstrap_interval(mean_of(numbers), 30)
    assert bootstrap_interval(mean_of(numbers), 30, seed=1) != bootstrap_interval(mean_of(numbers), 30)


def test_what_has_no_interval() -> None:
    nowhere: Statistic = lambda weights: np.full(len(weights), np.nan)  # noqa: E731
    assert bootstrap_interval(nowhere, 10) is None
    assert bootstrap_interval(mean_of(np.array([1.0])), 1) is None
    assert bootstrap_interval(mean_of(np.ones(9)), 9, clusters=["one"] * 9) is None
    assert bootstrap_interval(mean_of(np.ones(9)), 9, resamples=0) is None
    often: Statistic = lambda weights: np.where(weights[:, 0] > 0, weights[:, 1], np.nan)  # noqa: E731
    assert bootstrap_interval(often, 10) is None  # undefined in a third of the resamples


def test_a_number_that_does_not_vary_is_its_interval() -> None:
    found = bootstrap_interval(mean_of(np.full(9, 0.25)), 9)
    assert found is not None and (found.low, found.high) == (0.25, 0.25)


def test_clusters_are_numbered_as_they_appear() -> None:
    assert number_clusters(["b", "a", "b"], 3).tolist() == [0, 1, 0]
    assert number_clusters(None, 2).tolist() == [0, 1]


def test_p_values_are_uniform_where_the_difference_is_0() -> None:
    found = []
    for seed in range(200):
        differences = np.random.default_rng(seed).normal(size=60)
        p_value = compute_p_value(mean_of(differences), 60, resamples=300)
        assert p_value is not None
        found.append(p_value)
    assert 0.01 <= np.mean([one < 0.05 for one in found]) <= 0.1
    assert 0.4 <= np.mean(found) <= 0.6


def test_a_p_value_is_about_that_of_students_t() -> None:
    differences = np.random.default_rng(5).normal(0.3, 1, size=80)
    found = compute_p_value(mean_of(differences), 80, resamples=20_000)
    assert found == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.02)


def test_p_values_of_what_never_differs_and_of_what_is_not_defined() -> None:
    assert compute_p_value(mean_of(np.zeros(10)), 10) == 1.0
    assert compute_p_value(lambda weights: np.full(len(weights), np.nan), 10) is None
    assert compute_p_value(mean_of(np.ones(10)), 10, clusters=["a"] * 10) is None


def test_a_worked_example() -> None:
    """By hand, of 8 of 10 at low = 0.4439: 45 p^8 (1-p)^2 + 10 p^9 (1-p) + p^10 = 0.025."""
    interval = compute_exact_interval(8, 10)
    assert interval is not None
    low = interval.low
    assert low == pytest.approx(0.4439, abs=5e-5)
    assert 45 * low**8 * (1 - low) ** 2 + 10 * low**9 * (1 - low) + low**10 == pytest.approx(0.025, abs=1e-9)
    assert (interval.method, interval.confidence) == ("clopper-pearson", 0.95)


@given(st.integers(1, 500), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_it_equals_scipys(total: int, data: st.DataObject, confidence: float) -> None:
    count = data.draw(st.integers(0, total))
    interval = compute_exact_interval(count, total, confidence)
    expected = binomtest(count, total).proportion_ci(confidence, method="exact")
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= interval.low <= count / total <= interval.high <= 1


@given(st.floats(0.1, 400), st.floats(0.1, 400))
def test_effective_numbers_need_not_be_whole(count: float, others: float) -> None:
    interval = compute_exact_interval(count, count + others)
    low, high = beta.ppf(0.025, count, others + 1), beta.ppf(0.975, count + 1, others)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-6)


def test_a_rounding_error_is_no_count() -> None:
    assert compute_exact_interval(1e-12, 5) == compute_exact_interval(0, 5 - 1e-12)


def test_nothing_has_no_interval() -> None:
    assert compute_exact_interval(0, 0) is None


@given(st.data())
def test_an_excess_has_the_p_value_of_fishers_exact_test(data: st.DataObject) -> None:
    total, rest = data.draw(st.integers(1, 300)), data.draw(st.integers(0, 3000))
    count, others = data.draw(st.integers(0, total)), data.draw(st.integers(0, rest))
    table = np.array([[count, total - count], [others, rest - others]])
    expected = fisher_exact(table, alternative="greater").pvalue
    found = compute_p_of_excess(count, total, count + others, total + rest)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
