"""Corrected rankings: by hand, against one label at a time, with all pairs labelled, and their coverage."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.raters.corrected_rankings import (
    GradedPairs,
    _balance,
    _prepare_drawing,
    average_queries,
    correct_queries,
)
from rageval_spec.statistics.weighted_clusters import lay_out_clusters

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
SIZE = 4
"""The pairs of each query, in the order of a ranking."""


def precision(grades: Ints) -> Floats:
    """The share of relevant documents among the first two of each query."""
    found: Floats = (grades.reshape(-1, SIZE)[:, :2] > 0).mean(axis=1)
    return found


def reciprocal_rank(grades: Ints) -> Floats:
    relevant = grades.reshape(-1, SIZE) > 0
    return np.where(relevant.any(axis=1), 1 / (1 + relevant.argmax(axis=1)), 0.0)


def both(grades: Ints, rows: Ints) -> Floats:
    """Both measures, and nonsense for the queries that are not asked for."""
    found = np.array([precision(grades), reciprocal_rank(grades)])
    asked = np.isin(np.arange(len(grades) // SIZE), rows // SIZE)
    return np.where(asked, found, 99.0)


def make_pairs(
    random: np.random.Generator, queries: int, labelled: float, *, has_relevant: bool = False
) -> GradedPairs:
    size = queries * SIZE
    truth = random.integers(0, 3, size)
    judged = np.where(random.random(size) < 0.3, random.integers(0, 3, size), truth)
    if has_relevant:
        truth[::SIZE] = 1
    people = np.where(random.random(size) < labelled, truth.astype(float), np.nan)
    strata = np.tile(np.arange(SIZE) // 2, queries)
    return GradedPairs(
        np.repeat(np.arange(queries), SIZE), judged, strata, people, np.full(size, 1 / labelled), has_relevant
    )


def test_a_mean_and_its_interval_by_hand() -> None:
    # The queries vary by (1/3) / 4 = 1/12 around 0.5. One query is moved by 0.4, so the mean by 0.1, with the variance
    # 0.04 / 4. Its share of the squares is 0.09 of 0.12: 0.12**2 / 0.0084 = 1.714 queries carry them.
    numbers = np.array([*[[1.0, 0.0, 1.0, 0.0]] * 20, [0.0, 0.0, 0.4, 0.0]])
    value, interval, p_value = average_queries(numbers, lay_out_clusters("abcd"), 0.95)
    assert value == pytest.approx(0.6)
    degrees = math.floor((1 / 12 + 0.01) ** 2 / ((1 / 12) ** 2 / 3 + 0.01**2 / (1 + 0.12**2 / 0.0084)))
    assert degrees == 3
    half = stats.t.ppf(0.975, 3) * math.sqrt(1 / 12 + 0.01)
    assert (interval.low, interval.high) == pytest.approx((0.6 - half, 0.6 + half))
    assert p_value == pytest.approx(2 * stats.t.sf(0.6 / math.sqrt(1 / 12 + 0.01), 3))


def test_queries_of_a_cluster_are_not_independent() -> None:
    numbers = np.array([*[[1.0, 1.0, 0.0, 0.0, 1.0, 1.0]] * 20, [0.0] * 6])
    apart = average_queries(numbers, lay_out_clusters(range(6)), 0.95)[1]
    together = average_queries(numbers, lay_out_clusters([0, 0, 1, 1, 2, 2]), 0.95)[1]
    assert together.high - together.low > 1.3 * (apart.high - apart.low)


def test_with_labels_of_all_pairs_it_is_the_measure_of_peoples_grades() -> None:
    pairs = make_pairs(np.random.default_rng(1), 20, 1.0)
    found = correct_queries(pairs, both, 0)
    people = pairs.people.astype(int)
    for numbers, wanted in zip(found, (precision(people), reciprocal_rank(people)), strict=True):
        assert (numbers[:-1] == wanted).all() and (numbers[-1] == 0).all()
        _, interval, _ = average_queries(numbers, lay_out_clusters(range(20)), 0.95)
        low, high = stats.t.interval(0.95, 19, wanted.mean(), stats.sem(wanted))
        assert (interval.low, interval.high) == pytest.approx((low, high))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), labelled=st.sampled_from([0.1, 0.4, 0.9]), has_relevant=st.booleans())
def test_it_is_what_one_label_at_a_time_gives(seed: int, labelled: float, *, has_relevant: bool) -> None:
    pairs = make_pairs(np.random.default_rng(seed), 6, labelled, has_relevant=has_relevant)
    rows = np.flatnonzero(~np.isnan(pairs.people))
    found = correct_queries(pairs, both, seed)
    draw = _prepare_drawing(pairs, rows, np.random.default_rng(seed))
    moves = np.zeros((2, 6))
    for number in range(20):
        grades, others = draw()
        assert (grades[rows] == pairs.people[rows]).all()
        if has_relevant:
            assert (grades.reshape(-1, SIZE) > 0).any(axis=1).all()
        base = both(grades, np.arange(len(grades)))
        assert (found[:, number] == base).all()
        for row, other in zip(rows, others, strict=True):
            changed = grades.copy()
            changed[row] = other
            moves += (pairs.weights[row] - 1) * (base - both(changed, np.arange(len(grades)))) / 20
    assert found[:, -1] == pytest.approx(moves)


@given(st.lists(st.tuples(st.integers(1, 4), st.floats(0.01, 0.99)), min_size=2, max_size=8))
def test_the_balanced_odds_give_as_many_relevant_pairs_as_the_chances_say(found: list[tuple[int, float]]) -> None:
    queries = np.repeat(np.arange(len(found)), [size for size, _ in found])
    chances = np.repeat([chance for _, chance in found], [size for size, _ in found])
    factor = _balance(queries, chances, 1 - chances)
    assert 0 < factor <= 1
    odds = factor * chances / (1 - chances)
    expected = (odds / (1 + odds)).sum() + sum(float(np.prod(1 / (1 + odds[queries == one]))) for one in set(queries))
    wanted = float(chances.sum())
    assert expected == pytest.approx(max(wanted, len(found)), rel=0.01)  # at least one for each query


def test_intervals_cover_what_people_would_say_although_errors_go_with_the_rank() -> None:
    queries, hits, estimates, seeds = 60, 0, [], 150
    random = np.random.default_rng(3)
    truth = (random.random((queries, SIZE)) < [0.6, 0.4, 0.2, 0.1]).astype(int)
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        chosen = truth[random.integers(0, queries, queries)]
        wrong = random.random(chosen.shape) < [0.5, 0.3, 0.05, 0.05]
        judged = np.where(wrong, 1, chosen).ravel()
        people = np.where(random.random(chosen.size) < 0.4, chosen.ravel().astype(float), np.nan)
        # One stratum, so that drawn grades alone are wrong at each rank.
        strata, weights = np.zeros(chosen.size, dtype=int), np.full(chosen.size, 2.5)
        pairs = GradedPairs(np.repeat(np.arange(queries), SIZE), judged, strata, people, weights)
        value, interval, _ = average_queries(
            correct_queries(pairs, both, seed)[0], lay_out_clusters(range(queries)), 0.95
        )
        estimates.append(value)
        hits += interval.low <= precision(truth.ravel()).mean() <= interval.high
    assert np.mean(estimates) == pytest.approx(precision(truth.ravel()).mean(), abs=0.015)
    assert hits / seeds >= 0.93


def test_a_judge_without_an_error_on_the_labels_can_err() -> None:
    random = np.random.default_rng(5)
    judged = random.integers(0, 2, 400)
    people = np.where(random.random(400) < 0.1, judged.astype(float), np.nan)
    pairs = GradedPairs(np.repeat(np.arange(100), SIZE), judged, np.zeros(400, dtype=int), people, np.full(400, 10.0))
    low, high = stats.t.interval(0.95, 99, precision(judged).mean(), stats.sem(precision(judged)))
    widths = []
    for seed in range(20):
        numbers = correct_queries(pairs, both, seed)[0]
        assert numbers[:-1].mean(axis=1).std() > 0
        _, interval, _ = average_queries(numbers, lay_out_clusters(range(100)), 0.95)
        widths.append(interval.high - interval.low)
    assert np.mean(widths) > 1.1 * (high - low)


def test_equal_seeds_give_equal_numbers() -> None:
    pairs = make_pairs(np.random.default_rng(2), 10, 0.5)
    assert (correct_queries(pairs, both, 4) == correct_queries(pairs, both, 4)).all()
    assert (correct_queries(pairs, both, 4) != correct_queries(pairs, both, 5)).any()
