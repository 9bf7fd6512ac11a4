from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.exchange.shared.texts import (
    ANSWER_KEYS,
    QUESTION_KEYS,
    clean_json,
    clean_text,
    dump_text,
    last_text,
    pick_text,
    read_messages,
)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"role": "user", "content": "a"}, {"role": "user", "content": "a"}),
        ({"message.role": "assistant", "message.content": "a"}, {"role": "assistant", "content": "a"}),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "url": "x"}]},
         {"role": "user", "content": "a"}),
        ({"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "12:00"}]},
         {"role": "tool", "content": "12:00"}),
        ({"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "f", "arguments": {"a": 1}}]},
         {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "arguments": {"a": 1}}]}),
        ({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
         {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "arguments": "{}"}]}),
        ({"message.role": "assistant", "message.tool_calls.0.tool_call.function.name": "f"},
         {"role": "assistant", "tool_calls": [{"name": "f"}]}),
        ({"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"},
         {"role": "assistant", "content": "a"}),
        ({"message.role": "user", "message.contents.0.message_content.type": "text",
          "message.contents.0.message_content.text": "a"}, {"role": "user", "content": "a"}),
        ({"type": "human", "content": "a"}, {"role": "user", "content": "a"}),
    ],
)  # fmt: skip
def test_messages_of_every_layout(found: dict[str, Any], message: dict[str, Any]) -> None:
    assert read_messages([found]) == [message]


def test_only_the_roles_asked_for_count() -> None:
    messages = read_messages([{"role": "user", "content": "first"}, {"role": "user", "content": "last"},
                              {"role": "assistant", "content": "no"}])  # fmt: skip
    assert last_text(messages, ("user",)) == "last" and last_text(messages, ("tool",)) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", None),
        ("[]", "[]"),
        ("[1, 2]", "[1, 2]"),
        ({"question": "", "query": "q"}, "q"),
        ({"a": 1}, '{"a": 1}'),
        (["only"], "only"),
        (7, "7"),
    ],
)
def test_questions(value: Any, text: str | None) -> None:
    assert pick_text(value, QUESTION_KEYS, ("user",)) == text


def test_answers_deep_inside_are_not_looked_for_without_end() -> None:
    value: Any = {"answer": "x"}
    for _ in range(50):
        value = {"outputs": value}
    text = pick_text(value, ANSWER_KEYS, ("assistant",))
    assert text is not None and text.startswith('{"outputs"')


def test_text_stays_text_and_the_rest_becomes_json() -> None:
    values: list[Any] = ["é", {"é": 1}, [], {}, None, 0]
    assert [dump_text(value) for value in values] == ["é", '{"é": 1}', None, None, None, "0"]


def test_what_is_no_json_becomes_json() -> None:
    found = {"n": float("nan"), 1: [b"\x01", float("inf"), 2.5], "none": None}
    assert clean_json(found) == {"n": None, "1": ["01", None, 2.5], "none": None}
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    assert "list more than 32 levels deep" in str(clean_json(deep))


def test_halves_of_surrogate_pairs_become_a_mark_and_whole_pairs_their_character() -> None:
    assert clean_text("a\ud800b") == "a\ufffdb" and clean_text("\ud83d\ude00é") == "😀é" and clean_text("é") == "é"
    assert pick_text('{"question": "\\ud800?"}', QUESTION_KEYS, ()) == "\ufffd?"
