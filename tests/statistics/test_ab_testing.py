"""A/B tests that may be looked at any time, against scipy, slow references, and simulated streams."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from rageval_spec.statistics.ab_testing import check_shares, compare_streams, compute_chi_square_tail
from rageval_spec.statistics.window_summaries import summarize_values


def test_the_interval_is_the_published_boundary() -> None:
    # Both sides have 50 values, half 0 and half 1: variance 25 / 98, so an error of sqrt(50 / 98 / 50).
    first = summarize_values([0.0, 1.0] * 25)
    found = compare_streams(first, first, best_at=100)
    assert found is not None
    rate = (-2 * math.log(0.05) + math.log(1 - 2 * math.log(0.05))) / 100
    sigma = math.sqrt(1 / 98) * math.sqrt(100)
    grown = 100 * rate + 1
    reach = sigma * math.sqrt(2 * grown / (100**2 * rate) * math.log(math.sqrt(grown) / 0.05))
    assert (found.interval.low, found.interval.high) == pytest.approx((-reach, reach))
    assert (found.difference, found.p_value) == (0.0, 1.0)


def test_the_p_value_is_alpha_where_the_interval_ends_at_zero() -> None:
    random = np.random.default_rng(1)
    first, second = summarize_values(random.random(400)), summarize_values(random.random(300) + 0.06)
    found = compare_streams(first, second, best_at=500)
    assert found is not None
    low, high = 1e-9, 1 - 1e-9
    for _ in range(60):
        middle = (low + high) / 2
        rate = (-2 * math.log(0.05) + math.log(1 - 2 * math.log(0.05))) / 500
        error = math.hypot(first.error or 0, second.error or 0)
        grown = 700 * rate + 1
        reach = error * math.sqrt(2 * grown / (700 * rate) * math.log(math.sqrt(grown) / middle))
        low, high = (low, middle) if reach < found.difference else (middle, high)
    assert found.p_value == pytest.approx(high, rel=1e-6)


def test_no_look_at_equal_streams_is_wrong_too_often_and_a_difference_is_found() -> None:
    random = np.random.default_rng(2)
    wrong = found_late = 0
    for _ in range(100):
        streams = [random.beta(3, 1, 750) - less for less in (0, 0, 0.1)]
        for seen in range(50, 751, 50):
            first, second, third = (summarize_values(values[:seen]) for values in streams)
            test = compare_streams(first, second)
            wrong_now = test is not None and test.p_value <= 0.05
            if wrong_now:
                wrong += 1
                break
        late = compare_streams(first, third)
        found_late += late is not None and late.p_value <= 0.05
    assert wrong <= 9 and found_late >= 85


def test_too_few_values_give_no_test() -> None:
    assert compare_streams(summarize_values([0.0, 1.0] * 10), summarize_values([0.0, 1.0] * 50)) is None
    assert compare_streams(summarize_values([1.0] * 50), summarize_values([1.0] * 50)) is None


@given(st.floats(0, 200), st.integers(1, 30))
def test_the_chi_square_tail_is_scipys(square: float, degrees: int) -> None:
    assert compute_chi_square_tail(square, degrees) == pytest.approx(stats.chi2.sf(square, degrees), rel=1e-9)


@given(st.lists(st.integers(0, 5000), min_size=2, max_size=4).filter(sum))
def test_shares_are_checked_as_scipy_does(counts: list[int]) -> None:
    shares = np.arange(1, len(counts) + 1) / sum(range(1, len(counts) + 1))
    found = check_shares(counts, shares.tolist())
    expected = stats.chisquare(counts, shares * sum(counts))
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-290)
    prior = 200 * shares
    evidence = special.gammaln(prior + counts).sum() - special.gammaln(prior).sum() - np.dot(counts, np.log(shares))
    evidence += special.gammaln(200) - special.gammaln(200 + sum(counts))
    assert found.sequential == pytest.approx(math.exp(-max(0.0, evidence)), rel=1e-6, abs=1e-290)


def test_looking_often_at_right_shares_is_seldom_wrong() -> None:
    random = np.random.default_rng(4)
    wrong = sum(
        any(check_shares([int(one), at - int(one)], [0.5, 0.5]).sequential <= 0.05 for at, one in looks)
        for looks in (
            list(zip(range(20, 2001, 20), np.cumsum(random.binomial(20, 0.5, 100)), strict=True)) for _ in range(100)
        )
    )
    assert wrong <= 9
    assert check_shares([1100, 900], [0.5, 0.5]).sequential < 0.05


def test_one_trace_worked_by_hand_and_what_cannot_be() -> None:
    # The prior of 100 and 100 expects the first trace to go either way, as the shares do.
    assert check_shares([1, 0], [0.5, 0.5]).sequential == pytest.approx(1.0)
    assert check_shares([1, 0], [0.5, 0.5]).p_value == pytest.approx(math.erfc(math.sqrt(0.5)))
    assert check_shares([0, 0], [0.5, 0.5]).shares == ()
    with pytest.raises(ValueError, match="add up to 1"):
        check_shares([1, 2], [0.5, 0.6])
    with pytest.raises(ValueError, match="two systems"):
        check_shares([1], [1.0])
