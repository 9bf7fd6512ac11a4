"""Regression: by hand, against statsmodels, and what cannot be told apart.

Coefficients of association: by hand, against scipy, and in resamples.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.regression import (
    MOST_PAIRED,
    associate,
    find_determined,
    rank,
    regress,
    sum_groups,
)

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


def leave_out(outcome: Floats, design: Floats, groups: NDArray[np.int64], weights: Floats | None = None) -> Floats:
    """The standard errors of the jackknife, from statsmodels' fits without one cluster at a time."""
    weights = np.ones(len(outcome)) if weights is None else weights
    whole = sm.WLS(outcome, design, weights=weights).fit().params
    moves = []
    for group in np.unique(groups):
        rest = groups != group
        moves.append(sm.WLS(outcome[rest], design[rest], weights=weights[rest]).fit().params - whole)
    errors: Floats = np.sqrt((len(moves) - 1) / len(moves) * np.sum(np.square(moves), axis=0))
    return errors


@pytest.mark.parametrize("seed", range(8))
def test_errors_of_rows_that_belong_together_are_those_of_fits_without_each_cluster(seed: int) -> None:
    outcome, predictors = simulate(seed)
    groups = np.minimum(np.arange(len(outcome)) % 19, 13)
    design = sm.add_constant(np.column_stack([*predictors.values()]))
    expected = leave_out(outcome, design, groups)
    degrees = len(set(groups)) - 1
    for place, effect in enumerate(regress(outcome, predictors, list(groups)), 1):
        assert effect.error == pytest.approx(expected[place], abs=1e-10)
        assert effect.p_value == pytest.approx(2 * stats.t.sf(abs(effect.slope) / effect.error, degrees), rel=1e-3)
        assert effect.interval.method == "cluster jackknife"


def test_with_many_clusters_errors_are_statsmodels_cluster_robust_ones() -> None:
    random = np.random.default_rng(4)
    groups = np.repeat(np.arange(2000), 2)
    predictors = {"length": random.normal(size=4000), "place": random.random(4000)}
    outcome = predictors["length"] + random.normal(size=2000)[groups] + random.normal(size=4000)
    design = sm.add_constant(np.column_stack([*predictors.values()]))
    expected = sm.OLS(outcome, design).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    for place, effect in enumerate(regress(outcome, predictors, list(groups)), 1):
        assert effect.error == pytest.approx(expected.bse[place], rel=2e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_clustered", [False, True])
def test_rows_that_count_differently_are_statsmodels(seed: int, is_clustered: bool) -> None:
    outcome, predictors = simulate(seed)
    weights = np.random.default_rng(seed).uniform(0.2, 5, len(outcome))
    groups = np.arange(len(outcome)) % 11
    design = sm.add_constant(np.column_stack([*predictors.values()]))
    fit = sm.WLS(outcome, design, weights=weights).fit(cov_type="HC3", use_t=True)
    errors = leave_out(outcome, design, groups, weights) if is_clustered else fit.bse
    for place, effect in enumerate(regress(outcome, predictors, list(groups) if is_clustered else None, weights), 1):
        assert effect.slope == pytest.approx(fit.params[place], abs=1e-10)
        assert effect.error == pytest.approx(errors[place], abs=1e-10)


def test_a_row_that_alone_has_a_property_does_not_blur_the_others() -> None:
    outcome, predictors = simulate(2)
    alone = np.zeros(len(outcome))
    alone[3] = 1.0
    with_it = {effect.name: effect for effect in regress(outcome, {**predictors, "alone": alone})}
    without = regress(np.delete(outcome, 3), {name: np.delete(one, 3) for name, one in predictors.items()})
    for effect in without:
        assert with_it[effect.name].slope == pytest.approx(effect.slope)
        assert with_it[effect.name].error == pytest.approx(effect.error)


def test_rounding_is_no_effect() -> None:
    _, predictors = simulate(3)
    both = [*predictors.values()]
    first, second = regress(0.25 * both[0], predictors)
    assert first.slope == pytest.approx(0.25)
    assert first.p_value == 0.0
    assert (second.slope, second.error, second.p_value) == (0.0, 0.0, 1.0)
    for effect in regress(np.zeros(len(both[0])), predictors):
        assert (effect.slope, effect.p_value) == (0.0, 1.0)


def test_what_determines_a_predictor_is_named() -> None:
    _, predictors = simulate(1)
    size = len(predictors["length"])
    both = predictors["length"] - 2 * predictors["place"]
    more = {**predictors, "same": 3 * predictors["length"] + 5, "both": both, "constant": np.full(size, 7.0)}
    assert find_determined(more) == {"same": ("length",), "both": ("length", "place"), "constant": ()}
    assert find_determined({}) == {}


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


def find(
    judged: Floats | list[float], labelled: Floats | list[float], weights: Floats | None = None
) -> dict[str, float]:
    first, second = np.array(judged, dtype=float), np.array(labelled, dtype=float)
    counts = np.ones((1, len(first))) if weights is None else weights
    return {name: float(statistic(counts)[0]) for name, statistic in associate(first, second).items()}


def test_four_rows_by_hand() -> None:
    # Means 0.5 and 0.625. Of the six pairs, four are in the same order, one in the opposite one, and one is tied in
    # the labels: tau-b = (4 - 1) / sqrt(6 * 5).
    found = find([0.2, 0.4, 0.6, 0.8], [0.0, 1.0, 0.5, 1.0])
    assert found["kendall"] == pytest.approx(3 / 30**0.5)
    assert found["mae"] == pytest.approx((0.2 + 0.6 + 0.1 + 0.2) / 4)
    assert found["bias"] == pytest.approx((2.0 - 2.5) / 4)
    assert found["pearson"] == pytest.approx(0.25 / (0.2 * 0.6875) ** 0.5)


numbers = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=12)


