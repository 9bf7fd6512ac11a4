"""Chat messages in any form that programs record, as `role`, `content` and `tool_calls`, and conversations in files.

The forms: OpenAI's chat and responses, Anthropic's blocks, Google's and Bedrock's parts, LangChain's three
(constructors, fields, and pairs of a role and a text), LlamaIndex, Haystack, pydantic-ai, AutoGen, Semantic Kernel,
Vercel's AI SDK, the parts of OpenTelemetry's conventions, and the flattened keys of OpenInference and OpenLLMetry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rageval_spec.libraries import compile_later
from rageval_spec.recorded import values

_ROLES: Mapping[str, str] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "chatbot", "gpt"), "assistant"),
    **dict.fromkeys(("system", "developer", "systemprompt"), "system"),
    **dict.fromkeys(("tool", "function", "toolresult", "toolcallexecution", "toolcallsummary"), "tool"),
}
"""The roles by the names that programs give them, in small letters and without `Message` at the end."""
_SPEAKERS = frozenset(_ROLES.values())
_CLASS = compile_later(r"_?message(?:chunk)?$")
_HOLDERS = ("kwargs", "data", "message", "delta")
"""Keys under which LangChain, completions and their streams have the message itself."""
_CONTENTS = (
    *("content", "parts", "_content", "blocks", "items", "contents", "text", "value", "message"),
    *("prompt", "completion"),
)
_PART_TEXTS = (
    *("text", "content", "_text", "response", "refusal", "message_content", "result", "output", "citationsContent"),
)
_CALLS = ("tool_call", "toolcall", "tool_use", "tooluse", "function_call", "functioncall")
_RESULTS = (
    *("tool_result", "toolresult", "tool_call_response", "tool_return", "retry_prompt"),
    *("function_response", "functionresponse"),
)
_SILENT = compile_later(
    r"reason|think|thought|tool|function|image|audio|video|file|document|media|binary|embedding|retry"
)
"""Kinds of parts that are no text for the reader."""
MESSAGES = "messages"
"""The column of a question file that holds conversations."""
_KEPT = ("tool_calls", "tool_call_id", "name", "function_call")
"""What else a turn of a conversation keeps, as it is."""


def read_messages(found: Any, role: str = "user") -> list[dict[str, Any]]:
    """The messages in a value, in order; what is no message is passed over. `role` is that of a text without one."""
    found = values.open_text(found)
    if isinstance(found, str):
        return [{"role": role, "content": found}]
    items = found if isinstance(found, list | tuple) and _pair(found) is None else [found]
    if len(items) == 1 and isinstance(items[0], list | tuple) and _pair(items[0]) is None:
        items = items[0]
    return [message for item in items for message in _read(item, role)]


def is_message(item: Any) -> bool:
    """Whether a value says whose text it is."""
    item = values.open_text(item)
    if _pair(item) is not None:
        return True
    if not isinstance(item, Mapping):
        return False
    return _role(item) is not None and _is_said(_inner(item))


def last_of(messages: Sequence[Mapping[str, Any]], role: str) -> str | None:
    """The text of the last message of a role that has a text, or None."""
    for message in reversed(messages):
        if message["role"] == role and message.get("content"):
            return str(message["content"])
    return None


def last_answer(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """What the model said last, after what the user said last; None if it only called tools after that."""
    for message in reversed(messages):
        if message["role"] == "user" and message.get("content"):
            return None
        if message["role"] == "assistant":
            if message.get("tool_calls"):
                return None
            if message.get("content"):
                return str(message["content"])
    return None


def join_parts(content: Any, role: str = "assistant") -> str | None:
    """The texts among the parts of a message; calls of tools, thoughts and images are no text. None without any.

    The parts of what a model wrote are pieces of one text; those of other messages are texts of their own.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = content["parts"] if isinstance(content.get("parts"), list) else [content]
    if not isinstance(content, list | tuple):
        return None
    texts = [text for part in content if (text := _read_part(part, role)) is not None]
    return ("" if role == "assistant" else "\n").join(texts) if texts else None


def is_part(item: Any) -> bool:
    """Whether a value is a part of a message: `{"type": "text", "text": "..."}`, a call of a tool, an image."""
    return (
        isinstance(item, Mapping)
        and bool(_kind(item))
        and (_read_part(item, "assistant") is not None or _SILENT.search(_kind(item)) is not None)
    )


