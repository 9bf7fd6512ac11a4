from __future__ import annotations

import pytest

from tests.metrics.expecting import check


@pytest.mark.parametrize(
    ("answer", "expected"),
    [('{"a": [1, null]}', 1.0), ("42", 1.0), ("```json\n[]\n```", 1.0), ("", 0.0), ("{", 0.0), ("Sure: {}", 0.0)],
)
def test_hand_worked(answer: str, expected: float) -> None:
    measurement = check("is_json", answer)
    assert measurement.value == expected
    assert (measurement.reason is None) == (expected == 1.0)


def test_a_code_fence_can_be_forbidden() -> None:
    assert check("is_json", "```\n{}\n```", fences=False).value == 0.0


def test_the_reason_says_where() -> None:
    assert check("is_json", '{"a": }').reason == "line 1, column 7: Expecting value"
