"""Levels of windows, against known intervals, a scan of means, and simulated samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.statistics.intervals import compute_exact_interval
from rageval_spec.statistics.level_sequences import estimate_mean, judge_level, lay_out_weights
from rageval_spec.statistics.sequential_analysis import compute_sequence_interval, grow_capital


def test_one_value_worked_by_hand() -> None:
    # Against a mean of 1/2, the four bettors below have 1.06, 1.2, 1.5 and 1.75 after a 0; the last has half of all.
    level = judge_level([0.0], 0.5)
    capital = 0.5 * 1.75 + (1.06 + 1.2 + 1.5) / 6
    assert level.below == pytest.approx(1 - 1 / capital)
    assert level.above == 0.0
    # With half of the largest weight, half as much is won.
    assert judge_level([0.0], 0.5, [1.0], largest=2.0).below == pytest.approx(1 - 1 / (0.5 * 1.375 + 3.38 / 6))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.05, 0.95))
def test_a_bound_is_certain_when_the_interval_leaves_it(values: list[float], bound: float) -> None:
    level = judge_level(values, bound)
    assert level.interval == compute_sequence_interval(values)
    if min(abs(bound - level.interval.low), abs(bound - level.interval.high)) > 1e-9:
        assert (level.below >= 0.975) == (bound > level.interval.high)
        assert (level.above >= 0.975) == (bound < level.interval.low)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.2, 1.0]), min_size=30, max_size=60))
def test_the_weighted_interval_is_what_a_scan_of_means_leaves(values: list[float]) -> None:
    weights = np.resize([1.0, 4.0, 2.0], len(values))
    interval = judge_level(values, 0.5, weights).interval
    for mean in np.linspace(0.01, 0.99, 50):
        moved = mean + weights / 4 * (np.array(values) - mean)
        is_excluded = max(path.max() for path in grow_capital(moved, float(mean))) >= np.log(40)
        if min(abs(mean - interval.low), abs(mean - interval.high)) > 1e-9:
            assert is_excluded == (not interval.low < mean < interval.high)


def test_certainty_is_seldom_wrong_at_any_look() -> None:
    random = np.random.default_rng(3)
    wrong = 0
    for _ in range(100):
        traffic = random.random(400) < 0.8
        kept = traffic[~traffic | (random.random(400) < 0.25)].astype(float)
        level = judge_level(kept, 0.8, np.where(kept == 0, 1.0, 4.0), largest=4.0)
        wrong += level.below > 0.95
    assert wrong <= 8


def test_a_mean_without_weights_is_that_of_mean_intervals() -> None:
    found = estimate_mean([1.0] * 8 + [0.0] * 2, value_range=(0.0, 1.0))
    assert found is not None
    exact = compute_exact_interval(8, 10)
    assert exact is not None and found.interval is not None
    assert (found.mean, found.effective) == pytest.approx((0.8, 10))
    assert (found.interval.low, found.interval.high) == pytest.approx((exact.low, exact.high))
    assert estimate_mean([]) is None
    single = estimate_mean([0.5], value_range=(0, 1))
    assert single is not None and single.interval is None


def test_intervals_of_stratified_and_probability_samples_cover() -> None:
    random = np.random.default_rng(8)
    sizes, means = (8000, 1500, 500), (0.9, 0.7, 0.4)
    truth = np.dot(sizes, means) / sum(sizes)
    covered = np.zeros(2)
    for _ in range(300):
        counts = (120, 50, 50)  # a sample with at least 50 of each route
        values = np.concatenate([random.random(n) < mean for n, mean in zip(counts, means, strict=True)]).astype(float)
        weights = np.repeat([size / n for size, n in zip(sizes, counts, strict=True)], counts)
        found = estimate_mean(values, weights, np.repeat([0, 1, 2], counts).tolist(), value_range=(0.0, 1.0))
        assert found is not None and found.interval is not None
        covered[0] += found.interval.low <= truth <= found.interval.high
        traffic = random.beta(2, 1, 600)
        rates = np.where(traffic < 0.3, 1.0, 0.2)
        kept = random.random(600) < rates
        found = estimate_mean(traffic[kept], 1 / rates[kept], value_range=(0.0, 1.0))
        assert found is not None and found.interval is not None
        covered[1] += found.interval.low <= 2 / 3 <= found.interval.high
    assert (covered / 300 > 0.92).all()


def test_what_cannot_be_is_an_error() -> None:
    with pytest.raises(ValueError, match="between"):
        judge_level([2.0], 0.5)
    with pytest.raises(ValueError, match="weight"):
        judge_level([0.5], 0.5, [3.0], largest=2.0)
    with pytest.raises(ValueError, match="above 0"):
        lay_out_weights([0.0])
    assert judge_level([0.5], 1.5).below == 1.0
    assert judge_level([], 0.5)[:2] == (0.0, 0.0)
