"""Finds the question, the answer and the documents in what a program recorded as input and output of a step.

What is recorded has no fixed form: plain text, JSON as text, the arguments of a function, chat messages, a chain's
mapping, a retriever's documents. These functions know the usual forms of LangChain, LlamaIndex, OpenAI and of the
tools' own decorators. They never fail; what they do not recognise is None.

Questions, answers and gold answers are taken from named paths, or from the usual places.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rageval_spec.data.traces import Document
from rageval_spec.recorded.span_attributes import load_json

if TYPE_CHECKING:
    from rageval_spec.recorded.json_path import JsonPath


QUESTION_KEYS = (
    "question", "query", "user_input", "input", "user_query", "prompt", "message", "search_query", "text", "content",
    "q",
)  # fmt: skip
ANSWER_KEYS = (
    "answer", "response", "actual_output", "output", "output_text", "completion", "result", "generation", "message",
    "content", "text", "generated_text", "choices", "generations", "return_value",
)  # fmt: skip
DOCUMENT_KEYS = (
    "documents", "contexts", "retrieved_contexts", "retrieval_context", "source_documents", "context", "docs",
    "sources", "nodes", "source_nodes", "results", "matches", "hits", "chunks", "passages", "output",
)  # fmt: skip
TEXT_KEYS = ("text", "page_content", "pageContent", "content", "document", "chunk", "passage", "body", "snippet")
ID_KEYS = ("id", "doc_id", "document_id", "documentId", "docId", "chunk_id", "id_", "_id", "node_id")
SCORE_KEYS = ("score", "relevance_score", "similarity", "similarity_score", "_score", "rerank_score")
_USERS, _SYSTEMS = frozenset({"user", "human"}), frozenset({"assistant", "ai", "model", "bot"})
_INNER = ("node", "document", "kwargs", "payload")
"""Keys whose object holds a document, beside its score."""
_DEEPEST = 6


def parse_text(content: Any) -> Any:
    """What a text holds: its JSON if it is an object, a list or a quoted text, else the text itself."""
    if not isinstance(content, str) or content.lstrip()[:1] not in ("{", "[", '"'):
        return content
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content


def find_question(content: Any) -> str | None:
    """The question in a recorded input; of chat messages, the last one of the user."""
    return _find(content, QUESTION_KEYS, _USERS, 0)


def find_recorded_answer(content: Any) -> str | None:
    """The answer in a recorded output; of chat messages, the last one of the model.

    A text that happens to be JSON of no known form is the answer itself; "" if an answer is there and empty.
    """
    found = _find(content, ANSWER_KEYS, _SYSTEMS, 0)
    if found is not None:
        return found
    parsed = parse_text(content)
    if isinstance(parsed, Mapping) and any(parsed.get(key) == "" for key in ANSWER_KEYS):
        return ""
    return content if isinstance(content, str) and not list_messages(content) else None


def list_messages(content: Any) -> tuple[Mapping[str, Any], ...]:
    """The chat messages in a recorded input, as `{role, content}`; () if it holds no more than a question."""
    content = parse_text(content)
    if isinstance(content, Mapping):
        content = parse_text(content.get("messages", content.get("chat_history")))
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], list):
        content = content[0]
    if not isinstance(content, list) or not content or not all(map(_is_message, content)):
        return ()
    found = [{"role": _role(item), "content": _message_text(item) or ""} for item in content]
    return tuple(found) if len(found) > 1 else ()


def find_documents(content: Any) -> tuple[Document, ...] | None:
    """The documents that a retriever recorded as its output, best first; None if it holds no list of them."""
    return _find_documents(content, 0)


def find_contexts(content: Any) -> tuple[Document, ...] | None:
    """The documents that a whole answer names under a key such as `contexts`; None without such a key."""
    content = parse_text(content)
    if not isinstance(content, Mapping):
        return None
    for key in DOCUMENT_KEYS[:6]:
        if isinstance(parse_text(content.get(key)), list):
            return _find_documents(content[key], 1)
    return None


def read_number(found: Any) -> float | None:
    """A finite number, also one that is written as text; None for anything else."""
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    try:
        number = float(found)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def read_count(found: Any) -> int | None:
    """A number that is a count: not negative, and rounded; None for anything else."""
    number = read_number(found)
    return None if number is None or number < 0 or number >= 2**53 else round(number)


def read_time(found: Any) -> datetime | None:
    """A moment in UTC: a `datetime`, or ISO 8601 text, in UTC if it names no zone; None for anything else."""
    try:
        moment = datetime.fromisoformat(found.strip()) if isinstance(found, str) else found
        if not isinstance(moment, datetime):
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def write_time(moment: datetime | None) -> str | None:
    """The moment as ISO 8601 text with `Z`."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def read_text(found: Any) -> str | None:
    """A text that is not empty; a number becomes text; None for anything else."""
    if isinstance(found, str):
        return found or None
    return str(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def write_text(found: Any) -> str | None:
    """A text as it is, anything else as JSON; None for null."""
    return found if isinstance(found, str) or found is None else json.dumps(clean(found), ensure_ascii=False)


def clean(found: Any, depth: int = 0) -> Any:
    """JSON types only: NaN and infinities become null, other types their text, and what nests too deeply "..."."""
    kind = type(found)
    if kind is str or found is None or kind is int or kind is bool:
        return found
    if kind is float:
        return found if math.isfinite(found) else None
    if depth > 20:
        return "..."
    if kind is dict or isinstance(found, Mapping):
        return {str(key): value if type(value) is str else clean(value, depth + 1) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [clean(value, depth + 1) for value in found]
    return str(found)


def _find(content: Any, keys: Sequence[str], roles: frozenset[str], depth: int) -> str | None:
    if depth == 0:
        content = parse_text(content)
    if isinstance(content, str):
        return content
    if depth > _DEEPEST:
        return None
    if isinstance(content, list):
        return _find_in_list(content, keys, roles, depth)
    return _find_in_mapping(content, keys, roles, depth) if isinstance(content, Mapping) else None


def _find_in_mapping(content: Mapping[str, Any], keys: Sequence[str], roles: frozenset[str], depth: int) -> str | None:
    if _is_message(content):
        return _message_text(content)
    tried = [content[key] for key in keys if content.get(key) not in (None, "", [], {})]
    messages = parse_text(content.get("messages"))
    for value in (*([messages] if isinstance(messages, list) else []), *tried, *_arguments(content)):
        if (found := _find(value, keys, roles, depth + 1)) is not None:
            return found
    texts = [value for value in content.values() if isinstance(value, str) and value]
    return texts[0] if len(texts) == 1 and len(content) == 1 else None


def _arguments(content: Mapping[str, Any]) -> Iterator[Any]:
    """The arguments of a function whose call was recorded: `{"args": [...], "kwargs": {...}}`."""
    for key in ("kwargs", "args"):
        value = content.get(key)
        if isinstance(value, Mapping):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, str | Mapping | list))


