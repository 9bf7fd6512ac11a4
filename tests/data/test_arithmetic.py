from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.arithmetic import average, exceeds, f_measure, is_level, reaches

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(NUMBERS)
def test_an_average_is_as_near_as_a_float_can_be(numbers: list[float]) -> None:
    exact = sum(map(Fraction, numbers), Fraction(0)) / len(numbers)
    assert abs(Fraction(average(numbers)) - exact) <= Fraction(math.ulp(float(exact)))


@given(st.floats(-1e6, 1e6), st.integers(1, 1000))
def test_equal_numbers_are_their_own_average(number: float, count: int) -> None:
    assert average([number] * count) == number


@pytest.mark.parametrize("numbers", [(0.7, 0.8, 0.75), (5 / 6, 3 / 6, 1 / 6), (0.1, 0.2, 0.3, 0.4), (1e16, 1.0, -1e16)])
def test_the_order_does_not_matter(numbers: tuple[float, ...]) -> None:
    assert len({average(order) for order in permutations(numbers)}) == 1


def test_nothing_has_no_average_and_what_is_infinite_stays_so() -> None:
    with pytest.raises(ValueError, match="at least one number"):
        average([])
    assert average([1.0, math.inf]) == math.inf


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10))
def test_an_f_measure_is_the_weighted_harmonic_mean(precision: float, recall: float, beta: float) -> None:
    value = f_measure(precision, recall, beta)
    if precision < 1e-9 or recall < 1e-9:
        assert value <= 1e-6
        return
    weight = 1 / (1 + beta**2)
    assert value == pytest.approx(1 / (weight / precision + (1 - weight) / recall), rel=1e-6)
    assert min(precision, recall) <= value <= max(precision, recall)


def test_an_f_measure_by_counts() -> None:
    # 2 right, 1 wrong, 2 missing: 2 / (2 + 0.5 * (1 + 2)) = 4/7
    assert f_measure(2 / 3, 2 / 4) == pytest.approx(4 / 7)
    assert f_measure(2 / 3, 2 / 4, 2.0) == pytest.approx(5 * 2 / (5 * 2 + 4 * 2 + 1))
    assert f_measure(0.0, 0.0) == 0.0


@given(st.integers(1, 200), st.integers(1, 200), st.floats(0.1, 10))
def test_two_equal_numbers_are_their_own_f_measure(part: int, of: int, beta: float) -> None:
    share = min(part, of) / max(part, of)
    assert f_measure(share, share, beta) == share


@given(st.integers(0, 400), st.integers(1, 400), st.integers(1, 2000))
def test_a_sum_in_any_order_reaches_the_share_that_a_person_writes(part: int, of: int, count: int) -> None:
    share = min(part, of) / of
    added = 0.0
    for _ in range(count):
        added += share
    assert reaches(added / count, share, terms=count)
    assert reaches(share, added / count, terms=count)
    assert not exceeds(added / count, share, terms=count)
    assert not exceeds(share, added / count, terms=count)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_difference_of_thousandths_is_what_a_person_writes(first: int, second: int) -> None:
    drop = round((first - second) / 1000, 3)
    assert is_level(first / 1000 - second / 1000, drop, scale=max(first, second) / 1000)


@pytest.mark.parametrize(("number", "bound"), [(0.75, 0.7500001), (0.749999999, 0.75), (1e-9, 2e-9), (0.0, 1e-12)])
def test_what_a_person_can_write_apart_is_apart(number: float, bound: float) -> None:
    assert not is_level(number, bound)
    assert not reaches(number, bound)
    assert exceeds(bound, number)


def test_nothing_is_level_with_infinity_but_itself() -> None:
    assert is_level(math.inf, math.inf)
    assert not is_level(1e308, math.inf)
    assert not is_level(math.nan, 0.0)
    assert not reaches(math.nan, 0.0)
