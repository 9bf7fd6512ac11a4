from __future__ import annotations

from typing import Any

import pytest

from tests.metrics.comparing import answer_metric
from tests.metrics.expecting import check


@pytest.mark.parametrize(
    ("answer", "keys", "expected"),
    [
        ("You get a refund.", {"value": "refund"}, 1.0),
        ("You get a Refund.", {"value": "refund"}, 0.0),
        ("You get a Refund.", {"value": "refund", "ignore_case": True}, 1.0),
        ("nonrefundable", {"value": "refund"}, 1.0),
        ("a and b", {"value": ["a", "b"]}, 1.0),
        ("a and c", {"value": ["a", "b"]}, 0.0),
        ("a and c", {"value": ["b", "c"], "require": "any"}, 1.0),
        ("", {"value": "a"}, 0.0),
        ("the caf\u00e9", {"value": "cafe\u0301"}, 1.0),
    ],
)
def test_hand_worked(answer: str, keys: dict[str, Any], expected: float) -> None:
    assert check("contains", answer, **keys).value == expected


def test_the_texts_can_be_in_a_column() -> None:
    columns = {"must": ["30 days", "refund"]}
    assert check("contains", "A refund within 30 days.", columns, column="must").value == 1.0
    lacking = check("contains", "A refund.", columns, column="must")
    assert (lacking.value, lacking.reason) == (0.0, "the answer lacks '30 days'")
    assert lacking.details == {"found": ["refund"], "absent": ["30 days"]}
    assert check("contains", "pure gold", column="reference").value == 1.0


def test_a_question_without_an_expectation_has_no_value() -> None:
    measurement = check("contains", "x", {"must": None}, column="must")
    assert (measurement.status, measurement.reason) == ("unscorable", "the column 'must' is empty")
    wrong = check("contains", "x", {"must": {"a": 1}}, column="must")
    assert (wrong.status, wrong.reason) == ("error", "the column 'must' must hold text or a list of texts")
    empty = check("contains", "x", {"must": ["a", ""]}, column="must")
    assert empty.reason == "the column 'must' holds an empty text, which every answer contains"


def test_names_tell_texts_apart() -> None:
    assert answer_metric("contains", value="refund").name == "contains(value=refund)"
    assert answer_metric("contains", column="must", require="any").name == "contains(column=must,require=any)"
