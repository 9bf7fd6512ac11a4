"""Intervals of means: three oracles, the ends, and what has no interval."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rageval_spec.data.outcomes import Interval
from rageval_spec.statistics.intervals import EXACT, Resampling, compute_exact_interval
from rageval_spec.statistics.mean_intervals import (
    BOOTSTRAP,
    GAFFKE,
    MeanValues,
    average_means,
    compute_difference_range,
    compute_mean_interval,
    compute_mean_intervals,
    compute_range,
    count_needed,
    subtract_means,
)
from rageval_spec.statistics.weighted_clusters import lay_out_clusters

SETTINGS = Resampling(resamples=2000, seed=1)
UNIT = (0.0, 1.0)


def bound(values: Sequence[float], of: tuple[float, float | None] | None = UNIT, **more: object) -> Interval:
    found = compute_mean_interval(MeanValues(array("d", values), of, **more), SETTINGS)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [
        (5, 5, 0.025**0.2, 1.0),  # low**5 == 0.025
        (2, 2, 0.025**0.5, 1.0),
        (0, 40, 0.0, 1 - 0.025 ** (1 / 40)),
        (4, 5, 0.283582063881911, 0.9949492366205319),
        (49, 50, 0.8935304542884994, 0.9994937720169592),
    ],
)
def test_right_and_wrong_have_the_exact_interval(right: int, total: int, low: float, high: float) -> None:
    """The last two: `scipy.stats.binomtest(right, total).proportion_ci()`, equal to R's `binom.test`."""
    found = bound([1.0] * right + [0.0] * (total - right))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    assert found.method == EXACT
    share = compute_exact_interval(right, total)
    assert share is not None
    assert (share.low, share.high) == pytest.approx((low, high), abs=1e-9)


def test_equal_grades_could_have_been_others() -> None:
    """By hand: one of n + 1 values is at the end of the range, with a weight of at most 1 - 0.025**(1/n)."""
    found, weight = bound([0.75] * 10), 1 - 0.025 ** (1 / 10)
    assert (found.low, found.high) == pytest.approx((0.75 * (1 - weight), 0.75 + 0.25 * weight), abs=1e-9)
    assert found.method == GAFFKE


def test_one_grade_that_differs_does_not_narrow_the_interval() -> None:
    equal, nearly = bound([1.0] * 20), bound([1.0] * 19 + [0.99])
    assert nearly.low == pytest.approx(equal.low, abs=0.001)
    assert nearly.low < equal.low


