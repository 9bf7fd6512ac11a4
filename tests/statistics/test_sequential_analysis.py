"""Confidence sequences, against an example worked by hand, a slow reference, and simulated draws.

Changes of level are found where they are, and seldom where there are none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rageval_spec.statistics.sequential_analysis import (
    ALPHA,
    SHORTEST,
    _bound_chance,
    _measure,
    compute_sequence_interval,
    decide,
    find_changes,
    grow_capital,
)

UNITS = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]) | st.floats(0, 1), min_size=1, max_size=25)


def test_two_values_of_four_worked_by_hand() -> None:
    # Supposed mean 1/2 of four values; 1 and 0 are drawn. Before the first value 1/2 is expected, before the second
    # (2 - 1) / 3 = 1/3. The bettor who follows the variance would wager sqrt(2 ln 40 / (0.25 ln 2)) = 6.53, and then,
    # with a variance of (0.25 + 0.25²) / 2, sqrt(2 ln 40 / (0.15625 * 2 ln 3)) = 4.64; each is more than 3/4 of what
    # may be wagered. The others wager 6, 20 and 50 hundredths of it.
    first = 0.5 * 1.75 + (1.06 + 1.2 + 1.5) / 6
    second = 0.5 * 1.75 * 0.25 + (1.06 * 0.94 + 1.2 * 0.8 + 1.5 * 0.5) / 6
    above, below = grow_capital(np.array([1.0, 0.0]), 0.5, population=4)
    assert np.exp(above) == pytest.approx([first, second])
    # On the other side, 0 and 1 are seen, and 1/2 and 2/3 expected: 3/4 of what may be wagered is a stake of 9/8.
    first = 0.5 * 0.25 + (0.94 + 0.8 + 0.5) / 6
    second = 0.5 * 0.25 * 1.375 + (0.94 * 1.03 + 0.8 * 1.1 + 0.5 * 1.25) / 6
    assert np.exp(below) == pytest.approx([first, second])


def slow_capital(values: list[float], mean: float, population: int | None, confidence: float) -> list[float]:
    """The capital of the bettor above, one value and one way of betting at a time."""
    wealth, paths = [0.5 / 3, 0.5 / 3, 0.5 / 3, 0.5], []
    for time, value in enumerate(values, start=1):
        seen = values[: time - 1]
        expected = mean if population is None else (population * mean - sum(seen)) / (population - len(seen))
        if population is not None and sum(seen) + value > population * mean + 1e-12 * population:
            wealth = [math.inf] * 4
        elif math.isfinite(wealth[0]):
            expected = max(expected, 1e-12)
            means = [(0.5 + sum(values[:count])) / (count + 1) for count in range(1, time)]
            squares = sum((value - at) ** 2 for value, at in zip(seen, means, strict=True))
            variance = (0.25 + squares) / time
            follow = math.sqrt(2 * math.log(2 / (1 - confidence)) / (variance * time * math.log1p(time)))
            bets = [0.06 / expected, 0.2 / expected, 0.5 / expected, min(follow, 0.75 / expected)]
            wealth = [own * (1 + bet * (value - expected)) for own, bet in zip(wealth, bets, strict=True)]
        paths.append(sum(wealth))
    return paths


@given(UNITS, st.floats(0.01, 0.99), st.integers(0, 20) | st.none(), st.sampled_from([0.8, 0.95]))
def test_the_capital_equals_the_slow_reference(
    values: list[float], mean: float, left: int | None, confidence: float
) -> None:
    population = None if left is None else len(values) + left
    above, below = grow_capital(np.array(values), mean, population, confidence)
    with np.errstate(divide="ignore"):
        expected = np.log(slow_capital(values, mean, population, confidence))
        mirrored = np.log(slow_capital([1 - value for value in values], 1 - mean, population, confidence))
    assert above == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert below == pytest.approx(mirrored, rel=1e-6, abs=1e-6)


@settings(max_examples=40)
@given(UNITS, st.integers(1, 20) | st.none())
def test_the_interval_is_what_a_scan_of_means_leaves(values: list[float], left: int | None) -> None:
    population = None if left is None else len(values) + left
    interval = compute_sequence_interval(values, population, confidence=0.8)
    edge = math.log(2 / 0.2)
    for mean in np.linspace(0.005, 0.995, 100):
        above, below = grow_capital(np.array(values), float(mean), population, confidence=0.8)
        is_excluded = above.max() >= edge or below.max() >= edge
        if min(abs(mean - interval.low), abs(mean - interval.high)) > 1e-9:
            assert is_excluded == (not interval.low < mean < interval.high)


@given(UNITS, st.integers(0, 20), st.floats(0.01, 0.99))
def test_a_bound_is_decided_when_the_interval_leaves_it(values: list[float], left: int, bound: float) -> None:
    population = len(values) + left
    interval = compute_sequence_interval(values, population)
    decision = decide(values, bound, population)
    if min(abs(bound - interval.low), abs(bound - interval.high)) > 1e-9:
        side = None if interval.low < bound < interval.high else bound <= interval.low
        assert (None if decision is None else decision.is_above) == side or (decision is not None and left == 0)


def test_the_decision_comes_at_the_first_value_that_excludes_the_bound() -> None:
    values = [1.0] * 40 + [0.0] * 10
    decision = decide(values, 0.5, 1000)
    assert decision is not None and decision.is_above
    assert decide(values[: decision.queries], 0.5, 1000) == decision
    assert decide(values[: decision.queries - 1], 0.5, 1000) is None


def test_the_interval_shrinks_and_ends_at_the_mean() -> None:
    values = np.random.default_rng(1).permutation(np.repeat([0.0, 0.5, 1.0], [30, 20, 50]))
    intervals = [compute_sequence_interval(values[:count], 100) for count in range(0, 101, 10)]
    assert (intervals[0].low, intervals[0].high) == (0.0, 1.0)
    for earlier, later in itertools.pairwise(intervals):
        assert earlier.low <= later.low <= later.high <= earlier.high
    assert (intervals[-1].low, intervals[-1].high) == (0.6, 0.6)
    assert decide(values, 0.6, 100) is not None


def test_nearly_the_whole_population_leaves_only_what_the_rest_can_change() -> None:
    interval = compute_sequence_interval([1.0, 0.0] * 49 + [1.0], 100)
    assert round(interval.low, 9) >= 0.5 and round(interval.high, 9) <= 0.51


def test_differences_lie_between_minus_one_and_one() -> None:
    values = np.random.default_rng(2).choice([-1.0, 0.0, 0.0, 0.5], 80)
    unit = compute_sequence_interval((values + 1) / 2, 500)
    interval = compute_sequence_interval(values, 500, bounds=(-1, 1))
    assert (interval.low, interval.high) == pytest.approx((2 * unit.low - 1, 2 * unit.high - 1))
    assert decide(values, -0.9, 500, bounds=(-1, 1)) == decide((values + 1) / 2, 0.05, 500)


def test_values_that_differ_little_give_a_short_interval() -> None:
    generator = np.random.default_rng(3)
    close, apart = generator.normal(0.7, 0.05, 200).clip(0, 1), generator.choice([0.0, 1.0], 200, p=[0.3, 0.7])
    short, long = compute_sequence_interval(close), compute_sequence_interval(apart)
    assert short.high - short.low < 0.4 * (long.high - long.low)


@pytest.mark.parametrize("population", [None, 120])
def test_the_mean_leaves_the_sequence_in_few_draws(population: int | None) -> None:
    generator = np.random.default_rng(4)
    whole = np.repeat([0.0, 0.2, 1.0], [20, 30, 70])
    draws = np.tile(whole, (2000, 1))
    draws = generator.permuted(draws, axis=1) if population else generator.choice(whole, draws.shape)
    above, below = grow_capital(draws, whole.mean(), population)
    left = (np.maximum(above, below)[:, :-1].max(axis=1) >= math.log(2 / 0.05)).mean()
    assert 0 < left <= 0.05


def test_an_ordinary_interval_watched_all_the_time_is_wrong_far_more_often() -> None:
    draws = np.random.default_rng(5).choice([0.0, 1.0], (2000, 400))
    times = np.arange(1, 401)
    means = np.cumsum(draws, axis=1) / times
    half = 1.96 * np.sqrt(means * (1 - means) / times)
    watched = np.abs(means - 0.5)[:, 30:] > half[:, 30:]
    assert watched.any(axis=1).mean() > 0.2
    above, below = grow_capital(draws, 0.5)
    assert (np.maximum(above, below).max(axis=1) >= math.log(2 / 0.05)).mean() < 0.05


def test_what_cannot_be_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="the values must be between 0 and 1"):
        compute_sequence_interval([0.5, 1.2])
    with pytest.raises(ValueError, match="the values must be between -1 and 1"):
        decide([math.inf], 0.0, bounds=(-1, 1))
    with pytest.raises(ValueError, match="there are 3 values of a population of 2"):
        compute_sequence_interval([0.5, 0.2, 0.1], 2)


def test_bounds_beyond_all_values_are_decided_before_any_value() -> None:
    above, below = decide([], -0.1), decide([], 1.5)
    assert above is not None and below is not None
    assert (above.is_above, above.queries, below.is_above, below.queries) == (True, 0, False, 0)
    assert decide([], 0.5) is None


GAPS = st.lists(st.booleans(), min_size=25, max_size=25)


@settings(max_examples=40)
@given(UNITS, GAPS, st.integers(1, 20))
def test_the_interval_with_draws_without_a_value_is_what_a_scan_of_means_leaves(
    values: list[float], gaps: list[bool], left: int
) -> None:
    drawn = np.where(gaps[: len(values)], np.nan, values)
    population = len(values) + left
    interval = compute_sequence_interval(drawn, population, confidence=0.8)
    edge = math.log(2 / 0.2)
    for mean in np.linspace(0.005, 0.995, 100):
        above, below = grow_capital(drawn, float(mean), population, confidence=0.8)
        is_excluded = above.max() >= edge or below.max() >= edge
        if min(abs(mean - interval.low), abs(mean - interval.high)) > 1e-9:
            assert is_excluded == (not interval.low < mean < interval.high)


@pytest.mark.parametrize("bound", [0.5, 0.6, 0.7])
def test_decisions_with_draws_without_a_value_are_wrong_in_at_most_five_percent(bound: float) -> None:
    generator = np.random.default_rng(5)
    values = np.array([1.0] * 60 + [0.0] * 40 + [math.nan] * 100)  # the mean of those that have a value is 0.6
    wrong = 0
    for _ in range(400):
        decision = decide(generator.permutation(values)[:190], bound, population=200)
        wrong += decision is not None and decision.is_above != (bound <= 0.6)
    assert wrong <= 0.05 * 400


def test_draws_without_a_value_are_not_part_of_the_mean() -> None:
    values = [1.0, math.nan, 0.0, 1.0, math.nan, 1.0]
    assert (
        compute_sequence_interval(values, population=6).low
        == compute_sequence_interval(values, population=6).high
        == 0.75
    )
    assert decide(values, 0.75, population=6) == (True, 6)
    assert decide([math.nan] * 6, 0.5, population=6) is None
    interval = compute_sequence_interval([math.nan] * 6, population=6)
    assert (interval.low, interval.high) == pytest.approx((0, 1))


def test_few_draws_with_a_value_decide_later_than_many() -> None:
    ones = np.ones(200)
    half = np.where(np.arange(200) % 2, np.nan, 1.0)
    many, few = decide(ones, 0.7, population=400), decide(half, 0.7, population=400)
    assert many is not None and few is not None
    assert few.queries > 1.5 * many.queries


def noise(count: int, seed: int) -> list[float]:
    return list(np.random.default_rng(seed).normal(0.8, 0.02, count))


def test_levels_are_found_where_they_begin() -> None:
    values = noise(90, 1)
    for index in range(30, 60):
        values[index] -= 0.1
    assert find_changes(values) == [30, 60]
    assert find_changes(values) == find_changes([value * 1000 + 7 for value in values])


@pytest.mark.parametrize("count", [0, 1, 2 * SHORTEST - 1])
def test_few_numbers_have_no_change(count: int) -> None:
    assert find_changes([float(index > count / 2) for index in range(count)]) == []


def test_the_shortest_level_that_can_be_found() -> None:
    values = [*noise(20, 2), *(value + 1 for value in noise(SHORTEST, 3))]
    assert find_changes(values) == [20]
    assert find_changes([0.5] * 100) == []


@pytest.mark.parametrize("draw", ["normal", "coins", "heavy"])
def test_series_without_a_change_get_a_mark_as_seldom_as_is_said(draw: str) -> None:
    """Of 400 series, 4 are expected; more than 11 would be as unlikely as 1 in 1000."""
    random = np.random.default_rng(11)
    draws: dict[str, Callable[[], NDArray[np.float64]]] = {
        "normal": lambda: random.normal(size=40),
        "coins": lambda: random.integers(0, 2, 40).astype(np.float64),
        "heavy": lambda: random.standard_cauchy(40),
    }
    assert ALPHA == 0.01
    assert sum(bool(find_changes(list(draws[draw]()))) for _ in range(400)) <= 11


@pytest.mark.parametrize("count", [10, 25, 60])
def test_the_bound_on_chance_is_not_below_the_share_of_orders(count: int) -> None:
    random = np.random.default_rng(4)
    for values in (random.normal(size=count), random.integers(0, 2, count).astype(float), np.arange(count) ** 2.0):
        orders = random.permuted(np.broadcast_to(values - values.mean(), (20_000, count)).copy(), axis=1)
        largest = _measure(orders).max(axis=1)
        for share in (0.5, 0.1, 0.01):
            limit = float(np.quantile(largest, 1 - share))
            assert _bound_chance(limit, count, float(np.ptp(values))) >= (largest >= limit).mean()


def test_a_change_beyond_doubt_is_where_orders_would_find_it() -> None:
    values = [*noise(3000, 5), *(value - 0.1 for value in noise(3000, 6))]
    assert (
        _bound_chance(float(_measure(np.array([values]) - np.mean(values)).max()), 6000, float(np.ptp(values))) < 1e-9
    )
    assert find_changes(values) == [3000]
