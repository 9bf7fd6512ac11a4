""""""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from rageval_spec.data.samples import (
    Part,
    Sample,
    find_last_answer,
    find_question,
    list_until_question,
    read_turns,
    write_turn,
)


@pytest.mark.parametrize("part", get_args(Part))
def test_a_part_without_a_value_is_lacking(part: Part) -> None:
    assert Sample("q1", "Why?").lacks(part)


def test_an_empty_answer_and_no_contexts_are_known() -> None:
    sample = Sample("q1", "Why?", answer="", contexts=(), answerable=False)
    assert not sample.lacks("answer")
    assert not sample.lacks("contexts")
    assert not sample.lacks("answerable")
    assert sample.lacks("context_ids")


def test_the_first_gold_answer_is_the_reference() -> None:
    sample = Sample("q1", "Why?", references=("So.", "Thus."))
    assert sample.reference == "So."
    assert not sample.lacks("reference")
    assert Sample("q1", "Why?").reference is None


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Rome?"},
    {"role": "assistant", "content": "In Italy."},
    {"role": "user", "content": "Paris?"},
    {"role": "assistant", "content": "In France."},
]
LANGCHAIN = [{"type": "human", "data": {"content": "Rome?"}}, {"type": "ai", "data": {"content": "In Italy."}}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Rome?"}, {"type": "image_url", "image_url": {}}]}]


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (CHAT, ["Be brief.", "Rome?", "In Italy.", "Paris?", "In France."]),
        ({"messages": CHAT[:2], "model": "x"}, ["Be brief.", "Rome?"]),
        (json.dumps(CHAT[:2]), ["Be brief.", "Rome?"]),
        (LANGCHAIN, ["Rome?", "In Italy."]),
        ([{"type": "human", "content": "Rome?"}, {"type": "ai", "content": "In Italy."}], ["Rome?", "In Italy."]),
        ([{"type": "human_message", "content": "Rome?"}], ["Rome?"]),
        (PARTS, ["Rome?"]),
        ([{"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]}], [""]),
    ],
)
def test_conversations_of_many_formats_are_read(value: Any, texts: list[str]) -> None:
    turns = read_turns(value)
    assert turns is not None
    assert [turn["content"] for turn in turns] == texts


@pytest.mark.parametrize(
    "value",
    [None, "Rome?", "[not json", "[1]", [], {}, [1], [{"content": "x"}], [{"role": "poet", "content": "x"}],
     [{"role": "user"}], {"messages": "x"}, [{"role": "user", "content": 5}], [{"type": "doc", "text": "x"}]],
)  # fmt: skip
def test_anything_else_is_no_conversation(value: Any) -> None:
    assert read_turns(value) is None


def test_the_question_is_the_last_thing_that_the_user_said_and_what_follows_is_not_told() -> None:
    turns = read_turns(CHAT) or ()
    assert find_question(turns) == 3
    assert [turn["content"] for turn in list_until_question(turns)][-1] == "Paris?"
    assert find_last_answer(turns) == "In France."
    assert find_last_answer(turns[:4]) is None
    assert find_question(turns[2:3]) is None
    assert list_until_question(turns[2:3]) == ()
    assert find_last_answer(turns[2:3]) == "In Italy."


def test_a_turn_is_written_with_the_tools_that_it_calls() -> None:
    call = {"id": "1", "function": {"name": "search", "arguments": '{"q":1}'}}
    (turn,) = (
        read_turns([{"role": "assistant", "content": "", "tool_calls": [call, {"name": "f", "args": {"a": 1}}]}]) or ()
    )
    assert write_turn(turn) == 'assistant: search({"q":1}) f({"a": 1})'
