"""Questions and answers in what programs record as the input and the output of a step: text, JSON, or messages."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rageval_spec.exchange.shared.conventions import load_json

QUESTION_KEYS = ("question", "query", "user_input", "user_message", "input", "prompt", "message", "messages", "text")
ANSWER_KEYS = ("answer", "response", "output", "actual_output", "result", "completion", "message", "messages", "text")
_WRAPPERS = ("content", "inputs", "outputs", "input", "data", "kwargs", "args", "choices", "generations", "value")
_MOST_DEPTH = 8
_MOST_CLEANED = 32


def clean_text(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which JSON can name but no file can hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def pick_text(value: Any, keys: Sequence[str], roles: Sequence[str], *, is_plain: bool = False) -> str | None:
    """The text that a value is about: that of the first of `keys`, or of the last message of one of `roles`.

    A text that is JSON is looked into, unless it `is_plain`; without any of the keys, the whole text counts. None if
    there is no text.
    """
    picked = _pick(value, keys, roles, is_plain=is_plain)
    return None if picked is None else clean_text(picked)


def _pick(value: Any, keys: Sequence[str], roles: Sequence[str], *, is_plain: bool) -> str | None:
    if isinstance(value, str):
        found = load_json(value) if not is_plain and value.lstrip()[:1] in ("{", "[", '"') else value
        if isinstance(found, str):
            return found or None
        picked = _look_into(found, keys, roles, 0)
        return value if picked is None else picked
    if value is None:
        return None
    picked = _look_into(value, keys, roles, 0)
    return dump_text(value) if picked is None else picked


def dump_text(value: Any) -> str | None:
    """A value as text: text as it is, anything else as JSON; None for None and for what is empty."""
    if isinstance(value, str):
        return clean_text(value) or None
    if value is None or value == {} or value == []:
        return None
    try:
        return clean_text(json.dumps(value, ensure_ascii=False, default=str))
    except RecursionError:
        return clean_text(json.dumps(clean_json(value), ensure_ascii=False))


def clean_json(value: Any, depth: int = 0) -> Any:
    """A value as JSON types: bytes as hexadecimal digits, NaN and infinities as null, what is too deep as text."""
    kind = type(value)  # comparing types is cheaper than isinstance, and almost all values have one of these
    if kind is str:
        return value if value.isascii() else clean_text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict and depth <= _MOST_CLEANED:
        return {
            (key if type(key) is str and key.isascii() else clean_text(str(key))): clean_json(inner, depth + 1)
            for key, inner in value.items()
        }
    return _clean_other(value, depth)


def _clean_other(value: Any, depth: int) -> Any:
    """`clean_json` of what is neither text nor a number of Python's own types."""
    if isinstance(value, str):
        return clean_text(str(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.hex()
    if depth > _MOST_CLEANED:
        return f"{type(value).__name__} more than {_MOST_CLEANED} levels deep"
    if isinstance(value, Mapping):
        return {clean_text(str(key)): clean_json(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(inner, depth + 1) for inner in value]
    return str(value)


def _look_into(value: Any, keys: Sequence[str], roles: Sequence[str], depth: int) -> str | None:
    if isinstance(value, str):
        return value or None
    if depth > _MOST_DEPTH:
        return None
    if isinstance(value, Mapping):
        for key in (*keys, *_WRAPPERS):
            if value.get(key) and (found := _look_into(value[key], keys, roles, depth + 1)):
                return found
        return None
    if isinstance(value, list | tuple) and value:
        if all(isinstance(item, Mapping) and "role" in item for item in value):
            return last_text(read_messages(value), roles)
        return _look_into(value[0], keys, roles, depth + 1) if len(value) == 1 or "answer" in keys else None
    return None


def read_messages(found: Any) -> list[dict[str, Any]]:
    """Messages in any of the usual layouts as chat messages: `role`, `content`, and `tool_calls` if there are any.

    The layouts: OpenAI's, the GenAI conventions' `parts`, OpenInference's and OpenLLMetry's flattened keys.
    """
    found = load_json(found) if isinstance(found, str) else found
    if isinstance(found, str):
        return [{"role": "user", "content": found}]
    items = found if isinstance(found, list | tuple) else [found]
    return [_read_message(item) for item in items if isinstance(item, Mapping)]


def _read_message(item: Mapping[str, Any]) -> dict[str, Any]:
    inner = item.get("message")
    if isinstance(inner, Mapping):
        item = inner
    role = item.get("message.role") or item.get("role") or item.get("type") or "user"
    message: dict[str, Any] = {"role": _ROLES.get(str(role), str(role))}
    content = _join_parts(item)
    if content is not None:
        message["content"] = content
    if calls := _read_calls(item):
        message["tool_calls"] = calls
    return message


_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}
_CONTENTS = ("message.content", "content", "text", "prompt.text", "completion.text", "prompt", "completion")


def _join_parts(item: Mapping[str, Any]) -> str | None:
    for key in _CONTENTS:
        if item.get(key) is not None:
            found = item[key]
            return found if isinstance(found, str) else _join_texts(found)
    parts = item.get("parts")
    if parts is None:
        flat = {key: value for key, value in item.items() if key.endswith("message_content.text")}
        parts = [str(value) for _, value in sorted(flat.items())] or None
    return None if parts is None else _join_texts(parts)


def _join_texts(parts: Any) -> str | None:
    """The texts among the parts of a message; calls of tools and images are no text."""
    texts: list[str] = []
    for part in parts if isinstance(parts, list | tuple) else [parts]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            text = part.get("text") or part.get("content") or part.get("response")
            if part.get("type") not in ("tool_call", "reasoning", "image") and text is not None:
                texts.append(dump_text(text) or "")
    return "\n".join(texts) if texts else None


def _read_calls(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = [part for part in item.get("parts") or () if isinstance(part, Mapping) and part.get("type") == "tool_call"]
    calls += [call for call in item.get("tool_calls") or () if isinstance(call, Mapping)]
    read = []
    for call in calls:
        function = call.get("function")
        function = function if isinstance(function, Mapping) else call
        read.append({key: function.get(key, call.get(key)) for key in ("id", "name", "arguments")})
    return [*read, *_read_flat_calls(item)]


def _read_flat_calls(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls in OpenInference's keys: `message.tool_calls.0.tool_call.function.name`."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in item.items():
        if key.startswith("message.tool_calls."):
            index, _, field = key.removeprefix("message.tool_calls.").partition(".")
            found.setdefault(index, {})[field.rpartition(".")[2]] = value
    return [found[index] for index in sorted(found)]


def last_text(messages: Sequence[Mapping[str, Any]], roles: Sequence[str]) -> str | None:
    """The text of the last message of one of the roles that has a text, or None."""
    for message in reversed(messages):
        if message["role"] in roles and message.get("content"):
            return clean_text(str(message["content"]))
    return None