def draw_ends(values: Sequence[float], seed: int) -> tuple[float, float]:
    """The slow reference: quantiles of random means of the values and one more, the end of the range."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(values) + 1), 40_000)
    low = np.quantile(weights @ np.array([*values, 0.0]), 0.025)
    high = np.quantile(weights @ np.array([*values, 1.0]), 0.975)
    return float(low), float(high)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 0.5]) | st.floats(0, 1), min_size=2, max_size=30))
@example([1.0] * 29 + [0.0])
@example([0.5, 0.5])
def test_the_ends_are_those_of_random_means(values: list[float]) -> None:
    found = bound(values)
    assert (found.low, found.high) == pytest.approx(draw_ends(values, 5), abs=0.02)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40), st.randoms(use_true_random=False))
def test_every_interval_holds_its_mean_and_has_a_width(values: list[float], chance: random.Random) -> None:
    found, mean = bound(values), math.fsum(values) / len(values)
    assert 0 <= found.low <= mean + 1e-9
    assert mean - 1e-9 <= found.high <= 1
    assert found.low < found.high
    shuffled = chance.sample(values, len(values))
    assert bound(shuffled) == found


def test_a_share_is_held_in_most_sets_of_every_size() -> None:
    """Over all possible counts, with their probabilities: the promise of `benches/intervals.md`."""
    for total in (5, 10, 30):
        intervals = [bound([1.0] * hits + [0.0] * (total - hits)) for hits in range(total + 1)]
        for share in (0.5, 0.9, 0.95, 0.98, 0.99):
            chance = [math.comb(total, hits) * share**hits * (1 - share) ** (total - hits) for hits in range(total + 1)]
            held = sum(p for p, one in zip(chance, intervals, strict=True) if one.low <= share <= one.high)
            false = sum(p for p, one in zip(chance, intervals, strict=True) if one.low > share)
            assert held >= 0.95
            assert false <= 0.025


def test_rare_failures_are_held_in_grades_too() -> None:
    chance = np.random.default_rng(4)
    sets = [np.where(chance.random(20) < 0.05, 0.0, chance.beta(20, 4, 20)) for _ in range(300)]
    mean = 0.95 * 20 / 24
    found = compute_mean_intervals([MeanValues(one, UNIT) for one in sets], SETTINGS)
    held = [one is not None and one.low <= mean <= one.high for one in found]
    assert sum(held) >= 0.93 * len(held)


def test_identical_pairs_are_not_certain() -> None:
    found = bound([0.0] * 3, compute_difference_range(UNIT))
    assert (found.low, found.high) == pytest.approx((-(1 - 0.025 ** (1 / 3)), 1 - 0.025 ** (1 / 3)), abs=1e-9)


def test_values_without_a_highest_one_have_a_bootstrap_interval_wider_than_a_plain_one() -> None:
    values = [0.8, 1.0, 1.1, 1.7, 2.9, 1.2]
    found = bound(values, (0.0, None))
    assert found.method == BOOTSTRAP
    assert 0 <= found.low < min(1.1, sum(values) / 6)
    assert found.high > 2.0


@pytest.mark.parametrize("of", [(0.0, None), (-math.inf, None), None])
def test_equal_values_without_a_highest_one_have_no_interval(of: tuple[float, float | None] | None) -> None:
    assert compute_mean_interval(MeanValues(array("d", [0.3] * 5), of), SETTINGS) is None


def test_a_single_value_has_no_interval() -> None:
    assert compute_mean_interval(MeanValues(array("d", [0.3]), UNIT), SETTINGS) is None


@pytest.mark.parametrize(
    ("bounds", "statistic", "values", "expected"),
    [
        (UNIT, "mean", [0.2, 1.0], UNIT),
        (UNIT, "mean", [0.2, 1.0 + 1e-12], UNIT),
        (UNIT, "mean", [0.2, 1.3], None),  # the metric is wrong about its range
        ((0.0, None), "mean", [0.0, 1.0], (0.0, None)),
        ((-math.inf, None), "mean", [0.0, 1.0, 1.0], UNIT),  # declares nothing and says yes and no
        ((-math.inf, None), "mean", [0.0, 0.5], None),
        (None, "mean", [1.0, 1.0], UNIT),
        ((0.00001, 1.0), "geometric mean", [-3.0, -0.5], (math.log(0.00001), 0.0)),
    ],
)
def test_a_range_is_what_the_metric_declares_if_its_values_keep_to_it(
    bounds: tuple[float, float | None] | None,
    statistic: str,
    values: list[float],
    expected: tuple[float, float | None] | None,
) -> None:
    assert compute_range(bounds, statistic, values) == expected


def test_clusters_of_equal_values_count_as_clusters() -> None:
    alone = bound([1.0] * 12)
    together = bound([1.0] * 12, layout=lay_out_clusters([number // 3 for number in range(12)]))
    four = bound([1.0] * 4)
    assert together.low < alone.low
    assert together.low == pytest.approx(four.low)
    assert together.high == 1.0


def test_one_cluster_has_no_interval() -> None:
    assert (
        compute_mean_interval(MeanValues(array("d", [1.0, 0.0]), UNIT, lay_out_clusters(["a", "a"])), SETTINGS) is None
    )


def test_an_interval_depends_on_nothing_else() -> None:
    """Neither on the other means, nor on threads."""
    chance = np.random.default_rng(1)
    means = [MeanValues(chance.random(size), of) for size in (5, 9, 40) for of in (UNIT, (0.0, None))]
    together = compute_mean_intervals(means, SETTINGS, threads=3)
    assert together == [compute_mean_intervals([one], SETTINGS, threads=1)[0] for one in means]


def test_differences_and_averages_of_means_have_a_width() -> None:
    first, second = bound([1.0] * 5), bound([1.0] * 8)
    difference = subtract_means(1.0, first, 1.0, second)
    assert difference is not None
    assert (difference.low, difference.high) == pytest.approx((first.low - 1, 1 - second.low))
    average = average_means([(1.0, first), (1.0, second)])
    assert average is not None
    assert average.high == 1.0
    assert average.low == pytest.approx(1 - math.hypot(1 - first.low, 1 - second.low) / 2)
    assert average_means([(1.0, first), (1.0, None)]) is None
    assert subtract_means(1.0, None, 1.0, second) is None


def test_five_right_answers_need_about_seventy_for_a_bound_of_95_percent() -> None:
    """By hand: 0.025 ** (1 / 72) is 0.950, and 0.025 ** (1 / 71) is below."""
    low = bound([1.0] * 5).low
    assert count_needed(1.0, low, 5, 0.95, UNIT, 0.95) == pytest.approx(math.log(0.025) / math.log(0.95), rel=1e-6)


@pytest.mark.parametrize(("right", "total", "least"), [(19, 20, 0.85), (9, 10, 0.7), (45, 50, 0.8), (180, 200, 0.88)])
def test_the_number_needed_is_that_of_the_exact_interval(right: int, total: int, least: float) -> None:
    now = compute_exact_interval(right, total)
    assert now is not None
    needed = count_needed(right / total, now.low, total, least, UNIT, 0.95)
    assert needed is not None

    def end(count: float) -> float:
        found = compute_exact_interval(count * right / total, count)
        assert found is not None
        return found.low

    assert end(needed * 1.15) >= least >= end(needed / 1.15)


def test_without_a_range_the_distance_shrinks_with_the_square_root() -> None:
    assert count_needed(0.5, 0.3, 100, 0.4, None, 0.95) == pytest.approx(400)
    assert count_needed(0.5, 0.3, 100, 0.5, None, 0.95) is None
