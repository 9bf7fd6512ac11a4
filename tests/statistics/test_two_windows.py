"""Differences of two windows, against scipy, a slow reference, and simulated windows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rageval_spec.statistics.intervals import Resampling
from rageval_spec.statistics.two_windows import compare_means, compare_percentiles, compare_summaries
from rageval_spec.statistics.window_summaries import WindowSummary, summarize_values

QUICK = Resampling(permutations=499, resamples=500)


def test_means_worked_by_hand() -> None:
    found = compare_means([0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 3.0], value_range=(0.0, 1.0), settings=QUICK)
    assert found is not None and found.interval is not None
    assert (found.before, found.now, found.difference) == pytest.approx((0.75, 2 / 3, 2 / 3 - 3 / 4))
    assert found.interval.low < found.difference < found.interval.high


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.4, 0.7, 1.0]), min_size=6, max_size=8))
def test_the_p_value_is_near_that_of_all_divisions(values: list[float]) -> None:
    def measure(chosen: tuple[int, ...]) -> float:
        first = np.array([values[at] for at in chosen])
        second = np.array([value for at, value in enumerate(values) if at not in chosen])
        apart = abs(first.mean() - second.mean())
        error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
        return 0.0 if apart < 1e-12 else float("inf") if error < 1e-12 else float(apart / error)

    seen = measure((0, 1, 2))
    every = [measure(chosen) for chosen in combinations(range(len(values)), 3)]
    expected = np.mean([one >= seen - 1e-9 for one in every])
    found = compare_means(values[:3], values[3:], settings=Resampling(permutations=1999))
    assert found is not None and found.p_value == pytest.approx(expected, abs=0.05)


def test_large_windows_have_welchs_p_value() -> None:
    random = np.random.default_rng(1)
    first, second = random.normal(0, 1, 12_000), random.normal(0.03, 2, 12_000)
    welch = stats.ttest_ind(second, first, equal_var=False)
    found = compare_means(first, second, settings=QUICK)
    assert found is not None and found.p_value == pytest.approx(welch.pvalue, rel=0.01)
    summed = compare_summaries(summarize_values(first), summarize_values(second))
    assert summed is not None and summed.interval is not None
    assert summed.p_value == pytest.approx(welch.pvalue, rel=0.01)
    ends = welch.confidence_interval()
    assert (summed.interval.low, summed.interval.high) == pytest.approx((ends.low, ends.high), abs=1e-3)


def test_weighted_differences_cover_and_seldom_cry_wolf() -> None:
    random = np.random.default_rng(5)
    covered = alarms = 0
    for _ in range(200):
        sides = []
        for _ in range(2):
            traffic = random.beta(2, 1, 300)
            rates = np.where(traffic < 0.4, 1.0, 0.25)
            kept = random.random(300) < rates
            sides.append((traffic[kept], 1 / rates[kept]))
        (first, of_first), (second, of_second) = sides
        found = compare_means(first, second, of_first, of_second, value_range=(0, 1), settings=QUICK)
        assert found is not None and found.interval is not None and found.p_value is not None
        covered += found.interval.low <= 0 <= found.interval.high
        alarms += found.p_value <= 0.05
    assert covered >= 184 and alarms <= 19


def test_percentiles_of_two_windows() -> None:
    random = np.random.default_rng(2)
    first, second = random.exponential(1, 200), random.exponential(3, 150)
    found = compare_percentiles(first, second, 90, settings=QUICK)
    assert found is not None and found.interval is not None
    assert found.before == pytest.approx(np.percentile(first, 90))
    assert found.difference == pytest.approx(np.percentile(second, 90) - np.percentile(first, 90))
    assert found.p_value == pytest.approx(1 / 500) and found.interval.low > 0
    same = compare_percentiles(first[:100], first[100:], 50, settings=QUICK)
    assert same is not None and same.p_value is not None and same.p_value > 0.05
    few = compare_percentiles(first[:20], second[:20], 95, settings=QUICK)
    assert few is not None and few.interval is None


def test_an_empty_window_is_not_compared_and_equal_values_have_an_interval() -> None:
    assert compare_means([], [1.0]) is None
    assert compare_percentiles([1.0], [], 50) is None
    assert compare_summaries(WindowSummary(), summarize_values([1.0])) is None
    found = compare_means([1.0] * 20, [1.0] * 30, value_range=(0, 1), settings=QUICK)
    assert found is not None and found.interval is not None and found.p_value == 1.0
    assert found.interval.low < 0 < found.interval.high
