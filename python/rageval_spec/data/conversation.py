"""Conversations: chat messages in the formats of OpenAI, Anthropic, LangChain and ragas, and the question in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

MESSAGES = "messages"
"""The column of a question file that holds conversations."""
_ROLES = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant",
    "system": "system", "developer": "system", "tool": "tool", "function": "tool",
}  # fmt: skip
_KEPT = ("tool_calls", "tool_call_id", "name", "function_call")

Turn: TypeAlias = Mapping[str, Any]
"""A message: `role` is user, assistant, system or tool, and `content` is text."""


def read_turns(value: Any) -> tuple[Turn, ...] | None:
    """The turns of a conversation; None if the value is something else.

    It can be a list of messages, an object that has one under `messages`, or either as JSON text.
    """
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, Mapping):
        value = value.get(MESSAGES)
    if not isinstance(value, (list, tuple)) or not value:
        return None
    turns = [_read_turn(item) for item in value]
    return None if None in turns else tuple(turn for turn in turns if turn is not None)


def find_question(turns: Sequence[Turn]) -> int | None:
    """The place of the last turn of the user that says something; None if there is none."""
    places = (place for place, turn in enumerate(turns) if turn["role"] == "user" and turn["content"].strip())
    return max(places, default=None)


def list_until_question(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The turns up to the question: what a system is told. What came after it, such as a gold answer, is left out."""
    place = find_question(turns)
    return () if place is None else tuple(turns[: place + 1])


def find_answer(turns: Sequence[Turn]) -> str | None:
    """The last text of the assistant after the question; None if the conversation ends with the user."""
    place = find_question(turns)
    after = turns if place is None else turns[place + 1 :]
    said = (turn["content"] for turn in reversed(after) if turn["role"] == "assistant")
    return next((text for text in said if text.strip()), None)


def write_turn(turn: Turn) -> str:
    """A turn as a line of a transcript: `user: And in Rome?`, or `assistant: search({"q": 1})` for a call of a tool."""
    calls = " ".join(f"{name}({given})" for name, given, _ in list_calls(turn))
    return f"{turn['role']}: {' '.join(filter(None, (turn['content'], calls)))}"


def list_calls(turn: Turn) -> Iterator[tuple[str, str, str | None]]:
    """The tools that a turn calls: name, arguments as text, and the id of the call if it has one."""
    calls = turn.get("tool_calls")
    for call in calls if isinstance(calls, (list, tuple)) else ():
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        named = function if isinstance(function, Mapping) else call
        given = next((named[key] for key in ("arguments", "args", "input") if named.get(key) is not None), "")
        identity = call.get("id")
        shown = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        yield str(named.get("name") or "tool"), shown, None if identity is None else str(identity)


def _read_turn(item: Any) -> Turn | None:
    if not isinstance(item, Mapping):
        return None
    data = item.get("data")
    inner = data if isinstance(data, Mapping) and "content" in data else item  # LangChain: {type, data: {content}}
    said = item.get("role", item.get("type"))
    role = _ROLES.get(said.removesuffix("_message").lower()) if isinstance(said, str) else None
    text = _read_content(inner.get("content", inner.get("text")))
    kept = {key: inner[key] for key in _KEPT if inner.get(key)}
    if role is None or (text is None and not kept.keys() - {"name"}):  # DeepEval's calls have a type and a name
        return None
    return {"role": role, "content": text or "", **kept}


def _read_content(content: Any) -> str | None:
    """The text of a message, also of one in parts, of which only the texts are read."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return None
    if not all(isinstance(part, (str, Mapping)) for part in content):
        return None
    texts = (part if isinstance(part, str) else part.get("text") for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))
