from __future__ import annotations

import pytest

from tests.metrics.expecting import check


@pytest.mark.parametrize(
    ("answer", "most", "expected"),
    [("one two three", 3, 1.0), ("one two three", 2, 0.0), ("", 0, 1.0), ("東京です", 4, 1.0), ("東京です", 3, 0.0)],
)
def test_hand_worked(answer: str, most: int, expected: float) -> None:
    assert check("max_words", answer, value=most).value == expected


def test_the_reason_counts() -> None:
    measurement = check("max_words", "a b c", value=2)
    assert (measurement.reason, measurement.details) == ("the answer has 3 words, 2 are allowed", {"words": 3})


@pytest.mark.parametrize(("written", "expected"), [(2, 0.0), ("3", 1.0), (3.0, 1.0), ("3.0", 1.0)])
def test_the_number_can_be_in_a_column(written: object, expected: float) -> None:
    assert check("max_words", "a b c", {"most": written}, column="most").value == expected


@pytest.mark.parametrize("written", ["many", -1, 2.5, True, [3]])
def test_a_column_without_a_number_is_an_error(written: object) -> None:
    measurement = check("max_words", "a b c", {"most": written}, column="most")
    assert measurement.status == "error"
    assert str(measurement.reason).startswith("the column 'most' must hold a number of words, not ")
