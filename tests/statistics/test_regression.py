"""Regression: by hand, against statsmodels, and what cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.regression import find_p_value, regress

Floats = NDArray[np.float64]


def simulate(seed: int) -> tuple[Floats, dict[str, Floats]]:
    """An outcome whose spread grows with the second predictor."""
    random = np.random.default_rng(seed)
    size = int(random.integers(14, 80))
    predictors: dict[str, Floats] = {"length": random.normal(size=size) * 100, "place": random.random(size)}
    outcome: Floats = predictors["length"] / 1000 + random.normal(size=size) * (1 + predictors["place"])
    return outcome, predictors


def test_a_line_by_hand() -> None:
    # (0, 0), (1, 1), (2, 0), (3, 3): slope = sum((x - 1.5)(y - 1)) / sum((x - 1.5)^2) = 4 / 5
    (effect,) = regress(np.array([0.0, 1.0, 0.0, 3.0]), {"x": np.array([0.0, 1.0, 2.0, 3.0])})
    assert effect.slope == pytest.approx(0.8)
    assert effect.interval.low < 0.8 < effect.interval.high


@pytest.mark.parametrize("seed", range(8))
def test_errors_of_unequal_spread_are_statsmodels_hc3(seed: int) -> None:
    outcome, predictors = simulate(seed)
    design = sm.add_constant(np.column_stack([*predictors.values()]))
    expected = sm.OLS(outcome, design).fit(cov_type="HC3", use_t=True)
    for place, effect in enumerate(regress(outcome, predictors), 1):
        assert effect.slope == pytest.approx(expected.params[place], abs=1e-10)
        assert effect.error == pytest.approx(expected.bse[place], abs=1e-10)
        assert (effect.interval.low, effect.interval.high) == pytest.approx(tuple(expected.conf_int()[place]), rel=1e-4)
        assert effect.p_value == pytest.approx(expected.pvalues[place], rel=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_errors_of_rows_that_belong_together_are_statsmodels(seed: int) -> None:
    outcome, predictors = simulate(seed)
    groups = np.arange(len(outcome)) % 11
    design = sm.add_constant(np.column_stack([*predictors.values()]))
    expected = sm.OLS(outcome, design).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    for place, effect in enumerate(regress(outcome, predictors, list(groups)), 1):
        assert effect.error == pytest.approx(expected.bse[place], abs=1e-10)
        assert effect.p_value == pytest.approx(expected.pvalues[place], rel=1e-3)
        assert effect.interval.method == "cluster-robust"


def test_predictors_that_tell_nothing_of_their_own_are_left_out() -> None:
    outcome, predictors = simulate(1)
    twice = {**predictors, "same": 3 * predictors["length"] + 5, "constant": np.full(len(outcome), 7.0)}
    assert regress(outcome, twice) == regress(outcome, predictors)


def test_too_few_rows_or_clusters_have_no_effects() -> None:
    outcome, predictors = simulate(1)
    few = {name: numbers[:4] for name, numbers in predictors.items()}
    assert regress(outcome[:4], few) == ()
    assert regress(outcome, predictors, ["a", "b"] * (len(outcome) // 2) + ["a"] * (len(outcome) % 2)) == ()
    assert regress(outcome, {}) == ()


@pytest.mark.parametrize(("t", "degrees"), [(0.3, 1), (2.5, 1), (2.5, 4), (1.0, 30), (5.0, 100)])
def test_p_values_are_scipys(t: float, degrees: int) -> None:
    assert find_p_value(t, degrees) == pytest.approx(2 * stats.t.sf(t, degrees), rel=1e-3)


def test_p_values_at_the_ends() -> None:
    assert find_p_value(0.0, 10) == 1.0
    assert find_p_value(1e9, 10) == 0.0
