from __future__ import annotations

import math

import pytest

from rageval_spec.metrics.shared.json_answers import read_json


def test_a_code_fence_can_surround_it() -> None:
    for text in ('```json\n{"a": 1}\n```', '\n```\n{"a": 1}```\n', '{"a": 1}', ' {"a": 1} '):
        assert read_json(text, unfence=True) == {"a": 1}
    with pytest.raises(ValueError, match="line 1, column 1: Expecting value"):
        read_json('```json\n{"a": 1}\n```', unfence=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the answer is empty"),
        ("```json\n\n```", "the answer is empty"),
        ("{'a': 1}", "line 1, column 2: Expecting property name enclosed in double quotes"),
        ('{"a":\n1,}', "line 2, column 3|line 2, column 2"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ('Here it is: {"a": 1}', "line 1, column 1: Expecting value"),
    ],
)
def test_what_is_not_json_says_where(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_json(text, unfence=True)


def test_an_endless_number_is_json() -> None:
    assert read_json("9" * 5000, unfence=True) == math.inf