@given(numbers)
def test_tau_is_that_of_all_pairs(rows: list[tuple[int, int]]) -> None:
    pairs = [(np.sign(a[0] - b[0]), np.sign(a[1] - b[1])) for a, b in itertools.combinations(rows, 2)]
    same = sum(int(x * y) for x, y in pairs)
    spread = sum(int(x != 0) for x, _ in pairs) * sum(int(y != 0) for _, y in pairs)
    judged, labelled = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    expected = same / spread**0.5 if spread else np.nan
    assert find(judged, labelled)["kendall"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(10))
def test_coefficients_are_scipys_for_the_rows_and_for_a_resample(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(6, 80))
    judged = np.round(random.normal(size=size), 1)
    labelled = np.round(judged + random.normal(size=size), 1)
    drawn = random.integers(0, size, size)
    weights = np.bincount(drawn, minlength=size)[None].astype(float)
    for counts, first, second in ((None, judged, labelled), (weights, judged[drawn], labelled[drawn])):
        found = find(judged, labelled, counts)
        assert found["pearson"] == pytest.approx(stats.pearsonr(first, second)[0], abs=1e-12)
        assert found["spearman"] == pytest.approx(stats.spearmanr(first, second)[0], abs=1e-12)
        assert found["kendall"] == pytest.approx(stats.kendalltau(first, second)[0], abs=1e-12)


def test_a_series_that_does_not_vary_has_no_correlation() -> None:
    found = find([0.5, 0.5, 0.5], [0.0, 1.0, 1.0])
    assert all(np.isnan(found[name]) for name in ("pearson", "spearman", "kendall"))
    assert found["bias"] == pytest.approx(-1 / 6)


def test_copies_and_ties_share_their_mean_rank() -> None:
    ranks = rank(np.array([0.3, 0.1, 0.3]), np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]]))
    assert ranks.tolist() == [[2.5, 1.0, 2.5], [2.5, 1.0, 2.5]]


def test_weights_of_groups_are_summed() -> None:
    assert sum_groups(np.array([[1.0, 2.0, 3.0]]), np.array([1, 0, 1])).tolist() == [[2.0, 4.0]]


def test_too_many_rows_have_no_tau() -> None:
    many = np.arange(MOST_PAIRED + 1.0)
    found = find(many, many)
    assert np.isnan(found["kendall"])
    assert found["spearman"] == pytest.approx(1.0)


@pytest.mark.parametrize("levels", [2, 5, 40, 400])
@pytest.mark.parametrize("turned", [False, True])
def test_tau_of_labels_with_few_levels_is_scipys(levels: int, turned: bool) -> None:
    random = np.random.default_rng(levels)
    labels = random.integers(0, levels, 400).astype(float)
    values = (labels / levels + random.normal(0, 0.5, 400)).round(2)
    first, second = (labels, values) if turned else (values, labels)
    drawn = random.integers(0, 400, 400)
    weights = np.stack([np.ones(400), np.bincount(drawn, minlength=400)]).astype(float)
    found = associate(first, second)["kendall"](weights)
    expected = [stats.kendalltau(first, second).statistic, stats.kendalltau(first[drawn], second[drawn]).statistic]
    assert found == pytest.approx(expected, abs=1e-12)