def _read(item: Any, role: str) -> Iterator[dict[str, Any]]:
    item = values.open_text(item)
    if isinstance(item, str):
        return
    if (pair := _pair(item)) is not None:
        yield {"role": pair[0], "content": pair[1]}
    elif isinstance(item, Mapping):
        item = _nest(item) if any("." in key for key in item) else item
        if item.get("kind") == "request" and isinstance(item.get("parts"), list):  # pydantic-ai: parts of several roles
            for part in item["parts"]:
                if isinstance(part, Mapping) and (text := _read_part(part, "tool")) is not None:
                    kind = _kind(part)
                    is_of_tool = "tool" in kind or "retry" in kind
                    role = "tool" if is_of_tool else "system" if "system" in kind else "user"
                    yield {"role": role, "content": text}
        elif (message := _read_one(item, role)).keys() != {"role"}:
            yield message


def _read_one(item: Mapping[str, Any], role: str) -> dict[str, Any]:
    inner = _inner(item)
    said = _role(item) or role
    content = next((inner[key] for key in _CONTENTS if inner.get(key) is not None), None)
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list | tuple) else []
    if said == "user" and parts and all(_is_one_of(part, _RESULTS) for part in parts):
        said = "tool"
    message: dict[str, Any] = {"role": said}
    if (text := join_parts(content, said)) is not None:
        message["content"] = text
    if calls := [*_read_calls(inner, parts)]:
        message["tool_calls"] = calls
    return message


