from __future__ import annotations

import json
from typing import Any

import pytest

from rageval_spec.recorded.messages import (
    find_last_answer,
    find_question,
    is_message,
    is_part,
    join_parts,
    last_answer,
    last_of,
    list_until_question,
    read_messages,
    read_turns,
    write_turn,
)

CALL = {"id": "1", "name": "f", "arguments": {"a": 1}}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"role": "user", "content": "a"}, {"role": "user", "content": "a"}),
        ({"message.role": "assistant", "message.content": "a"}, {"role": "assistant", "content": "a"}),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "url": "x"}]},
         {"role": "user", "content": "a"}),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
         {"role": "user", "content": "a\nb"}),
        ({"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
         {"role": "assistant", "content": "ab"}),
        ({"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "12:00"}]},
         {"role": "tool", "content": "12:00"}),
        ({"role": "assistant", "parts": [{"type": "tool_call", **CALL}]}, {"role": "assistant", "tool_calls": [CALL]}),
        ({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
         {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "arguments": "{}"}]}),
        ({"message.role": "assistant", "message.tool_calls.0.tool_call.function.name": "f"},
         {"role": "assistant", "tool_calls": [{"name": "f"}]}),
        ({"role": "assistant", "content": "", "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "1"}]},
         {"role": "assistant", "content": "", "tool_calls": [CALL]}),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]},
         {"role": "assistant", "tool_calls": [CALL]}),
        ({"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {"a": 1}}}]},
         {"role": "assistant", "tool_calls": [CALL]}),
        ({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
         {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]}),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "12:00"}]},
         {"role": "tool", "content": "12:00"}),
        ({"role": "user", "content": [{"toolResult": {"content": [{"text": "12:00"}]}}]},
         {"role": "tool", "content": "12:00"}),
        ({"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"},
         {"role": "assistant", "content": "a"}),
        ({"message.role": "user", "message.contents.0.message_content.type": "text",
          "message.contents.0.message_content.text": "a"}, {"role": "user", "content": "a"}),
        ({"type": "human", "content": "a"}, {"role": "user", "content": "a"}),
        ({"role": "MessageRole.ASSISTANT", "content": "a"}, {"role": "assistant", "content": "a"}),
        ({"role": "critic", "content": "a"}, {"role": "critic", "content": "a"}),
        (["user", "a"], {"role": "user", "content": "a"}),
        ("ToolMessage(content='12:00', tool_call_id='1')", {"role": "tool", "content": "12:00"}),
    ],
)  # fmt: skip
def test_messages_of_every_form(found: Any, message: dict[str, Any]) -> None:
    assert read_messages([found]) == [message]


def test_a_message_without_a_role_has_that_of_its_end() -> None:
    assert read_messages([{"content": "a"}], "assistant") == [{"role": "assistant", "content": "a"}]
    assert read_messages([{"role": "unknown", "content": "a"}], "assistant") == [{"role": "assistant", "content": "a"}]
    assert read_messages("plain") == [{"role": "user", "content": "plain"}]


def test_only_the_roles_asked_for_count() -> None:
    found = read_messages([{"role": "user", "content": "first"}, {"role": "user", "content": "last"},
                           {"role": "assistant", "content": "no"}])  # fmt: skip
    assert last_of(found, "user") == "last" and last_of(found, "tool") is None


def test_what_the_model_said_before_the_question_or_beside_a_call_is_no_answer() -> None:
    asked, said = {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}
    calling, found = {**said, "tool_calls": [CALL]}, {"role": "tool", "content": "12:00"}
    assert last_answer([asked, calling, found, said]) == "a"
    cut: list[list[dict[str, Any]]] = [[asked, said, asked], [asked, calling], [asked, calling, found], [asked], []]
    for ended in cut:
        assert last_answer(ended) is None


@pytest.mark.parametrize(
    "found",
    ["text", ["a", "b"], {"from": "ada@example.org", "content": "a letter"}, {"author": "Ada", "text": "a book"},
     {"page_content": "t", "type": "Document"}, {"type": "function", "function": {"name": "f"}}, None, 5],
)  # fmt: skip
def test_what_is_no_message(found: Any) -> None:
    assert not is_message(found)


def test_parts() -> None:
    assert (
        is_part({"type": "text", "text": "a"})
        and is_part({"type": "tool_use", "name": "f"})
        and not is_part({"text": "a"})
    )
    assert join_parts(["a", {"text": "b"}, {"type": "thinking", "thinking": "c"}]) == "ab"
    assert join_parts([{"type": "image_url"}]) is join_parts(5) is None


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Rome?"},
    {"role": "assistant", "content": "In Italy."},
    {"role": "user", "content": "Paris?"},
    {"role": "assistant", "content": "In France."},
]
LANGCHAIN = [{"type": "human", "data": {"content": "Rome?"}}, {"type": "ai", "data": {"content": "In Italy."}}]
CONSTRUCTORS = [
    {"type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": {"content": text}}
    for name, text in (("HumanMessage", "Rome?"), ("AIMessage", "In Italy."))
]
PICTURE = {"type": "image_url", "image_url": {}}
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Rome?"}, PICTURE]}]


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
        ([{"role": "user", "content": [PICTURE]}], [""]),
        (CONSTRUCTORS, ["Rome?", "In Italy."]),
        ([{"role": "assistant", "content": [{"type": "text", "text": "In "}, {"type": "text", "text": "Italy."}]}],
         ["In Italy."]),
        ([{"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]}], [""]),
    ],
)  # fmt: skip
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
