"""Differences of two windows, against scipy, a slow reference, and simulated windows."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
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


CONSTANT = ([0.4] * 3, [0.0] * 3)
ROUNDED = ([0.3, 0.1 + 0.2, 0.3], [0.1, 0.3 - 0.2, 1 - 0.9])
CENTS = st.integers(0, 5).map(lambda cents: cents / 10)


def count_extreme(before: list[float], now: list[float]) -> float:
    """The p-value by all divisions, in exact arithmetic with the decimals that the values stand for."""
    values = [Fraction(round(value * 10), 10) for value in (*before, *now)]

    def measure(chosen: tuple[int, ...]) -> tuple[bool, Fraction]:
        sides = [[one for at, one in enumerate(values) if (at in chosen) is is_in] for is_in in (True, False)]
        means = [sum(side, Fraction(0)) / len(side) for side in sides]
        spreads = [
            sum(((one - mean) ** 2 for one in side), Fraction(0)) for side, mean in zip(sides, means, strict=True)
        ]
        errors = [spread / (len(side) - 1) / len(side) for spread, side in zip(spreads, sides, strict=True)]
        error = errors[0] + errors[1]
        apart = (means[0] - means[1]) ** 2
        return (True, Fraction(0)) if apart and not error else (False, apart / error if apart else Fraction(0))

    seen = measure(tuple(range(len(before))))
    every = [measure(chosen) for chosen in combinations(range(len(values)), len(before))]
    return sum(one >= seen for one in every) / len(every)


@settings(max_examples=60, deadline=None)
@given(st.lists(CENTS, min_size=2, max_size=4), st.lists(CENTS, min_size=2, max_size=4))
@example(*CONSTANT)
@example([0.4] * 2, [0.4] * 4)
@example([0.4] * 2, [0.0] * 2)
@example([0.4] * 3, [0.0, 0.1, 0.0])
@example(*ROUNDED)
def test_few_values_are_dealt_in_all_ways(before: list[float], now: list[float]) -> None:
    found = compare_means(before, now)
    assert found is not None and found.p_value == count_extreme(before, now)
    scaled = compare_means([1e9 + 1e3 * one for one in before], [1e9 + 1e3 * one for one in now])
    assert scaled is not None and scaled.p_value == found.p_value
    weighted = compare_means(before, now, [2.5] * len(before), [2.5] * len(now))
    assert weighted is not None and weighted.p_value == found.p_value


def test_windows_without_spread_worked_by_hand() -> None:
    for before, now in (CONSTANT, ROUNDED):
        found = compare_means(before, now)
        assert found is not None and found.p_value == 2 / 20, "3 + 3 values have 20 divisions"
        drawn = compare_means(before, now, settings=Resampling(permutations=19))
        assert drawn is not None and drawn.p_value is not None and drawn.p_value >= 1 / 20
    found = compare_percentiles(*CONSTANT, 50)
    assert found is not None and found.p_value == 1.0, "each division has the medians 0.4 and 0"
    many = compare_means([0.4] * 12_000, [0.0] * 12_000, settings=QUICK)
    summed = compare_summaries(summarize_values([0.4] * 30), summarize_values([0.0] * 30))
    same = compare_summaries(summarize_values([0.3] * 30), summarize_values([0.1 + 0.2] * 40))
    assert many is not None and summed is not None and same is not None
    assert (many.p_value, summed.p_value, same.p_value) == (0.0, 0.0, 1.0)


@settings(max_examples=15, deadline=None)
@given(st.lists(CENTS, min_size=9, max_size=10))
@example([0.4] * 4 + [0.0] * 5)
def test_divisions_at_random_have_nearly_the_p_value_of_all(values: list[float]) -> None:
    found = compare_means(values[:4], values[4:], settings=Resampling(permutations=100))
    assert found is not None and found.p_value == pytest.approx(count_extreme(values[:4], values[4:]), abs=0.2)


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
