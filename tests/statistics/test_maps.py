"""Maps of a judge's values: against scikit-learn, at the ends, and through a file."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from rageval_spec.statistics.maps import IsotonicMap, PlattMap, fit_isotonic, fit_platt, read_map

Floats = NDArray[np.float64]
GRID = np.linspace(-0.3, 1.3, 161)


def simulate(rows: int, digits: int = 3) -> tuple[Floats, Floats]:
    random = np.random.default_rng(rows)
    values = random.random(rows).round(digits)
    return values, (random.random(rows) < values**2).astype(np.float64)


@pytest.mark.parametrize(("rows", "digits"), [(10, 3), (200, 2), (500, 1), (3000, 3)])
def test_isotonic_steps_are_those_of_scikit_learn(rows: int, digits: int) -> None:
    values, labels = simulate(rows, digits)
    found = fit_isotonic(values, labels)
    assert found is not None
    expected = IsotonicRegression(out_of_bounds="clip").fit(values, labels).predict(GRID)
    assert found.apply(GRID.tolist()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rows", [10, 200, 3000])
def test_platts_curve_is_a_logistic_regression_on_labels_drawn_to_the_middle(rows: int) -> None:
    values, labels = simulate(rows)
    found = fit_platt(values, labels)
    assert found is not None
    yes = labels.sum()
    targets = np.where(labels > 0, (yes + 1) / (yes + 2), 1 / (rows - yes + 2))
    twice = np.concatenate([values, values])[:, None]
    sides = np.repeat([1, 0], rows)
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
    model.fit(twice, sides, sample_weight=np.concatenate([targets, 1 - targets]))
    assert (found.slope, found.intercept) == pytest.approx((model.coef_[0, 0], model.intercept_[0]), rel=1e-4)
    assert found.apply(GRID.tolist()) == pytest.approx(model.predict_proba(GRID[:, None])[:, 1], abs=1e-5)


def test_platt_by_hand() -> None:
    # Three yes at 1 and one no at 0: the curve goes through both targets, 4/5 at 1 and 1/3 at 0.
    found = fit_platt(np.array([1.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert found is not None
    assert found.apply([1.0, 0.0]) == pytest.approx([4 / 5, 1 / 3])


def test_isotonic_by_hand() -> None:
    # 0.2 says more than 0.4: both become their mean, 1/2; between 0.4 and 0.8 the line rises.
    found = fit_isotonic(np.array([0.2, 0.4, 0.8]), np.array([1.0, 0.0, 1.0]))
    assert found == IsotonicMap((0.2, 0.4, 0.8), (0.5, 0.5, 1.0))
    assert found.apply([0.0, 0.3, 0.6, 2.0]) == [0.5, 0.5, 0.75, 1.0]


def test_a_judge_that_makes_no_mistake_gets_a_finite_slope() -> None:
    values = np.repeat([0.1, 0.9], 50)
    found = fit_platt(values, (values > 0.5).astype(float))
    assert found is not None and 5 < found.slope < 50


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_scale_of_the_values_does_not_matter_to_platt(scale: float) -> None:
    values, labels = simulate(300)
    plain, scaled = fit_platt(values, labels), fit_platt(values * scale, labels)
    assert plain is not None and scaled is not None
    assert scaled.apply((values * scale).tolist()) == pytest.approx(plain.apply(values.tolist()), abs=1e-6)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.5] * 6, [0.0, 1.0] * 3),
        ([0.1, 0.2, 0.9], [1.0, 1.0, 0.0]),
        ([0.1, 0.9], [1.0, 1.0]),
    ],
    ids=["a constant judge", "a judge that is the wrong way round", "labels that are all the same"],
)
def test_values_that_do_not_rise_with_the_labels_have_no_map(values: list[float], labels: list[float]) -> None:
    assert fit_isotonic(np.array(values), np.array(labels)) is None
    assert fit_platt(np.array(values), np.array(labels)) is None


pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30)


@given(pairs)
def test_maps_rise_and_stay_between_0_and_1(rows: list[tuple[float, float]]) -> None:
    values, labels = np.array([value for value, _ in rows]), np.array([label for _, label in rows])
    for found in (fit_isotonic(values, labels), fit_platt(values, labels)):
        if found is not None:
            mapped = found.apply(sorted([*values.tolist(), -1.0, 0.5, 2.0]))
            assert all(a <= b + 1e-12 for a, b in itertools.pairwise(mapped))
            assert all(-1e-12 <= one <= 1 + 1e-12 for one in mapped)


@given(pairs)
def test_a_map_comes_back_from_a_file_as_it_was(rows: list[tuple[float, float]]) -> None:
    values, labels = np.array([value for value, _ in rows]), np.array([label for _, label in rows])
    for found in (fit_isotonic(values, labels), fit_platt(values, labels)):
        if found is not None:
            assert read_map(json.loads(json.dumps(found.to_json()))) == found


def test_values_far_outside_do_not_overflow() -> None:
    assert PlattMap(1e3, 0.0).apply([-1e300, 1e300]) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "a map's kind is 'platt' or 'isotonic', not None"),
        ({"kind": "platt", "slope": -1, "intercept": 0}, "'slope' (above 0)"),
        ({"kind": "platt", "slope": math.nan, "intercept": 0}, "'slope' (above 0)"),
        ({"kind": "platt", "slope": True, "intercept": 0}, "'slope' (above 0)"),
        ({"kind": "isotonic", "values": [], "results": []}, "lists of numbers"),
        ({"kind": "isotonic", "values": [0, "1"], "results": [0, 1]}, "lists of numbers"),
        ({"kind": "isotonic", "values": [0, 1], "results": [0]}, "equally long and in ascending order"),
        ({"kind": "isotonic", "values": [0, 0], "results": [0, 1]}, "equally long and in ascending order"),
        ({"kind": "isotonic", "values": [0, 1], "results": [1, 0]}, "equally long and in ascending order"),
    ],
)
def test_a_map_that_is_none_is_refused(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="map") as caught:
        read_map(content)
    assert message in str(caught.value)
