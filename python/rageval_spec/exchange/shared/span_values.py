"""What one span says: its kind, question, answer, documents, tokens and feedback, in any of the known conventions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from rageval_spec.data.trace import Document, Feedback
from rageval_spec.exchange.shared.conventions import (
    COMPLETION_EVENTS,
    EVALUATION,
    EVALUATION_EVENT,
    KINDS,
    PROMPT_EVENTS,
    find,
    find_all,
    load_json,
)
from rageval_spec.exchange.shared.spans import ERROR, Span
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

Speaker = Literal["user", "annotator", "program", "unknown"]
_USERS, _ASSISTANTS = ("user",), ("assistant",)
_TEXTS = ("document.content", "content", "text", "page_content", "document", "chunk", "body")
_IDS = ("document.id", "id", "doc_id", "document_id", "chunk_id", "key")
_SCORES = ("document.score", "score", "relevance_score", "similarity")
_METADATA = ("document.metadata", "metadata")
_SOURCES: Mapping[str, Speaker] = {
    "human": "annotator", "user": "user", "llm": "program", "code": "program"
}  # fmt: skip


def kind_of(span: Span) -> str:
    """The span's kind: one of the values of `KINDS`, or "" if it says none that is known."""
    found = find(span.attributes, "kind")
    if not isinstance(found, str):
        return ""
    return KINDS.get(found.lower(), "")


def question_of(span: Span) -> str | None:
    """What was asked: of a model the last message of the user, of a retriever the query, else the input."""
    kind = kind_of(span)
    if kind in ("retrieval", "rerank") and (query := find(span.attributes, "query")):
        return dump_text(query)
    if kind == "model" and (text := last_text(messages_of(span, "input"), _USERS)):
        return text
    found = find(span.attributes, "input")
    if found is None:
        return last_text(messages_of(span, "input"), _USERS)
    return pick_text(found, QUESTION_KEYS, _USERS, is_plain=_is_plain(span, "input"))


def answer_of(span: Span) -> str | None:
    """What came out: of a model its message, else the output."""
    if kind_of(span) == "model" and (text := last_text(messages_of(span, "output"), _ASSISTANTS)):
        return text
    found = find(span.attributes, "output")
    if found is None:
        return last_text(messages_of(span, "output"), _ASSISTANTS)
    return pick_text(found, ANSWER_KEYS, _ASSISTANTS, is_plain=_is_plain(span, "output"))


def input_of(span: Span) -> str | None:
    """The whole input as text, or JSON as text."""
    found = find(span.attributes, "input") or find(span.attributes, "query")
    return dump_text(found if found is not None else messages_of(span, "input"))


def output_of(span: Span) -> str | None:
    """The whole output as text, or JSON as text."""
    found = find(span.attributes, "output")
    if found is not None:
        return dump_text(found)
    messages = messages_of(span, "output")
    is_text = len(messages) == 1 and messages[0].keys() == {"role", "content"}
    return dump_text(messages[0]["content"] if is_text else messages)


def _is_plain(span: Span, end: str) -> bool:
    return span.attributes.get(f"{end}.mime_type") == "text/plain"


def messages_of(span: Span, end: Literal["input", "output"]) -> list[dict[str, Any]]:
    """The messages that a model got (`input`) or wrote (`output`), as chat messages; [] if it recorded none."""
    role = "user" if end == "input" else "assistant"
    for found in find_all(span.attributes, f"{end}_messages"):
        return [message if _has_role(item) else {**message, "role": role}
                for item, message in zip(found, read_messages(found), strict=True)]  # fmt: skip
    text = find(span.attributes, f"{end}_messages")
    if isinstance(text, str):
        return [{"role": role, "content": text}]
    for event in span.events:
        if event.name in (PROMPT_EVENTS if end == "input" else COMPLETION_EVENTS):
            value = next((one for key, one in event.attributes.items() if key in _EVENT_TEXTS), None)
            if value is not None:
                return [{**message, "role": role} if isinstance(value, str) and value[:1] not in "[{" else message
                        for message in read_messages(value)]  # fmt: skip
    return []


