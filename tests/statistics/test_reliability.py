"""Calibration errors: by hand, without what chance adds, with intervals that cover; the parts of the Brier score."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import brier_score_loss, log_loss

from rageval_spec.statistics.reliability import list_bins, measure_error, rate_values, split_brier

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
