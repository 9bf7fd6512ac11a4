from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.recorded.messages import is_message, is_part, join_parts, last_answer, last_of, read_messages

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