def _inner(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """What holds the content of a message: the message itself, or the object in it."""
    if item.get("content") is not None or isinstance(item.get("parts"), list):
        return item
    return next((item[key] for key in _HOLDERS if isinstance(item.get(key), Mapping)), item)


def _is_said(item: Mapping[str, Any]) -> bool:
    return any(key in item for key in (*_CONTENTS[:9], "tool_calls"))


def _pair(item: Any) -> tuple[str, str] | None:
    """The role and the text of a pair of both: `("user", "Why?")`."""
    if isinstance(item, list | tuple) and len(item) == 2 and all(isinstance(part, str) for part in item):
        role = _ROLES.get(item[0].lower())
        return None if role is None else (role, item[1])
    return None


def _role(item: Mapping[str, Any]) -> str | None:
    """Who says a message; None if it does not say so."""
    for key in ("role", "_role"):
        found = item.get(key)
        if isinstance(found, str) and found not in ("", "unknown"):
            return _ROLES.get(_CLASS.sub("", found.rpartition(".")[2].lower()), found)
    for key in ("author", "from"):
        if isinstance(found := item.get(key), str) and found.lower() in _ROLES:
            return _ROLES[found.lower()]
    if item.get("kind") in ("request", "response") and isinstance(item.get("parts"), list):  # pydantic-ai
        return "user" if item["kind"] == "request" else "assistant"
    kinds = (
        item.get("type"),
        item.get(values.CLASS),
        item["id"][-1] if isinstance(item.get("id"), list) and item["id"] else None,
    )
    for kind in kinds:
        if isinstance(kind, str) and (role := _ROLES.get(_CLASS.sub("", kind.lower()))) is not None:
            return role
    if isinstance(item.get("source"), str) and str(item.get("type", item.get(values.CLASS))).endswith("Message"):
        return "user" if item["source"].lower() == "user" else "assistant"  # AutoGen
    inner = next((item[key] for key in _HOLDERS if isinstance(item.get(key), Mapping)), None)
    return None if inner is None else _role(inner)


def _kind(part: Mapping[str, Any]) -> str:
    found = next((part[key] for key in ("type", "part_kind", "block_type", "content_type", values.CLASS)
                  if isinstance(part.get(key), str)), "")  # fmt: skip
    return str(found).lower().replace("-", "_")


def _is_one_of(part: Mapping[str, Any], names: Sequence[str]) -> bool:
    kind = _kind(part)
    said = any(name in kind or name in kind.replace("_", "") for name in names)
    return said or _find_inner(part, names) is not None


def _read_part(part: Any, role: str) -> str | None:
    """The text of a part, or None."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("thought") is True:
        return None
    if _SILENT.search(_kind(part)) is not None and not (role == "tool" and _is_one_of(part, _RESULTS)):
        return None
    for key in _PART_TEXTS:
        found = part.get(key)
        if isinstance(found, str):
            return found
        if isinstance(found, Mapping | list):
            return join_parts(found, role) or (values.dump_text(found) if role == "tool" else None)
    inner = _find_inner(part, _RESULTS) if role == "tool" else None
    if inner is None:
        return None
    return join_parts(inner.get("content", inner.get("response")), role) or values.dump_text(inner)


def _find_inner(part: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any] | None:
    """The object under one of the names, such as `functionCall`."""
    return next((value for key, value in part.items() if isinstance(value, Mapping) and key.lower() in names), None)


def _read_calls(message: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    given = message.get("tool_calls")
    listed = [call for call in given if isinstance(call, Mapping)] if isinstance(given, list | tuple) else []
    for call in (*listed, *(part for part in parts if _is_one_of(part, _CALLS) and not _is_one_of(part, _RESULTS))):
        inner = call if (found := _find_inner(call, _CALLS)) is None else found
        named = inner["function"] if isinstance(inner.get("function"), Mapping) else inner
        keys = {"id": ("id", "tool_call_id", "toolUseId"), "name": ("name", "tool_name"),
                "arguments": ("arguments", "args", "input")}  # fmt: skip
        said = {name: next((one[key] for one in (named, inner) for key in known if one.get(key) is not None), None)
                for name, known in keys.items()}  # fmt: skip
        yield {name: value for name, value in said.items() if value is not None}


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Flattened keys as objects and lists: `message.contents.0.text` is the text of the first of the contents."""
    found: dict[str, Any] = {}
    for key, value in flat.items():
        place, steps = found, key.split(".")
        for step in steps[:-1]:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            place[steps[-1]] = value
    return {key: _list_numbered(value) for key, value in found.items()}


def _list_numbered(found: Any) -> Any:
    """The objects whose keys are numbers as lists."""
    if not isinstance(found, dict):
        return found
    inner = {key: _list_numbered(value) for key, value in found.items()}
    is_list = bool(inner) and all(key.isdecimal() and len(key) < 9 for key in inner)
    return [inner[key] for key in sorted(inner, key=int)] if is_list else inner


Turn: TypeAlias = Mapping[str, Any]
"""A message of a conversation: `role` is user, assistant, system or tool, and `content` is text."""


def read_turns(value: Any) -> tuple[Turn, ...] | None:
    """The turns in a list of messages, an object with `messages`, or either as JSON; None for anything else."""
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return None
        value = values.load_json(value)
    if isinstance(value, Mapping):
        value = value.get(MESSAGES)
    if not isinstance(value, list | tuple) or not value:
        return None
    turns = [turn for item in value if (turn := _read_turn(item)) is not None]
    return tuple(turns) if len(turns) == len(value) else None


def find_question(turns: Sequence[Turn]) -> int | None:
    """The place of the last turn of the user that says something; None if there is none."""
    places = (place for place, turn in enumerate(turns) if turn["role"] == "user" and turn["content"].strip())
    return max(places, default=None)


def list_until_question(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The turns up to the question: what a system gets. What came after it, such as a gold answer, is left out."""
    place = find_question(turns)
    return () if place is None else tuple(turns[: place + 1])


def find_last_answer(turns: Sequence[Turn]) -> str | None:
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
    for call in _read_calls(turn, ()):
        given, identity = call.get("arguments", ""), call.get("id")
        shown = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        yield str(call.get("name") or "tool"), shown, None if identity is None else str(identity)


def _read_turn(item: Any) -> Turn | None:
    if not isinstance(item, Mapping):
        return None
    inner, role = _inner(item), _role(item)
    content = inner.get("content", inner.get("text"))
    kept = {key: inner[key] for key in _KEPT if inner.get(key)}
    is_said = isinstance(content, str | list | tuple) or kept.keys() - {"name"}  # DeepEval's calls have only a name
    if role not in _SPEAKERS or not is_said:
        return None
    return {"role": role, "content": join_parts(content, role) or "", **kept}
