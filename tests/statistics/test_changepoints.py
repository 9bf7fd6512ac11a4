"""Changes of level are found where they are, and seldom where there are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from rageval_spec.statistics.changepoints import ALPHA, SHORTEST, _bound_chance, _measure, find_changes


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
    assert sum(bool(find_changes(list(draws[draw]()), seed=seed)) for seed in range(400)) <= 11


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
