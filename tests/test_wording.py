from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.outcomes import Interval
from rageval_spec.wording import (
    count_noun,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_points,
    format_probability,
    format_share,
    format_signed,
    protect_cell,
    tell_apart,
)

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (0.5, "0.5000"),
        (-0.5, "-0.5000"),
        (0.00005, "0.000050"),
        (0.00007, "0.000070"),
        (0.00014, "0.00014"),
        (-0.0014, "-0.0014"),
        (0.0000499, "4.990e-05"),
        (-1e-9, "-1.000e-09"),
        (12345.678, "12345.6780"),
        (1e9, "1.000e+09"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert format_number(value, 4) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.500"), (0.0, "0.000"), (0.0123, "0.012"), (0.00456, "0.0046"), (0.0004, "4.00e-04")]
)
def test_numbers_have_three_digits_by_default(value: float, text: str) -> None:
    assert format_number(value) == text


@given(finite)
def test_only_zero_reads_as_zero(value: float) -> None:
    assert (float(format_number(value)) == 0) == (value == 0)


@given(finite, finite)
def test_numbers_that_differ_never_read_the_same(first: float, second: float) -> None:
    texts = tell_apart(first, second)
    assert (texts[0] == texts[1]) == (first == second)
    if first < second:
        assert float(texts[0]) <= float(texts[1])


@given(finite)
def test_the_next_number_is_told_apart(value: float) -> None:
    following = math.nextafter(value, math.inf)
    if math.isfinite(following):
        assert len(set(tell_apart(value, following))) == 2


@pytest.mark.parametrize(
    ("count", "total", "text"),
    [
        (9, 10, "90%"),
        (7, 8, "87.5%"),
        (5, 40, "12.5%"),
        (1, 40, "2.5%"),
        (1, 16, "6.3%"),
        (3, 16, "18.8%"),
        (29, 2000, "1.5%"),
        (289, 2000, "14.5%"),
        (1, 3, "33.3%"),
        (2, 3, "66.7%"),
        (40, 40, "100%"),
        (0, 40, "0%"),
        (1, 3000, "0.03%"),
        (2999, 3000, "99.97%"),
        (1, 100_000, "0.001%"),
    ],
)
def test_shares(count: int, total: int, text: str) -> None:
    assert format_percent(count / total) == text


@given(st.integers(0, 5000), st.integers(1, 5000))
def test_shares_are_right_to_half_a_digit_and_only_none_and_all_read_as_such(count: int, total: int) -> None:
    count = min(count, total)
    text = format_percent(count / total).rstrip("%")
    assert abs(Fraction(text) - Fraction(100 * count, total)) <= Fraction(1, 20)
    assert ((text == "0"), (text == "100")) == (count == 0, count == total)


@pytest.mark.parametrize(("p_value", "text"), [(0.01234, "p = 0.0123"), (0.00009, "p < 0.0001"), (1.0, "p = 1.0000")])
def test_p_values(p_value: float, text: str) -> None:
    assert format_p_value(p_value) == text


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd()", "'=cmd()"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM", "'@SUM"),
        ("\t=1", "'\\t=1"),
        ("\r=1", "'\\r=1"),
        ("a = b\0\x1b[31m\u202e", "a = b\\x00\\x1b[31m\\u202e"),
        ("it is 1 + 1", "it is 1 + 1"),
        ("", ""),
    ],
)
def test_a_table_cell_is_visible_and_not_a_formula(text: str, cell: str) -> None:
    assert protect_cell(text) == cell


def test_counts() -> None:
    assert count_noun(1, "gate") == "1 gate"
    assert count_noun(0, "query", "queries") == "0 queries"
    assert count_noun(5183, "document") == "5,183 documents"


def test_a_probability_in_a_column_stands_without_its_name() -> None:
    assert [format_probability(value) for value in (0.01234, 0.0001, 0.00009, 0.0)] == [
        "0.0123",
        "0.0001",
        "< 0.0001",
        "< 0.0001",
    ]


def test_a_difference_has_its_sign() -> None:
    assert [format_signed(number, 2) for number in (0.5, -0.5, 0.0)] == ["+0.50", "-0.50", "0.00"]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.725, "72.5%"), (0.72, "72%"), (0.7249, "72.5%"), (1.0, "100%"), (0.9999, "99.99%"), (0.0, "0%")],
)
def test_a_share_is_a_percentage_with_one_digit(share: float, text: str) -> None:
    assert format_share(share) == text


@pytest.mark.parametrize(
    ("difference", "text"),
    [(0.025, "+2.5 pp"), (-0.1, "-10 pp"), (0.0, "0 pp"), (0.0004, "+0.04 pp"), (-1.0, "-100 pp")],
)
def test_a_difference_of_shares_is_in_percentage_points(difference: float, text: str) -> None:
    assert format_signed(difference, formatter=format_points) == text


def test_the_unit_of_an_interval_of_points_stands_once() -> None:
    assert format_interval(Interval(-0.012, 0.034), formatter=format_points) == "[-1.2, 3.4 pp]"
    assert format_interval(Interval(0.68, 0.765), formatter=format_share) == "[68%, 76.5%]"


@given(st.floats(0, 1), st.floats(0, 1))
def test_shares_that_differ_never_read_the_same(first: float, second: float) -> None:
    texts = tell_apart(first, second, format_share)
    assert (texts[0] == texts[1]) == (first == second)