def _find_in_list(content: list[Any], keys: Sequence[str], roles: frozenset[str], depth: int) -> str | None:
    said = [item for item in content if _is_message(item)]
    if said:
        wanted = [item for item in said if _role(item) in roles]
        texts = [text for item in wanted if (text := _message_text(item))]
        return texts[-1] if texts else None
    parts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
    if parts and len(parts) == len(content):
        return "".join(part for part in parts if isinstance(part, str)) or None
    return _find(content[0], keys, roles, depth + 1) if content and not isinstance(content[0], str) else _first(content)


def _first(content: Sequence[Any]) -> str | None:
    return content[0] if len(content) == 1 and isinstance(content[0], str) else None


def _is_message(item: Any) -> bool:
    return _role(item) is not None


def _role(item: Any) -> str | None:
    """The role of a chat message in OpenAI's, LangChain's or LlamaIndex's form; None if it is no message."""
    if isinstance(item, list | tuple) and len(item) == 2 and all(isinstance(part, str) for part in item):
        role = item[0].lower()
        return role if role in _USERS | _SYSTEMS | {"system", "tool"} else None
    if not isinstance(item, Mapping):
        return None
    role = item.get("role")
    if isinstance(role, str) and ("content" in item or "parts" in item or "tool_calls" in item):
        return role.lower()
    if item.get("type") in ("human", "ai", "system", "tool") and "content" in item:
        return str(item["type"])
    name = item["id"][-1] if isinstance(item.get("id"), list) and item["id"] and "kwargs" in item else None
    return {"HumanMessage": "human", "AIMessage": "ai", "SystemMessage": "system", "ToolMessage": "tool"}.get(
        str(name).replace("Chunk", "")
    )


def _message_text(item: Any) -> str | None:
    if isinstance(item, list | tuple):
        return str(item[1])
    if isinstance(item.get("kwargs"), Mapping) and "content" not in item:
        item = item["kwargs"]
    content = item.get("content", item.get("parts"))
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (
            part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | dict)
        )
        return "".join(text for text in texts if isinstance(text, str)) or None
    return None


