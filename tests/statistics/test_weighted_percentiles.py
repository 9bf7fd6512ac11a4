"""Weighted percentiles: numpy's with equal weights, a slow reference, and coverage with clusters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.design import Design, DesignSummary
from rageval_spec.statistics.layout import Layout, lay_out
from rageval_spec.statistics.weighted_percentiles import (
    bootstrap_difference,
    find_interval,
    find_percentile,
    permute_difference,
)


def lay(clusters: list[int]) -> Layout:
    every = [f"q{at:05}" for at in range(len(clusters))]
    design = Design(dict(zip(every, clusters, strict=True)), summary=DesignSummary(len(every), cluster="source"))
    return lay_out(design, every, every)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.integers(1, 99))
def test_equal_weights_give_numpys_percentile(numbers: list[float], percent: int) -> None:
    own = np.array(numbers)
    weights = np.full(len(own), 1 / len(own))
    assert find_percentile(own, percent, weights) == pytest.approx(float(np.percentile(own, percent)), abs=1e-9)


def test_a_weighted_median_worked_by_hand() -> None:
    # The weights up to each number are 1, 4, 6 of 6; a half of the way from 1 to 6 is 3.5: 5/6 from 10 to 20.
    assert find_percentile(np.array([30.0, 10.0, 20.0]), 50, np.array([2, 1, 3]) / 6) == pytest.approx(10 + 10 * 5 / 6)


def reference(numbers: list[float], percent: float, weights: list[float]) -> float:
    pairs = sorted(zip(numbers, weights, strict=True))
    wanted = pairs[0][1] + (sum(weights) - pairs[0][1]) * percent / 100
    upto = pairs[0][1]
    for (low, _), (high, weight) in pairwise(pairs):
        if upto + weight >= wanted:
            return low + (wanted - upto) / weight * (high - low)
        upto += weight
    return pairs[-1][0]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 5)), min_size=2, max_size=30, unique_by=lambda one: one[0]),
    st.integers(1, 99),
)
def test_a_weighted_percentile_equals_a_slow_reference(drawn: list[tuple[float, float]], percent: int) -> None:
    numbers, weights = ([one[place] for one in drawn] for place in range(2))
    found = find_percentile(np.array(numbers), percent, np.array(weights))
    assert found == pytest.approx(reference(numbers, percent, weights), abs=1e-9)


def test_the_interval_of_independent_values_is_near_that_of_the_binomial() -> None:
    from rageval_spec.statistics.percentiles import find_interval as find_order_statistics

    numbers = np.random.default_rng(2).exponential(size=2000)
    ends, others = find_interval(numbers, 90, lay([*range(2000)]), 0.95), find_order_statistics(numbers, 90, 0.95)
    assert ends is not None
    assert ends == pytest.approx(others, abs=0.03)


def test_clusters_widen_the_interval_of_a_percentile() -> None:
    shared = np.repeat(np.random.default_rng(2).exponential(size=60), 5)
    alone, together = (
        find_interval(shared, 50, lay(of), 0.95) for of in ([*range(300)], [at // 5 for at in range(300)])
    )
    assert alone is not None and together is not None
    assert together[1] - together[0] > 1.5 * (alone[1] - alone[0])


def test_a_percentile_of_few_clusters_has_no_interval() -> None:
    assert find_interval(np.arange(40.0), 95, lay([at // 10 for at in range(40)]), 0.95) is None
    assert find_interval(np.arange(40.0), 50, lay([0] * 40), 0.95) is None


def test_exchanging_whole_clusters_makes_a_difference_less_certain() -> None:
    random = np.random.default_rng(4)
    base = random.exponential(size=120)
    values = base + np.repeat(random.choice([-0.5, 1.0], 12), 10)
    alone, together = (
        permute_difference(values, base, 50, lay(of), permutations=2000, seed=1)
        for of in ([*range(120)], [at // 10 for at in range(120)])
    )
    assert alone < together
    assert permute_difference(base, base, 50, lay([*range(120)]), permutations=200, seed=1) == 1


def test_the_interval_of_a_difference_of_clusters_is_wider_and_the_same_each_time() -> None:
    random = np.random.default_rng(4)
    base = random.exponential(size=300)
    values = base + np.repeat(random.normal(0.3, 1, 60), 5)
    alone, together, again = (
        bootstrap_difference(values, base, 50, lay(of), resamples=500, confidence=0.95, seed=9)
        for of in ([*range(300)], [at // 5 for at in range(300)], [at // 5 for at in range(300)])
    )
    assert alone is not None and together is not None
    assert together == again
    assert together[1] - together[0] > alone[1] - alone[0]
