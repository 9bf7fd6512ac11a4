from __future__ import annotations

import pytest

from tests.metrics.comparing import answer_metric, compare, value_of


@pytest.mark.parametrize(
    ("answer", "references", "expected"),
    [
        ("the cat sat", ["a cat sat down"], 2 * (2 / 2) * (2 / 3) / (2 / 2 + 2 / 3)),  # 4/5: articles do not count
        ("cat", ["dog"], 0.0),
        ("sat cat", ["cat sat"], 1.0),
        ("cat", ["dog", "cat sat", "the cat"], 1.0),
        ("", ["cat"], 0.0),
        ("", ["the"], 1.0),
    ],
)
def test_hand_worked(answer: str, references: list[str], expected: float) -> None:
    assert value_of("token_f1", answer, *references) == pytest.approx(expected)


def test_without_references_there_is_no_value() -> None:
    assert compare("token_f1", "Paris").status == "unscorable"


def test_name() -> None:
    assert answer_metric("token_f1").name == "token_f1"
