"""Spans, the trees that they form, and what each one says.

A span is one timed step of a program, as OpenTelemetry and the tools built on it record it. Its kind, question,
answer, documents, tokens and feedback are read in any of the known conventions. A tree shows at which spans of a
trace a question was asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from rageval_spec.data.traces import Document, Feedback
from rageval_spec.recorded import questions_and_answers, span_attributes

UNSET, OK, ERROR = 0, 1, 2
SECOND = 1_000_000_000
"""In nanoseconds."""
_LATEST = 253_402_300_799 * SECOND
"""The last second of the year 9999."""


class SpanEvent(NamedTuple):
    """Something that happened during a span; `time` is in nanoseconds since 1970."""

    name: str
    time: int = 0
    attributes: Mapping[str, Any] = {}


class Link(NamedTuple):
    """A span that this one refers to."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Any] = {}


class Span(NamedTuple):
    """One step, with its place among the others.

    Attributes:
        trace_id, span_id: 32 and 16 hexadecimal digits, lower case; another tool's own ids may have another form.
        parent_id: the span that this one is part of; None for a root.
        start, end: nanoseconds since 1970; 0 if not known.
        attributes: text, numbers, Booleans, lists and objects by name, as they were recorded.
        status: `UNSET`, `OK` or `ERROR`; `message` says what went wrong.
        resource: attributes of the program that recorded the span, such as `service.name`.
        kind: OpenTelemetry's kind of span as a number: 1 internal, 2 server, 3 client.
        place: where the span was read, for messages.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    start: int = 0
    end: int = 0
    attributes: Mapping[str, Any] = {}
    events: tuple[SpanEvent, ...] = ()
    links: tuple[Link, ...] = ()
    status: int = UNSET
    message: str = ""
    resource: Mapping[str, Any] = {}
    kind: int = 0
    place: str = ""


def seconds_of(span: Span) -> float | None:
    """How long a span took; None if it has no times, or does not end after it begins."""
    return (span.end - span.start) / SECOND if 0 < span.start < span.end else None


def format_nanoseconds(time: int) -> str | None:
    """A time in nanoseconds since 1970 as ISO 8601 in UTC, cut to microseconds; None for 0 and after the year 9999."""
    if not 0 < time <= _LATEST:
        return None
    seconds, rest = divmod(time, SECOND)
    return format_moment(datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000))


_ASKED = ("", "chain", "agent")
"""Kinds of spans that can be asked a question of their own; the others are steps of an answer."""


class SpanTree:
    """The spans of one trace, in whatever order they came, each once."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """Find the children of each span. Of two spans with one id, the one that ended later counts."""
        found: dict[str, Span] = {}
        for span in spans:
            before = found.get(span.span_id)
            if before is None or span.end > before.end:
                found[span.span_id] = span
        ordered = sorted(found.values(), key=lambda span: (span.start, span.span_id))
        self._children: dict[str, list[Span]] = {}
        self.roots: list[Span] = []
        for span in ordered:
            if span.parent_id is None or span.parent_id not in found:
                self.roots.append(span)
            else:
                self._children.setdefault(span.parent_id, []).append(span)
        self.spans = ordered

    def walk(self, root: Span) -> Iterator[Span]:
        """A span and all below it, parents first; spans that are their own ancestors are passed over."""
        waiting, seen = [root], {root.span_id}
        while waiting:
            span = waiting.pop()
            yield span
            below = [child for child in self._children.get(span.span_id, ()) if child.span_id not in seen]
            seen.update(child.span_id for child in below)
            waiting.extend(reversed(below))

    def questions(self) -> list[tuple[Span, list[Span]]]:
        """Each span at which a question was asked, with all spans that belong to the question, itself included.

        That is the root, if it has an input. Otherwise the topmost chains and agents below that have an input and an
        output; if there are several, each is a question of its own, unless all ask the same: those are steps. Without
        such a span, or without a root, the trace is one question, whose first and last spans with texts are its ends.
        """
        asked = [span for root in self.roots for span in self._topmost(root)]
        if len({question_of(span) for span in asked}) > 1:
            return [(span, list(self.walk(span))) for span in asked]
        if len(asked) == 1:
            return [(asked[0], self.spans)]
        return [(self.spans[0], self.spans)] if self.spans else []

    def _topmost(self, root: Span) -> Iterator[Span]:
        """The topmost spans at or below a root that were asked something. A root may have failed to answer."""
        if kind_of(root) in _ASKED and question_of(root) is not None:
            yield root
            return
        waiting, seen = [root], {root.span_id}
        while waiting:
            span = waiting.pop()
            below = [child for child in self._children.get(span.span_id, ()) if child.span_id not in seen]
            seen.update(child.span_id for child in below)
            if span is not root and kind_of(span) in _ASKED and question_of(span) and answer_of(span):
                yield span
            else:
                waiting.extend(reversed(below))


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
    found = span_attributes.find(span.attributes, "kind")
    if not isinstance(found, str):
        return ""
    return span_attributes.KINDS.get(found.lower(), "")


def question_of(span: Span) -> str | None:
    """What was asked: of a model the last message of the user, of a retriever the query, else the input."""
    kind = kind_of(span)
    if kind in ("retrieval", "rerank") and (query := span_attributes.find(span.attributes, "query")):
        return questions_and_answers.dump_text(query)
    if kind == "model" and (text := questions_and_answers.last_text(messages_of(span, "input"), _USERS)):
        return text
    found = span_attributes.find(span.attributes, "input")
    if found is None:
        return questions_and_answers.last_text(messages_of(span, "input"), _USERS)
    return questions_and_answers.pick_text(
        found, questions_and_answers.SPAN_QUESTION_KEYS, _USERS, is_plain=_is_plain(span, "input")
    )


def answer_of(span: Span) -> str | None:
    """What came out: of a model its message, else the output."""
    if kind_of(span) == "model" and (text := questions_and_answers.last_text(messages_of(span, "output"), _ASSISTANTS)):
        return text
    found = span_attributes.find(span.attributes, "output")
    if found is None:
        return questions_and_answers.last_text(messages_of(span, "output"), _ASSISTANTS)
    return questions_and_answers.pick_text(
        found, questions_and_answers.SPAN_ANSWER_KEYS, _ASSISTANTS, is_plain=_is_plain(span, "output")
    )


def input_of(span: Span) -> str | None:
    """The whole input as text, or JSON as text."""
    found = span_attributes.find(span.attributes, "input") or span_attributes.find(span.attributes, "query")
    return questions_and_answers.dump_text(found if found is not None else messages_of(span, "input"))


def output_of(span: Span) -> str | None:
    """The whole output as text, or JSON as text."""
    found = span_attributes.find(span.attributes, "output")
    if found is not None:
        return questions_and_answers.dump_text(found)
    messages = messages_of(span, "output")
    is_text = len(messages) == 1 and messages[0].keys() == {"role", "content"}
    return questions_and_answers.dump_text(messages[0]["content"] if is_text else messages)


def _is_plain(span: Span, end: str) -> bool:
    return span.attributes.get(f"{end}.mime_type") == "text/plain"


def messages_of(span: Span, end: Literal["input", "output"]) -> list[dict[str, Any]]:
    """The messages that a model got (`input`) or wrote (`output`), as chat messages; [] if it recorded none."""
    role = "user" if end == "input" else "assistant"
    for found in span_attributes.find_all(span.attributes, f"{end}_messages"):
        return [message if _has_role(item) else {**message, "role": role}
                for item, message in zip(found, questions_and_answers.read_messages(found), strict=True)]  # fmt: skip
    text = span_attributes.find(span.attributes, f"{end}_messages")
    if isinstance(text, str):
        return [{"role": role, "content": text}]
    for event in span.events:
        if event.name in (span_attributes.PROMPT_EVENTS if end == "input" else span_attributes.COMPLETION_EVENTS):
            value = next((one for key, one in event.attributes.items() if key in _EVENT_TEXTS), None)
            if value is not None:
                return [{**message, "role": role} if isinstance(value, str) and value[:1] not in "[{" else message
                        for message in questions_and_answers.read_messages(value)]  # fmt: skip
    return []


_EVENT_TEXTS = ("gen_ai.prompt", "gen_ai.completion", "content", "message")


def _has_role(item: Mapping[str, Any]) -> bool:
    return "role" in item or "message.role" in item or isinstance(item.get("message"), Mapping)


def documents_of(span: Span) -> tuple[Document, ...] | None:
    """The documents that a span retrieved, best first; None if it recorded none."""
    kind = kind_of(span)
    if kind == "model":
        return None
    for found in span_attributes.find_all(span.attributes, "documents"):
        return tuple(map(_read_document, found))
    if kind not in ("retrieval", "rerank"):
        return None
    output = span_attributes.load_json(span_attributes.find(span.attributes, "output"))
    if isinstance(output, Mapping):
        output = next((output[key] for key in ("documents", "results", "hits") if isinstance(output.get(key), list)), 0)
    if isinstance(output, list) and all(isinstance(item, str | Mapping) for item in output):
        return tuple(Document(item) if isinstance(item, str) else _read_document(item) for item in output)
    return None


def _read_document(found: Mapping[str, Any]) -> Document:
    metadata = _first(found, _METADATA)
    metadata = span_attributes.load_json(metadata) if isinstance(metadata, str) else metadata
    metadata = questions_and_answers.clean_json(metadata) if isinstance(metadata, Mapping) else {}
    doc_id = _first(found, _IDS)
    if doc_id is None:
        doc_id = _first(metadata, ("doc_id", "doc_uri", "source", "id"))
    text = _first(found, _TEXTS)
    shown = None if doc_id is None or isinstance(doc_id, list | dict) else questions_and_answers.clean_text(str(doc_id))
    return Document(
        None if text is None else questions_and_answers.dump_text(text) or "",
        shown,
        amount_of(_first(found, _SCORES)),
        metadata,
    )


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
    total = amount_of(span_attributes.find(span.attributes, "cost"))
    if total is not None:
        return total
    parts = [amount_of(span_attributes.find(span.attributes, meaning)) for meaning in ("input_cost", "output_cost")]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def text_of(span: Span, meaning: str) -> str | None:
    """An attribute such as the session as text; a number becomes its digits. None if there is none."""
    found = span_attributes.find(span.attributes, meaning)
    return (
        None
        if found is None or isinstance(found, list | dict)
        else questions_and_answers.clean_text(str(found)) or None
    )


def error_of(span: Span) -> str | None:
    """Why the span failed: its status' message, or that of its exception; None if it did not fail."""
    if span.status != ERROR:
        return None
    if span.message:
        return questions_and_answers.clean_text(span.message)
    for event in reversed(span.events):
        if event.name == "exception":
            shown = (event.attributes.get("exception.type"), event.attributes.get("exception.message"))
            return questions_and_answers.clean_text(": ".join(str(part) for part in shown if part)) or "failed"
    return "failed"


