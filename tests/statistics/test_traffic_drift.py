"""Drift of questions, against scipy, slow references, and simulated traffic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rageval_spec.statistics.traffic_drift import (
    _measure_discrepancy,
    compare_categories,
    compare_embeddings,
    compare_lengths,
    find_new_kinds,
    select_discoveries,
)


def test_the_discrepancy_of_four_questions_worked_by_hand() -> None:
    # On a line at 0, 0, 1 and 1 the median of the squared distances 0, 1, 1, 1, 1, 0 is 1, so that the kernel is
    # exp(-1/2) across and 1 within.
    found = compare_embeddings(np.array([[0.0], [0.0]]), np.array([[1.0], [1.0]]), permutations=50)
    assert found is not None and found.distance == pytest.approx(2 - 2 * math.exp(-0.5))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=5, max_size=9), st.integers(2, 3))
def test_the_discrepancy_equals_the_slow_reference(points: list[float], first: int) -> None:
    kernel = np.exp(-(np.subtract.outer(points, points) ** 2))
    np.fill_diagonal(kernel, 0.0)
    sides = range(first), range(first, len(points))
    within = [sum(kernel[i, j] for i in own for j in own) / (len(own) * (len(own) - 1)) for own in sides]
    across = sum(kernel[i, j] for i in sides[0] for j in sides[1]) / (len(sides[0]) * len(sides[1]))
    is_first = (np.arange(len(points)) < first)[None, :].astype(float)
    assert _measure_discrepancy(kernel, is_first)[0] == pytest.approx(sum(within) - 2 * across)


def test_a_shift_of_embeddings_is_found_and_none_seldom() -> None:
    random = np.random.default_rng(1)
    alarms = 0
    for seed in range(40):
        first, second = random.normal(size=(2, 60, 5))
        found = compare_embeddings(first, second, permutations=99, seed=seed)
        assert found is not None
        alarms += found.p_value <= 0.05
    assert alarms <= 6
    moved = compare_embeddings(first, second + 0.6, permutations=99)
    assert moved is not None and moved.p_value == 0.01
    assert compare_embeddings(first, second, sample=40, seed=3) == compare_embeddings(first, second, sample=40, seed=3)
    assert compare_embeddings(first[:1], second) is None


def test_new_kinds_of_question_are_named_and_old_ones_seldom() -> None:
    random = np.random.default_rng(2)
    kinds = np.eye(8)[:5] * 5
    old = kinds[random.integers(0, 5, 900)] + random.normal(0, 0.5, (900, 8))
    new = np.eye(8)[6] * 5 + random.normal(0, 0.5, (20, 8))
    found = find_new_kinds(old[:800], np.concatenate([old[800:], new]))
    assert found is not None
    assert set(range(100, 120)) <= set(found.places) and len(found.places) <= 25
    assert found.p_values[100:].max() == pytest.approx(1 / 401)
    assert list(found.places) == sorted(found.places, key=lambda at: -found.distances[at])
    quiet = find_new_kinds(old[:800], old[800:])
    assert quiet is not None and len(quiet.places) <= 2
    assert find_new_kinds(old[:1], old) is None
    empty = find_new_kinds(old, old[:0])
    assert empty is not None and empty.places == ()


def test_conformal_p_values_are_uniform_without_new_kinds() -> None:
    random = np.random.default_rng(3)
    p_values = []
    for seed in range(60):
        rows = random.normal(size=(60, 3))
        found = find_new_kinds(rows[:50], rows[50:], seed=seed)
        assert found is not None
        p_values += found.p_values.tolist()
    assert np.mean(np.array(p_values) <= 0.2) == pytest.approx(0.2, abs=0.05)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.01, 0.5))
def test_discoveries_are_scipys(p_values: list[float], share: float) -> None:
    adjusted = stats.false_discovery_control(p_values)
    if np.abs(adjusted - share).min() > 1e-9:
        assert select_discoveries(np.array(p_values), share) == np.flatnonzero(adjusted <= share).tolist()


def test_categories_are_compared_as_by_fishers_exact_test() -> None:
    before, now = ["de"] * 15 + ["en"] * 5, ["de"] * 9 + ["en"] * 11
    found = compare_categories(before, now, permutations=20_000)
    exact = stats.fisher_exact(np.array([[15, 5], [9, 11]])).pvalue
    assert found is not None
    assert found.distance == pytest.approx(0.3)
    assert found.p_value == pytest.approx(exact, abs=0.01)
    assert [name for name, _ in found.moved] == ["de", "en"]
    assert [change for _, change in found.moved] == pytest.approx([-0.3, 0.3])
    assert compare_categories([], ["de"]) is None
    new = compare_categories(["de"] * 50, ["de"] * 30 + ["fr"] * 20)
    assert new is not None and new.p_value == 0.001 and dict(new.moved) == pytest.approx({"de": -0.4, "fr": 0.4})


def test_lengths_are_compared_by_the_quantiles_of_the_baseline() -> None:
    found = compare_lengths(range(1, 101), range(51, 151), parts=2)
    assert found is not None
    assert found.distance == pytest.approx(0.5) and found.p_value == 0.001
    same = compare_lengths(range(1, 101), range(1, 101))
    assert same is not None and (same.distance, same.p_value) == (0.0, 1.0)
    assert compare_lengths([], [1]) is None
