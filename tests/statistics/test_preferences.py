"""The logistic regression of choices: against statsmodels, and where it has no answer."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.preferences import find_share, measure_choices
from rageval_spec.statistics.proportions import find_exact_interval, find_p_of_signs

Floats = NDArray[np.float64]


def draw(seed: int, rows: int = 120) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    longer = random.normal(size=rows) * 40
    is_first: Floats = (random.random(rows) < 1 / (1 + np.exp(-0.4 - 0.02 * longer))).astype(np.float64)
    return is_first, longer


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("each", [1, 3])
def test_coefficients_and_errors_are_statsmodels(seed: int, each: int) -> None:
    is_first, longer = draw(seed)
    groups = np.arange(120) // each
    expected = sm.Logit(is_first, sm.add_constant(longer)).fit(
        disp=0, cov_type="cluster", cov_kwds={"groups": groups}, method="newton", tol=1e-12
    )
    found = measure_choices(is_first, longer, list(groups))
    assert found is not None
    assert found.length is not None
    for place, one in enumerate((found.place, found.length)):
        assert one.value == pytest.approx(expected.params[place], abs=1e-9)
        assert one.error == pytest.approx(expected.bse[place], rel=1e-9)
        assert one.interval.low < one.value < one.interval.high
        degrees = len(set(groups)) - 1
        assert one.p_value == pytest.approx(2 * stats.t.sf(abs(one.value / one.error), degrees), rel=1e-3)


def test_choices_that_cannot_be_fitted_have_no_coefficients() -> None:
    is_first, longer = draw(1)
    assert measure_choices(np.ones(10), longer[:10]) is None
    assert measure_choices(np.zeros(10), longer[:10]) is None
    assert measure_choices(np.array([]), np.array([])) is None
    assert measure_choices((longer > 0).astype(np.float64), longer) is None
    assert measure_choices(is_first, longer, ["a", "b", "c", "d"] * 30) is None


def test_without_differences_in_length_there_is_only_the_place() -> None:
    found = measure_choices(np.array([1.0, 1.0, 1.0, 0.0] * 10), np.full(40, 5.0))
    assert found is not None
    assert found.length is None
    assert find_share(found.place.value) == pytest.approx(0.75)


def test_shares_of_huge_odds_are_0_or_1() -> None:
    assert find_share(1e6) == pytest.approx(1.0)
    assert find_share(-1e6) == pytest.approx(0.0)


@pytest.mark.parametrize(("count", "total"), [(0, 5), (5, 5), (3, 10), (120, 200), (1, 1)])
def test_exact_intervals_and_sign_tests_are_scipys(count: int, total: int) -> None:
    test = stats.binomtest(count, total)
    expected = test.proportion_ci(0.95, method="exact")
    found = find_exact_interval(count, total)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert find_p_of_signs(count, total) == pytest.approx(test.pvalue, rel=1e-9)


def test_nothing_has_no_interval() -> None:
    assert find_exact_interval(0, 0) is None
    assert find_p_of_signs(0, 0) == 1.0