def feedback_of(span: Span) -> Iterator[Feedback]:
    """What people and programs said of a span: annotations, evaluations and events."""
    for event in span.events:
        if event.name == span_attributes.EVALUATION_EVENT:
            yield _read_feedback(
                {part: event.attributes.get(key) for part, key in span_attributes.EVALUATION.items()}, "program", None
            )
    if any("annotation." in key or "evaluation." in key for key in span.attributes):
        for found in span_attributes.find_all(span.attributes, "feedback"):
            for item in found:
                short = {key.rpartition(".")[2]: value for key, value in item.items()}
                said = {"value": short.get("score"), "comment": short.get("explanation"), **short}
                source = _SOURCES.get(str(short.get("annotator_kind", "")).lower())
                yield _read_feedback(
                    said, source or "unknown", questions_and_answers.dump_text(short.get("identifier"))
                )


def _read_feedback(said: Mapping[str, Any], source: Speaker, author: str | None) -> Feedback:
    name = questions_and_answers.dump_text(said.get("name")) or "evaluation"
    label, comment = (
        questions_and_answers.dump_text(said.get("label")),
        questions_and_answers.dump_text(said.get("comment")),
    )
    return Feedback(name, amount_of(said.get("value")), label, comment, source, author)


def format_moment(moment: datetime) -> str:
    """ISO 8601 in UTC with `Z`: `2026-03-01T12:00:00Z`; microseconds only if there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
