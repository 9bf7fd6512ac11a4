"""The statistics of cells, worked by hand."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rageval_spec.statistics.percentiles import (
    bootstrap_difference,
    compute_percentile,
    compute_percentile_interval,
    compute_ranks,
    permute_difference,
    read_percentile,
    summarize,
)

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
    assert compute_percentile(numbers, 50) == 2.5
    assert compute_percentile(numbers, 25) == 1.75  # rank 1 + 3 x 0.25
    assert compute_percentile(numbers, 95) == pytest.approx(3.85)
    assert compute_percentile(np.array([7.0]), 95) == 7.0


@pytest.mark.parametrize(
    ("count", "ranks"),
    # The textbook's table of intervals of a median at 95 %.
    [(5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15)), (30, (10, 21)), (50, (18, 33))],
)
def test_intervals_of_a_median_equal_the_textbooks(count: int, ranks: tuple[int, int] | None) -> None:
    assert compute_ranks(count, 50, 0.95) == ranks


@pytest.mark.parametrize(("percent", "needed"), [(50, 6), (90, 36), (95, 72), (99, 368), (5, 72), (1, 368)])
def test_extreme_percentiles_need_many_numbers(percent: int, needed: int) -> None:
    assert compute_ranks(needed - 1, percent, 0.95) is None
    ranks = compute_ranks(needed, percent, 0.95)
    assert ranks is not None
    assert (ranks[1] == needed) if percent >= 50 else (ranks[0] == 1)


@given(st.integers(0, 3000), PERCENTS, CONFIDENCES)
def test_ranks_follow_the_binomial_distribution(count: int, percent: int, confidence: float) -> None:
    below = stats.binom(count, percent / 100)
    tail = (1 - confidence) / 2 + 1e-12
    ranks = np.arange(1, count + 1)
    low = max(ranks[below.cdf(ranks - 1) <= tail].tolist(), default=0)
    high = min(ranks[below.sf(ranks - 1) <= tail].tolist(), default=0)
    assert compute_ranks(count, percent, confidence) == ((low, high) if low and high else None)


@given(st.integers(0, 200_000), PERCENTS, CONFIDENCES)
def test_the_interval_covers_the_percentile_with_at_least_its_confidence(
    count: int, percent: int, confidence: float
) -> None:
    ranks = compute_ranks(count, percent, confidence)
    if ranks is not None:
        below = stats.binom(count, percent / 100)
        assert below.cdf(ranks[1] - 1) - below.cdf(ranks[0] - 1) >= confidence - 1e-9


@given(NUMBERS, PERCENTS, CONFIDENCES)
def test_the_interval_contains_the_percentile(numbers: list[float], percent: int, confidence: float) -> None:
    values = np.array(numbers)
    interval = compute_percentile_interval(values, percent, confidence)
    if interval is not None:
        assert interval[0] <= compute_percentile(values, percent) <= interval[1]
        assert min(numbers) <= interval[0] <= interval[1] <= max(numbers)


def test_the_ends_of_the_interval_are_two_of_the_numbers() -> None:
    numbers = np.array([float(number) for number in range(100, 0, -1)])
    assert compute_percentile_interval(numbers, 50, 0.95) == (40.0, 61.0)
    assert compute_percentile_interval(numbers[:20], 95, 0.95) is None


def slow_percentile(numbers: Sequence[float], percent: int) -> float:
    """By definition 7 of Hyndman and Fan, on the sorted numbers."""
    ordered = sorted(numbers)
    rank = (len(ordered) - 1) * percent / 100
    low = ordered[math.floor(rank)]
    return low + (ordered[math.ceil(rank)] - low) * (rank - math.floor(rank))


def slow_ends(numbers: Sequence[float], base: Sequence[float], percent: int, confidence: float) -> list[float]:
    """The bootstrap, resample by resample, with the random numbers of seed 7."""
    random, found = np.random.default_rng(7), []
    for _ in range(200):
        chosen = random.integers(0, len(numbers), len(numbers), dtype=np.uint32)
        first, second = ([of[place] for place in chosen] for of in (numbers, base))
        found.append(slow_percentile(first, percent) - slow_percentile(second, percent))
    tail = 50 * (1 - confidence)
    return [float(np.percentile(found, end)) for end in (tail, 100 - tail)]


PAIRS = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=8, max_size=30)


@given(PAIRS, st.sampled_from([50, 60]), st.sampled_from([0.5, 0.8]))
def test_the_interval_of_a_difference_equals_a_slow_reference(
    pairs: list[tuple[float, float]], percent: int, confidence: float
) -> None:
    numbers, base = map(list, zip(*pairs, strict=True))
    ends = bootstrap_difference(
        np.array(numbers), np.array(base), percent, resamples=200, confidence=confidence, seed=7
    )
    if compute_ranks(len(pairs), percent, confidence) is None:
        assert ends is None
        return
    expected = slow_ends(numbers, base, percent, confidence)
    if expected[0] < expected[1]:  # else the ends come from those of both percentiles, which other tests check
        assert ends == pytest.approx(expected, abs=1e-9)


def test_a_difference_that_all_pairs_share_is_not_certain() -> None:
    """By hand: 100 equal pairs leave up to 3.6% of others, so the 95th percentile could be the 91.4th or the 98.6th."""
    base = np.arange(100.0)
    options = {"resamples": 500, "confidence": 0.95, "seed": 1}
    reach = 99 * (1 - 0.025 ** (1 / 100))
    found = bootstrap_difference(base + 0.5, base, 95, **options)  # type: ignore[arg-type]
    assert found == pytest.approx((0.5 - reach, 0.5 + reach))
    assert bootstrap_difference(base[:71] + 0.5, base[:71], 95, **options) is None  # type: ignore[arg-type]


def test_the_interval_of_a_difference_is_that_of_scipy() -> None:
    random = np.random.default_rng(3)
    base = random.exponential(1.0, 400)
    numbers = base * 1.2 + random.normal(0, 0.1, 400)

    def differ(first: Any, second: Any, axis: int) -> Any:
        return np.percentile(first, 95, axis=axis) - np.percentile(second, 95, axis=axis)

    peer = stats.bootstrap(
        (numbers, base), differ, paired=True, vectorized=True, method="percentile", n_resamples=9999, rng=5
    ).confidence_interval
    ends = bootstrap_difference(numbers, base, 95, resamples=10_000, confidence=0.95, seed=5)
    assert ends == pytest.approx((peer.low, peer.high), abs=0.015)


def slow_p_value(numbers: Sequence[float], base: Sequence[float], percent: int) -> float:
    """The share of all exchanges whose difference is at least as large as the one that was seen."""
    seen = abs(slow_percentile(numbers, percent) - slow_percentile(base, percent))
    found = []
    for exchanged in itertools.product((False, True), repeat=len(numbers)):
        first = [two if swap else one for one, two, swap in zip(numbers, base, exchanged, strict=True)]
        second = [one if swap else two for one, two, swap in zip(numbers, base, exchanged, strict=True)]
        found.append(abs(slow_percentile(first, percent) - slow_percentile(second, percent)))
    return sum(one >= seen - 1e-9 * max(1.0, seen) for one in found) / len(found)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=7), st.sampled_from([50, 90]))
def test_the_p_value_of_a_difference_is_near_that_of_all_exchanges(pairs: list[tuple[int, int]], percent: int) -> None:
    numbers, base = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    found = permute_difference(numbers, base, percent, permutations=4000, seed=2)
    assert found == pytest.approx(slow_p_value(list(numbers), list(base), percent), abs=0.04)


def test_p_values_of_a_difference_worked_by_hand() -> None:
    one = np.array([1.0])
    assert permute_difference(one, np.array([0.0]), 95, permutations=99, seed=1) == 1.0
    base = np.arange(200.0)
    assert permute_difference(base + 500, base, 50, permutations=999, seed=1) == 1 / 1000
    assert permute_difference(base, base, 50, permutations=99, seed=1) == 1.0


def test_p_values_of_a_difference_are_not_too_often_small() -> None:
    random = np.random.default_rng(11)
    samples = (random.exponential(1.0, (2, 80)) for _ in range(400))
    found = [permute_difference(one, other, 90, permutations=99, seed=at) for at, (one, other) in enumerate(samples)]
    assert np.mean([p <= 0.05 for p in found]) <= 0.08


@pytest.mark.parametrize(
    ("statistic", "numbers", "expected"),
    [
        ("mean", [1.0, 0.0, 0.5], 0.5),
        ("sum", [3.0, 4.0], 7.0),
        ("geometric mean", [math.log(0.5), math.log(0.125)], 0.25),
        ("p50", [3.0, 1.0, 2.0], 2.0),
        ("p75", [0.0, 1.0], 0.75),
    ],
)
def test_statistics(statistic: str, numbers: list[float], expected: float) -> None:
    metric = SimpleNamespace(statistic=statistic, higher_is_better=True)
    assert summarize(metric, array("d", numbers)) == pytest.approx(expected)
