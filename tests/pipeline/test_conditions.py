"""Conditions hold for values as files have them: typed in JSON, text in CSV."""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.pipeline.conditions import describe, holds, label, list_values
from rageval_spec.spec.slices import ConditionNode, WordsNode


@pytest.mark.parametrize(
    ("tests", "value", "expected"),
    [
        ({"equal": "hard"}, "hard", True),
        ({"equal": "hard"}, " hard ", True),
        ({"equal": "hard"}, "Hard", False),
        ({"equal": "hard"}, ["easy", "hard"], True),
        ({"equal": "2"}, 2, True),
        ({"equal": 2}, 2.0, True),
        ({"equal": 2}, "2.0", True),
        ({"equal": 2}, "two", False),
        ({"equal": 1}, True, False),
        ({"equal": True}, True, True),
        ({"equal": True}, "TRUE", True),
        ({"equal": True}, 1, False),
        ({"equal": 0}, None, False),
        ({"among": ("a", 3)}, "3", True),
        ({"among": ("a", 3)}, "b", False),
        ({"min": 2}, 2, True),
        ({"min": 2}, "1.9", False),
        ({"min": 2}, "3 apples", False),
        ({"min": 2}, True, False),
        ({"min": 1, "max": 2}, [0, 5], False),
        ({"min": 1, "max": 2}, [0, 2], True),
        ({"max": 10**6}, 10**400, False),
        ({"min": 0}, "nan", False),
        ({"min": 0}, "1_0", False),
        ({"contains": "PDF"}, "a pdf file", True),
        ({"contains": "pdf"}, ["doc", "PDF"], True),
        ({"contains": "pdf"}, {"pdf": 1}, False),
        ({"words": WordsNode(min=2, max=3)}, "one two", True),
        ({"words": WordsNode(min=2)}, "one", False),
        ({"words": WordsNode(max=2)}, "", False),
        ({"equal": "a", "words": WordsNode(max=1)}, ["a", "b c"], True),
    ],
)
def test_a_condition_holds_if_one_value_passes_all_its_tests(tests: dict[str, Any], value: Any, expected: bool) -> None:
    assert holds(ConditionNode(column="x", **tests), value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ("  ", []),
        ({"a": 1}, []),
        ([None, "", "a", ["b"]], ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ("[1, 2]", [1, 2]),
        ("[sic] a text", ["[sic] a text"]),
        (False, [False]),
        (0, [0]),
    ],
)
def test_values_are_those_of_lists_and_nothing_empty(value: Any, expected: list[Any]) -> None:
    assert list_values(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, "true"), (2.0, "2"), (2.5, "2.5"), (3, "3"), (1e300, "1e+300"), (" two\n words ", "two words")],
)
def test_slices_are_named_after_the_value_on_one_line(value: Any, expected: str) -> None:
    assert label(value) == expected


def test_a_condition_is_told_in_words() -> None:
    assert describe(ConditionNode(column="question", words=WordsNode(min=12))) == "question has at least 12 words"
    assert describe(ConditionNode(column="hops", min=2, max=4)) == "hops is at least 2 and at most 4"
    assert describe(ConditionNode(column="kind", among=("a", True))) == "kind is a or true"
    assert describe(ConditionNode(column="kind", contains="x")) == "kind contains 'x'"
