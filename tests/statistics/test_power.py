"""The power of paired tests, against the noncentral t distribution and against simulated tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rageval_spec.statistics.power import compute_power, count_queries, find_smallest_drop


def exact_power(sd: float, queries: int, drop: float, alpha: float) -> float:
    """The power of the two-sided paired t-test."""
    shift, edge = drop * math.sqrt(queries) / sd, stats.t.ppf(1 - alpha / 2, queries - 1)
    return float(stats.nct.sf(edge, queries - 1, shift) + stats.nct.cdf(-edge, queries - 1, shift))


def test_a_worked_example() -> None:
    # ((1.95996 + 0.84162) * 0.25 / 0.05)² = 196.22, and 1.92 for the correction
    assert count_queries(0.25, 0.05) == 199
    assert find_smallest_drop(0.25, 199) == pytest.approx(0.25 * 2.80159 / math.sqrt(199 - 1.92073), rel=1e-4)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("queries", [20, 50, 400, 5000])
def test_the_smallest_drop_has_the_stated_power(queries: int, alpha: float) -> None:
    drop = find_smallest_drop(0.3, queries, alpha)
    assert drop is not None
    assert exact_power(0.3, queries, drop, alpha) == pytest.approx(0.8, abs=0.005)
    assert compute_power(0.3, queries, drop, alpha) == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize("drop", [0.01, 0.05, 0.2])
def test_the_number_of_queries_is_the_smallest_that_suffices(drop: float) -> None:
    needed = count_queries(0.3, drop)
    assert needed is not None
    near = range(max(3, needed - 20), needed + 20)
    exact = next(queries for queries in near if exact_power(0.3, queries, drop, 0.05) >= 0.8)
    assert abs(needed - exact) <= 1
    smallest = find_smallest_drop(0.3, needed)
    assert smallest is not None and smallest <= drop


def test_simulated_tests_find_the_drop_as_often_as_promised() -> None:
    generator = np.random.default_rng(3)
    drop = find_smallest_drop(0.25, 80)
    assert drop is not None
    drawn = generator.normal(drop, 0.25, (4000, 80))
    found = np.asarray(stats.ttest_1samp(drawn, 0, axis=1).pvalue) < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)


def test_too_few_queries_show_nothing() -> None:
    assert find_smallest_drop(0.2, 2) is None
    assert compute_power(0.2, 2, 0.5) == 0.0
    assert find_smallest_drop(0.2, 3) is not None


def test_no_spread_and_no_drop() -> None:
    assert find_smallest_drop(0.0, 40) == 0.0
    assert compute_power(0.0, 40, 0.1) == 1.0
    assert count_queries(0.2, 0.0) is None
    assert count_queries(0.0, 0.1) == 3
