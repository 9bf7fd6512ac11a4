"""Calibration errors: by hand, without what chance adds, with intervals that cover; the parts of the Brier score.

Maps of a judge's values: against scikit-learn, at the ends, and through a file.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import TypeAdapter
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

from rageval_spec.data.judge_calibration import ScoreMap
from rageval_spec.statistics.raters.reliability_curves import (
    fit_isotonic,
    fit_platt,
    list_bins,
    measure_error,
    rate_values,
    split_brier,
)

Floats = NDArray[np.float64]


def simulate(rows: int, seed: int, off: float = 0.0) -> tuple[Floats, Floats]:
    """A judge whose values are `off` above the share of yes."""
    random = np.random.default_rng(seed)
    shares = random.uniform(0, 1 - off, rows)
    return shares + off, (random.random(rows) < shares).astype(np.float64)


def test_bins_by_hand() -> None:
    found = list_bins(np.array([0.0, 0.05, 0.1, 0.3, 0.1 + 0.2, 1.0]), np.array([0.0, 1.0, 1.0, 0.0, 0.5, 1.0]))
    assert [(one.low, one.high, one.count, one.label) for one in found] == [
        (0.0, 0.1, 2, 0.5),
        (0.1, 0.2, 1, 1.0),
        (0.3, 0.4, 2, 0.25),
        (0.9, 1.0, 1, 1.0),
    ]
    assert found[0].value == pytest.approx(0.025)


def test_the_plain_error_by_hand() -> None:
    # Two rows with 0.2 of which one is right, two with 0.9 that are wrong: (0.3 * 2 + 0.9 * 2) / 4.
    found = measure_error(np.array([0.2, 0.2, 0.9, 0.9]), np.array([0.0, 1.0, 0.0, 0.0]))
    assert found.plain == pytest.approx(0.6)


def test_bins_of_equal_mass_keep_equal_values_together() -> None:
    values = np.array([0.5] * 30 + [0.51] * 10)
    labels = np.array([1.0, 0.0] * 15 + [1.0] * 10)
    # |0.5 - 0.5| * 3/4 + |0.51 - 1| * 1/4.
    assert measure_error(values, labels, binning="mass").plain == pytest.approx(0.49 / 4)


def test_a_perfect_judge_has_a_plain_error_but_none_without_chance() -> None:
    found = [measure_error(*simulate(100, seed)) for seed in range(100)]
    assert np.mean([one.plain for one in found]) > 0.08
    assert np.median([one.value for one in found]) < 0.01
    assert np.mean([one.interval is not None and one.interval.low == 0 for one in found]) > 0.93


@pytest.mark.parametrize("off", [0.05, 0.2])
@pytest.mark.parametrize("binning", ["width", "mass"])
def test_intervals_cover_the_error(off: float, binning: str) -> None:
    hits = 0
    for seed in range(200):
        found = measure_error(*simulate(150, seed, off), binning=binning)  # type: ignore[arg-type]
        assert found.interval is not None
        hits += found.interval.low <= off <= found.interval.high
    assert hits / 200 >= 0.87


def test_answers_to_one_question_count_together() -> None:
    values, labels = simulate(60, 1, 0.2)
    once = measure_error(values, labels)
    names = [str(place) for place in range(60) for _ in range(5)]
    together = measure_error(np.repeat(values, 5), np.repeat(labels, 5), clusters=names)
    apart = measure_error(np.repeat(values, 5), np.repeat(labels, 5))
    assert once.interval is not None and together.interval is not None and apart.interval is not None
    assert together.interval.high - together.interval.low == pytest.approx(
        once.interval.high - once.interval.low, abs=0.02
    )
    assert apart.interval.high - apart.interval.low < 0.7 * (once.interval.high - once.interval.low)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_labels_that_do_not_vary_give_no_interval(label: float) -> None:
    found = measure_error(np.array([0.4, 0.4, 0.4]), np.full(3, label))
    assert found.value == pytest.approx(abs(0.4 - label))
    assert found.interval is None


def test_labels_that_are_all_the_same_leave_the_chance_of_the_values() -> None:
    values = np.random.default_rng(1).random(100)
    found = measure_error(values, np.ones(100))
    assert found.interval is not None
    half = 1.96 * values.std() / 10
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (1 - values.mean() - half, 1 - values.mean() + half), abs=0.015
    )


def test_an_error_is_at_most_1() -> None:
    found = measure_error(np.ones(5), np.array([0.0, 0.0, 0.0, 0.0, 0.5]))
    assert found.interval is not None
    assert found.interval.low < found.value <= found.interval.high == 1.0


def test_losses_are_those_of_scikit_learn() -> None:
    values, labels = simulate(300, 2)
    values = values.clip(0.01, 0.99)
    found = {name: float(rate(np.ones((1, 300)))[0]) for name, rate in rate_values(values, labels).items()}
    assert found == pytest.approx({"brier": brier_score_loss(labels, values), "log_loss": log_loss(labels, values)})


def test_a_wrong_value_of_1_has_a_finite_loss() -> None:
    found = rate_values(np.array([1.0]), np.array([0.0]))["log_loss"](np.ones((1, 1)))
    assert found == pytest.approx(-np.log(0.001))


def test_the_parts_of_the_brier_score_add_up() -> None:
    values, labels = simulate(4000, 3, 0.2)
    parts = split_brier(values, labels)
    assert parts.miscalibration - parts.discrimination + parts.uncertainty == pytest.approx(
        brier_score_loss(labels, values)
    )
    assert parts.miscalibration > 0.03
    assert parts.uncertainty == pytest.approx(labels.var())


def test_a_judge_that_always_says_the_mean_discriminates_nothing() -> None:
    parts = split_brier(np.full(4, 0.5), np.array([0.0, 1.0, 0.0, 1.0]))
    assert (parts.miscalibration, parts.discrimination, parts.uncertainty) == (0.0, 0.0, 0.25)


def test_an_error_that_is_small_by_chance_is_not_known_to_be_0() -> None:
    values = np.repeat(np.arange(1, 20, 2) / 20, 10)
    labels = np.concatenate([[1.0] * count + [0.0] * (10 - count) for count in (0, 2, 2, 4, 4, 6, 6, 8, 8, 10)])
    error = measure_error(values, labels)
    assert error.interval is not None
    assert (error.value, error.interval.low) == (0.0, 0.0)
    assert error.interval.high > 0.05


GRID = np.linspace(-0.3, 1.3, 161)


def simulate_mapped(rows: int, digits: int = 3) -> tuple[Floats, Floats]:
    random = np.random.default_rng(rows)
    values = random.random(rows).round(digits)
    return values, (random.random(rows) < values**2).astype(np.float64)


@pytest.mark.parametrize(("rows", "digits"), [(10, 3), (200, 2), (500, 1), (3000, 3)])
def test_isotonic_steps_are_those_of_scikit_learn(rows: int, digits: int) -> None:
    values, labels = simulate_mapped(rows, digits)
    found = fit_isotonic(values, labels)
    assert found is not None
    expected = IsotonicRegression(out_of_bounds="clip").fit(values, labels).predict(GRID)
    assert [*map(found.apply, GRID.tolist())] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rows", [10, 200, 3000])
def test_platts_curve_is_a_logistic_regression_on_labels_drawn_to_the_middle(rows: int) -> None:
    values, labels = simulate_mapped(rows)
    found = fit_platt(values, labels)
    assert found is not None
    yes = labels.sum()
    targets = np.where(labels > 0, (yes + 1) / (yes + 2), 1 / (rows - yes + 2))
    twice = np.concatenate([values, values])[:, None]
    sides = np.repeat([1, 0], rows)
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
    model.fit(twice, sides, sample_weight=np.concatenate([targets, 1 - targets]))
    assert (found.slope, found.intercept) == pytest.approx((model.coef_[0, 0], model.intercept_[0]), rel=1e-4)
    assert [*map(found.apply, GRID.tolist())] == pytest.approx(model.predict_proba(GRID[:, None])[:, 1], abs=1e-5)


def test_platt_by_hand() -> None:
    # Three yes at 1 and one no at 0: the curve goes through both targets, 4/5 at 1 and 1/3 at 0.
    found = fit_platt(np.array([1.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert found is not None
    assert [*map(found.apply, [1.0, 0.0])] == pytest.approx([4 / 5, 1 / 3])


def test_isotonic_by_hand() -> None:
    # 0.2 says more than 0.4: both become their mean, 1/2; between 0.4 and 0.8 the line rises.
    found = fit_isotonic(np.array([0.2, 0.4, 0.8]), np.array([1.0, 0.0, 1.0]))
    assert found == ScoreMap("isotonic", values=(0.2, 0.4, 0.8), results=(0.5, 0.5, 1.0))
    assert [*map(found.apply, [0.0, 0.3, 0.6, 2.0])] == [0.5, 0.5, 0.75, 1.0]


def test_a_judge_that_makes_no_mistake_gets_a_finite_slope() -> None:
    values = np.repeat([0.1, 0.9], 50)
    found = fit_platt(values, (values > 0.5).astype(float))
    assert found is not None and 5 < (found.slope or 0) < 50


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_scale_of_the_values_does_not_matter_to_platt(scale: float) -> None:
    values, labels = simulate_mapped(300)
    plain, scaled = fit_platt(values, labels), fit_platt(values * scale, labels)
    assert plain is not None and scaled is not None
    wanted = [*map(plain.apply, values.tolist())]
    assert [*map(scaled.apply, (values * scale).tolist())] == pytest.approx(wanted, abs=1e-6)


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
            mapped = [*map(found.apply, sorted([*values.tolist(), -1.0, 0.5, 2.0]))]
            assert all(a <= b + 1e-12 for a, b in itertools.pairwise(mapped))
            assert all(-1e-12 <= one <= 1 + 1e-12 for one in mapped)


@given(pairs)
def test_a_map_comes_back_from_a_file_as_it_was(rows: list[tuple[float, float]]) -> None:
    values, labels = np.array([value for value, _ in rows]), np.array([label for _, label in rows])
    for found in (fit_isotonic(values, labels), fit_platt(values, labels)):
        if found is not None:
            assert TypeAdapter(ScoreMap).validate_json(json.dumps(asdict(found))) == found


def test_values_far_outside_do_not_overflow() -> None:
    assert [*map(ScoreMap("platt", 1e3, 0.0).apply, [-1e300, 1e300])] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "platt", "slope": -1, "intercept": 0}, "'slope' (above 0)"),
        ({"kind": "platt", "slope": math.nan, "intercept": 0}, "'slope' (above 0)"),
        ({"kind": "platt", "slope": 1}, "'intercept'"),
        ({"kind": "isotonic"}, "equally long and in ascending order"),
        ({"kind": "isotonic", "values": (0, 1), "results": (0,)}, "equally long and in ascending order"),
        ({"kind": "isotonic", "values": (0, 0), "results": (0, 1)}, "equally long and in ascending order"),
        ({"kind": "isotonic", "values": (0, 1), "results": (1, 0)}, "equally long and in ascending order"),
        ({"kind": "isotonic", "values": (0, math.inf), "results": (0, 1)}, "equally long and in ascending order"),
    ],
)
def test_a_map_that_is_none_is_refused(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="map") as caught:
        ScoreMap(**content)
    assert message in str(caught.value)
