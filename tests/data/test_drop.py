from __future__ import annotations

import pytest

from rageval_spec.data.drop import Drop, read_drop


@pytest.mark.parametrize(
    ("written", "read", "shown"),
    [
        (0.02, Drop(0.02), "0.02"),
        (0, Drop(0.0), "0.0"),
        ("5%", Drop(0.05, is_share=True), "5%"),
        ("2.5 %", Drop(0.025, is_share=True), "2.5%"),
        ("150%", Drop(1.5, is_share=True), "150%"),
    ],
)
def test_a_drop_is_an_amount_or_a_share(written: float | str, read: Drop, shown: str) -> None:
    assert read_drop(written) == read
    assert str(read) == shown


@pytest.mark.parametrize("written", [-0.1, float("nan"), float("inf"), "5", "-5%", "five%", ""])
def test_anything_else_is_refused(written: float | str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        read_drop(written)


def test_a_share_is_of_the_size_of_the_baseline() -> None:
    share = read_drop("5%")
    assert share.resolve(0.42) == pytest.approx(0.021)
    assert share.resolve(-2.0) == pytest.approx(0.1)
    assert share.resolve(0.0) == 0.0
    assert read_drop(0.02).resolve(0.42) == 0.02
