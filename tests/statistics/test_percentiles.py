from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rageval_spec.statistics.percentiles import find_interval, find_percentile, find_ranks, read_percentile

PERCENTS = st.integers(1, 99)
CONFIDENCES = st.sampled_from([0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80)


@pytest.mark.parametrize(
    ("statistic", "percent"),
    [("p95", 95), ("p1", 1), ("p99", 99), ("mean", None), ("p0", None), ("p100", None), ("p05", None), ("p", None)],
)
def test_a_statistic_can_be_a_percentile(statistic: str, percent: int | None) -> None:
    assert read_percentile(statistic) == percent


def test_percentiles_worked_by_hand() -> None:
    numbers = np.array([4.0, 1.0, 3.0, 2.0])
    assert find_percentile(numbers, 50) == 2.5
    assert find_percentile(numbers, 25) == 1.75  # rank 1 + 3 x 0.25
    assert find_percentile(numbers, 95) == pytest.approx(3.85)
    assert find_percentile(np.array([7.0]), 95) == 7.0


@pytest.mark.parametrize(
    ("count", "ranks"),
    # The textbook's table of intervals of a median at 95 %.
    [(5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15)), (30, (10, 21)), (50, (18, 33))],
)
def test_intervals_of_a_median_equal_the_textbooks(count: int, ranks: tuple[int, int] | None) -> None:
    assert find_ranks(count, 50, 0.95) == ranks


@pytest.mark.parametrize(("percent", "needed"), [(50, 6), (90, 36), (95, 72), (99, 368), (5, 72), (1, 368)])
def test_extreme_percentiles_need_many_numbers(percent: int, needed: int) -> None:
    assert find_ranks(needed - 1, percent, 0.95) is None
    ranks = find_ranks(needed, percent, 0.95)
    assert ranks is not None
    assert (ranks[1] == needed) if percent >= 50 else (ranks[0] == 1)


@given(st.integers(0, 3000), PERCENTS, CONFIDENCES)
def test_ranks_follow_the_binomial_distribution(count: int, percent: int, confidence: float) -> None:
    below = stats.binom(count, percent / 100)
    tail = (1 - confidence) / 2 + 1e-12
    low = max((rank for rank in range(1, count + 1) if below.cdf(rank - 1) <= tail), default=0)
    high = min((rank for rank in range(1, count + 1) if below.sf(rank - 1) <= tail), default=0)
    assert find_ranks(count, percent, confidence) == ((low, high) if low and high else None)


@given(st.integers(0, 200_000), PERCENTS, CONFIDENCES)
def test_the_interval_covers_the_percentile_with_at_least_its_confidence(
    count: int, percent: int, confidence: float
) -> None:
    ranks = find_ranks(count, percent, confidence)
    if ranks is not None:
        below = stats.binom(count, percent / 100)
        assert below.cdf(ranks[1] - 1) - below.cdf(ranks[0] - 1) >= confidence - 1e-9


@given(NUMBERS, PERCENTS, CONFIDENCES)
def test_the_interval_contains_the_percentile(numbers: list[float], percent: int, confidence: float) -> None:
    values = np.array(numbers)
    interval = find_interval(values, percent, confidence)
    if interval is not None:
        assert interval[0] <= find_percentile(values, percent) <= interval[1]
        assert min(numbers) <= interval[0] <= interval[1] <= max(numbers)


def test_the_ends_of_the_interval_are_two_of_the_numbers() -> None:
    numbers = np.array([float(number) for number in range(100, 0, -1)])
    assert find_interval(numbers, 50, 0.95) == (40.0, 61.0)
    assert find_interval(numbers[:20], 95, 0.95) is None
