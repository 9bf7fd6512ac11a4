from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.samples import Sample
from tests.metrics.comparing import answer_metric, measure
from tests.metrics.expecting import check


@pytest.mark.parametrize(
    ("answer", "keys", "expected"),
    [
        ("Order 4711 is sent.", {"pattern": r"\b\d{4}\b"}, 1.0),
        ("Order 47110 is sent.", {"pattern": r"\b\d{4}\b"}, 0.0),
        ("YES", {"pattern": "^yes$"}, 0.0),
        ("YES", {"pattern": "^yes$", "ignore_case": True}, 1.0),
        ("a\nyes", {"pattern": "^yes$"}, 0.0),
        ("a\nyes", {"pattern": "(?m)^yes$"}, 1.0),
        ("", {"pattern": "^$"}, 1.0),
    ],
)
def test_hand_worked(answer: str, keys: dict[str, Any], expected: float) -> None:
    measurement = check("matches", answer, **keys)
    assert measurement.value == expected
    assert measurement.reason == (None if expected else f"{keys['pattern']!r} does not match")


def test_it_takes_linear_time_on_patterns_that_backtracking_never_ends() -> None:
    assert check("matches", "a" * 100_000 + "!", pattern="^(a+)+$").value == 0.0


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(", "unclosed group"),
        ("(?=a)b", "look-around, including look-ahead and look-behind, is not supported"),
        (r"(a)\1", "backreferences are not supported"),
        ("(a{1000}){1000}", "Compiled regex exceeds size limit of 10485760 bytes."),
    ],
)
def test_an_invalid_pattern_is_a_fault_of_the_spec(pattern: str, fault: str) -> None:
    (found,) = answer_metric("matches", pattern=pattern).check_files()
    assert (found.key, found.message, found.code) == (("pattern",), fault, "wrong-value")
    assert "Rust's syntax" in str(found.hint)
    assert not [*answer_metric("matches", pattern="a").check_files()]


def test_each_question_can_have_its_own_pattern() -> None:
    samples = [
        Sample("q1", "?", answer="a1", columns={"form": r"a\d"}),
        Sample("q2", "?", answer="b1", columns={"form": r"a\d"}),
        Sample("q3", "?", answer="b1", columns={"form": "("}),
        Sample("q4", "?", answer="b1", columns={"form": ["a", "b"]}),
        Sample("q5", "?", answer="b1", columns={}),
    ]
    found = measure("matches", samples, column="form")
    assert [one.value for one in found] == [1.0, 0.0, None, None, None]
    assert [one.status for one in found][2:] == ["error", "error", "unscorable"]
    assert found[2].reason == "the column 'form' holds an invalid pattern: unclosed group"
    assert found[3].reason == "the column 'form' must hold one pattern"


def test_many_answers_with_one_pattern() -> None:
    samples = [Sample(str(i), "?", answer=f"n{i}") for i in range(1000)]
    assert sum(one.value or 0 for one in measure("matches", samples, pattern="^n[0-4]$")) == 5