def _find_documents(content: Any, depth: int) -> tuple[Document, ...] | None:
    content = parse_text(content)
    if isinstance(content, list):
        if len(content) == 1 and isinstance(content[0], list) and _read_document(content[0]) is None:
            content = content[0]
        read = [document for item in content if (document := _read_document(item)) is not None]
        return tuple(read) if len(read) == len(content) or read else None
    if not isinstance(content, Mapping) or depth > 2:
        return None
    for key in DOCUMENT_KEYS:
        if key in content and (found := _find_documents(content[key], depth + 1)) is not None:
            return found
    return None


def _read_document(item: Any) -> Document | None:
    if isinstance(item, str):
        return Document(text=item)
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str | Mapping):
        document, score = _read_document(item[0]), read_number(item[1])
        return document and Document(document.text, document.doc_id, score, document.metadata)
    if not isinstance(item, Mapping):
        return None
    nothing: Mapping[str, Any] = {}
    inner = next((item[key] for key in _INNER if isinstance(item.get(key), Mapping)), nothing)
    metadata = next((one["metadata"] for one in (item, inner) if isinstance(one.get("metadata"), Mapping)), nothing)
    text = _pick_value((item, inner), TEXT_KEYS, _plain)
    doc_id = _pick_value((item, inner, metadata), ID_KEYS, read_text) or _pick_value(
        (metadata, item), ("source", "url"), read_text
    )
    if text is None and doc_id is None:
        return None
    return Document(text, doc_id, _pick_value((item, inner, metadata), SCORE_KEYS, read_number), clean(metadata))


def _plain(found: Any) -> str | None:
    return found if isinstance(found, str) else None


def _pick_value(places: Iterable[Mapping[str, Any]], keys: Sequence[str], read: Any) -> Any:
    for place in places:
        for key in keys if place else ():
            if key in place and (found := read(place[key])) is not None:
                return found
    return None


SPAN_QUESTION_KEYS = (
    "question",
    "query",
    "user_input",
    "user_message",
    "input",
    "prompt",
    "message",
    "messages",
    "text",
)
SPAN_ANSWER_KEYS = (
    "answer",
    "response",
    "output",
    "actual_output",
    "result",
    "completion",
    "message",
    "messages",
    "text",
)
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
    picked = _pick_key(value, keys, roles, is_plain=is_plain)
    return None if picked is None else clean_text(picked)


def _pick_key(value: Any, keys: Sequence[str], roles: Sequence[str], *, is_plain: bool) -> str | None:
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


_GOLD = ("reference", "ground_truth", "expected_answer", "expected_output", "expected")
_RELEVANT = ("relevant_doc_ids", "relevant_ids", "relevant", "doc_ids", "reference_context_ids")


class RecordedPaths:
    """Finds the question in an input and the answer in an output."""

    def __init__(self, question: JsonPath | None = None, answer: JsonPath | None = None) -> None:
        """Look at the usual places for what has no path."""
        self._question = question
        self._answer = answer

    def question(self, found: Any) -> str | None:
        """The question in an input; None if there is none."""
        return find_question(found) if self._question is None else _follow(self._question, found)

    def answer(self, found: Any) -> str | None:
        """The answer in an output; None if there is none."""
        return find_recorded_answer(found) if self._answer is None else _follow(self._answer, found)

    def references(self, expected: Any) -> tuple[str, ...]:
        """The gold answers in an expected output; an unknown form as JSON text."""
        expected = parse_text(expected)
        if expected is None or expected in ("", {}, []):
            return ()
        if isinstance(expected, list) and all(isinstance(one, str) for one in expected):
            return tuple(expected)
        if isinstance(expected, Mapping):
            for key in _GOLD:
                if (text := read_text(expected.get(key))) is not None:
                    return (text,)
        found = self.answer(expected)
        text = found if found is not None else write_text(expected)
        return () if text is None else (text,)


def read_relevant(*places: Any) -> tuple[str, ...] | None:
    """The ids of relevant documents in the first of some mappings that names them; None if none does."""
    for place in places:
        for key in _RELEVANT if isinstance(place, Mapping) else ():
            if isinstance(place.get(key), list):
                return tuple(str(one) for one in place[key])
    return None


def _follow(path: JsonPath, found: Any) -> str | None:
    from rageval_spec.recorded.json_path import PathError

    try:
        value = path.find(parse_text(found))
    except PathError:
        return None
    return write_text(value[0] if path.is_plural and len(value) == 1 else value)
