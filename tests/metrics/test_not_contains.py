from __future__ import annotations

from typing import Any

import pytest

from tests.metrics.expecting import check


@pytest.mark.parametrize(
    ("answer", "keys", "expected", "reason"),
    [
        ("All good.", {"value": "sorry"}, 1.0, None),
        ("I am sorry.", {"value": "sorry"}, 0.0, "the answer contains 'sorry'"),
        ("Sorry!", {"value": "sorry"}, 1.0, None),
        ("Sorry!", {"value": "sorry", "ignore_case": True}, 0.0, "the answer contains 'sorry'"),
        ("a b", {"value": ["a", "x", "b"]}, 0.0, "the answer contains 'a', 'b'"),
        ("", {"value": "sorry"}, 1.0, None),
    ],
)
def test_hand_worked(answer: str, keys: dict[str, Any], expected: float, reason: str | None) -> None:
    measurement = check("not_contains", answer, **keys)
    assert (measurement.value, measurement.reason) == (expected, reason)


def test_the_texts_can_be_in_a_column() -> None:
    assert check("not_contains", "call 555", {"never": "555"}, column="never").value == 0.0
    assert check("not_contains", "call me", {"never": "555"}, column="never").value == 1.0
    assert check("not_contains", "call me", {"never": None}, column="never").status == "unscorable"