_EVENT_TEXTS = ("gen_ai.prompt", "gen_ai.completion", "content", "message")


def _has_role(item: Mapping[str, Any]) -> bool:
    return "role" in item or "message.role" in item or isinstance(item.get("message"), Mapping)


def documents_of(span: Span) -> tuple[Document, ...] | None:
    """The documents that a span retrieved, best first; None if it recorded none."""
    kind = kind_of(span)
    if kind == "model":
        return None
    for found in find_all(span.attributes, "documents"):
        return tuple(map(_read_document, found))
    if kind not in ("retrieval", "rerank"):
        return None
    output = load_json(find(span.attributes, "output"))
    if isinstance(output, Mapping):
        output = next((output[key] for key in ("documents", "results", "hits") if isinstance(output.get(key), list)), 0)
    if isinstance(output, list) and all(isinstance(item, str | Mapping) for item in output):
        return tuple(Document(item) if isinstance(item, str) else _read_document(item) for item in output)
    return None


def _read_document(found: Mapping[str, Any]) -> Document:
    metadata = _first(found, _METADATA)
    metadata = load_json(metadata) if isinstance(metadata, str) else metadata
    metadata = clean_json(metadata) if isinstance(metadata, Mapping) else {}
    doc_id = _first(found, _IDS)
    if doc_id is None:
        doc_id = _first(metadata, ("doc_id", "doc_uri", "source", "id"))
    text = _first(found, _TEXTS)
    shown = None if doc_id is None or isinstance(doc_id, list | dict) else clean_text(str(doc_id))
    return Document(None if text is None else dump_text(text) or "", shown, amount_of(_first(found, _SCORES)), metadata)


def _first(found: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = found.get(key)
        if value is not None:
            return value
    return None


def amount_of(value: Any) -> float | None:
    """A finite number, also of a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def count_of(value: Any) -> int | None:
    """A whole number of at least 0, also of a text; None for anything else."""
    number = amount_of(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def cost_of(span: Span) -> float | None:
    """The cost of a call of a model in US dollars: the total, or that of input and output together."""
    total = amount_of(find(span.attributes, "cost"))
    if total is not None:
        return total
    parts = [amount_of(find(span.attributes, meaning)) for meaning in ("input_cost", "output_cost")]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def text_of(span: Span, meaning: str) -> str | None:
    """An attribute such as the session as text; a number becomes its digits. None if there is none."""
    found = find(span.attributes, meaning)
    return None if found is None or isinstance(found, list | dict) else clean_text(str(found)) or None


def error_of(span: Span) -> str | None:
    """Why the span failed: its status' message, or that of its exception; None if it did not fail."""
    if span.status != ERROR:
        return None
    if span.message:
        return clean_text(span.message)
    for event in reversed(span.events):
        if event.name == "exception":
            shown = (event.attributes.get("exception.type"), event.attributes.get("exception.message"))
            return clean_text(": ".join(str(part) for part in shown if part)) or "failed"
    return "failed"


def feedback_of(span: Span) -> Iterator[Feedback]:
    """What people and programs said of a span: annotations, evaluations and events."""
    for event in span.events:
        if event.name == EVALUATION_EVENT:
            yield _read_feedback({part: event.attributes.get(key) for part, key in EVALUATION.items()}, "program", None)
    if any("annotation." in key or "evaluation." in key for key in span.attributes):
        for found in find_all(span.attributes, "feedback"):
            for item in found:
                short = {key.rpartition(".")[2]: value for key, value in item.items()}
                said = {"value": short.get("score"), "comment": short.get("explanation"), **short}
                source = _SOURCES.get(str(short.get("annotator_kind", "")).lower())
                yield _read_feedback(said, source or "unknown", dump_text(short.get("identifier")))


def _read_feedback(said: Mapping[str, Any], source: Speaker, author: str | None) -> Feedback:
    name = dump_text(said.get("name")) or "evaluation"
    label, comment = dump_text(said.get("label")), dump_text(said.get("comment"))
    return Feedback(name, amount_of(said.get("value")), label, comment, source, author)
