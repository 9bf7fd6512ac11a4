"""Spans, the trees that they form, and what each one says.

A span is one timed step of a program, as OpenTelemetry and the tools built on it record it. Its kind, question,
answer, documents, tokens and feedback are read in any of the known conventions. A tree shows at which spans of a
trace a question was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeGuard

from rageval_spec.data.traces import Document, Feedback
from rageval_spec.recorded import messages, questions_and_answers, span_attributes, values

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


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Mapping[str, str] = {meaning: names[0] for meaning, names in span_attributes.NAMES.items()}


def make_span(
    trace_id: str, span_id: str, parent_id: str | None, name: str, start: int, end: int, error: str | None, **parts: Any
) -> Span:
    """A span of a tool that has names of its own: `parts` are its attributes by their meaning in `span_attributes`."""
    attributes = {_FIRST[meaning]: value for meaning, value in parts.items() if value is not None}
    status = UNSET if error is None else ERROR
    return Span(trace_id, span_id, parent_id, name, start, end, attributes, status=status, message=error or "")


def nanoseconds_of(found: Any) -> int:
    """Nanoseconds since 1970 of a recorded time; 0 if it is none."""
    moment = values.read_time(found)
    return 0 if moment is None else max(0, (moment - _EPOCH) // timedelta(microseconds=1)) * 1000


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
            parent = None if span.parent_id is None else found.get(span.parent_id)
            if parent is None or _is_leaked(span, parent):
                self.roots.append(span)
            else:
                self._children.setdefault(parent.span_id, []).append(span)
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

        That is the root, if it has an input; so is what was asked below a span that had ended before, because programs
        that do not close their traces put the next question below the last one. Otherwise the topmost chains and
        agents below that have an input and an output; if there are several, each is a question of its own, unless all
        ask the same: those are steps. Without
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
        if kind_of(root) in _ASKED and input_of(root) is not None:
            yield root
            return
        waiting, seen = [root], {root.span_id}
        while waiting:
            span = waiting.pop()
            below = [child for child in self._children.get(span.span_id, ()) if child.span_id not in seen]
            seen.update(child.span_id for child in below)
            if span is not root and kind_of(span) in _ASKED and question_of(span) and output_of(span) is not None:
                yield span
            else:
                waiting.extend(reversed(below))


def _is_leaked(span: Span, parent: Span) -> bool:
    """Whether a span asks another question than its parent, which had ended before."""
    if not 0 < parent.start < parent.end <= span.start or kind_of(span) not in _ASKED:
        return False
    asked = question_of(span)
    return asked is not None and asked != question_of(parent)


Speaker = Literal["user", "annotator", "program", "unknown"]
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
    """What was asked: of a model the last message of the user, of a retriever the query, else the input.

    None if there is no input, or if it is JSON of no known form.
    """
    kind = kind_of(span)
    if kind in ("retrieval", "rerank") and (query := span_attributes.find(span.attributes, "query")):
        return values.dump_text(query)
    if kind == "model" and (text := messages.last_of(messages_of(span, "input"), "user")):
        return values.clean_text(text)
    found = span_attributes.find(span.attributes, "input")
    if _is_plain(span, "input", found):
        return values.clean_text(found)
    text = None if found is None else questions_and_answers.find_question(found)
    return values.dump_text(text or messages.last_of(messages_of(span, "input"), "user"))


def answer_of(span: Span) -> str | None:
    """What came out: of a model its message, else the output.

    None if there is no output, or if it holds no text for the user, as JSON of no known form and generators do.
    """
    said = messages_of(span, "output") if kind_of(span) == "model" else []
    if said:
        return values.dump_text(messages.last_answer(said))
    found = span_attributes.find(span.attributes, "output")
    if _is_plain(span, "output", found):
        return values.clean_text(found)
    text = None if found is None else questions_and_answers.find_answer(found)
    return values.dump_text(text or messages.last_answer(messages_of(span, "output")))


def input_of(span: Span) -> str | None:
    """The whole input as text, or JSON as text."""
    found = span_attributes.find(span.attributes, "input") or span_attributes.find(span.attributes, "query")
    return values.dump_text(found if found is not None else messages_of(span, "input"))


def output_of(span: Span) -> str | None:
    """The whole output as text, or JSON as text."""
    found = span_attributes.find(span.attributes, "output")
    if found is not None:
        return values.dump_text(found)
    said = messages_of(span, "output")
    is_text = len(said) == 1 and said[0].keys() == {"role", "content"}
    return values.dump_text(said[0]["content"] if is_text else said)


def _is_plain(span: Span, end: str, found: Any) -> TypeGuard[str]:
    """Whether a text is not to be looked into, even if it is JSON. Libraries mark printed objects so, too."""
    is_marked = span.attributes.get(f"{end}.mime_type") == "text/plain"
    return is_marked and isinstance(found, str) and not values.is_printed(found)


def messages_of(span: Span, end: Literal["input", "output"]) -> list[dict[str, Any]]:
    """The messages that a model got (`input`) or wrote (`output`), as chat messages; [] if it recorded none."""
    role = "user" if end == "input" else "assistant"
    for found in span_attributes.find_all(span.attributes, f"{end}_messages"):
        if read := messages.read_messages(found, role):
            return read
    text = span_attributes.find(span.attributes, f"{end}_messages")
    if isinstance(text, str):
        return [{"role": role, "content": text}]
    for event in span.events:
        if event.name in (span_attributes.PROMPT_EVENTS if end == "input" else span_attributes.COMPLETION_EVENTS):
            value = next((one for key, one in event.attributes.items() if key in _EVENT_TEXTS), None)
            if value is not None:
                return messages.read_messages(value, role)
    return []


_EVENT_TEXTS = ("gen_ai.prompt", "gen_ai.completion", "content", "message")


def documents_of(span: Span) -> tuple[Document, ...] | None:
    """The documents that a span retrieved, best first; None if it recorded none.

    Spans of tools and functions retrieve as well, if all that they give are documents, or if their names say so: the
    whole text that a tool called `search` gives is a document.
    """
    kind = kind_of(span)
    if kind == "model":
        return None
    for found in span_attributes.find_all(span.attributes, "documents"):
        if read := _read_documents(found):
            return read
    results = [event.attributes for event in span.events if event.name in span_attributes.RESULT_EVENTS]
    if results and (read := _read_documents([_unprefix(one) for one in results])):
        return read
    output = span_attributes.find(span.attributes, "output")
    if output is None:
        return None
    if kind in ("retrieval", "rerank"):
        return questions_and_answers.find_documents(output)
    if kind not in ("", "tool", "chain"):
        return None
    if (listed := questions_and_answers.find_listed_documents(output)) is not None:
        return listed
    name = span_attributes.find(span.attributes, "name")
    if not questions_and_answers.retrieves(name if isinstance(name, str) else span.name):
        return None
    opened = values.open_text(output)
    if isinstance(opened, list) and (documents := questions_and_answers.find_documents(opened)) is not None:
        return documents
    if kind != "tool":
        return None
    text = messages.last_of(messages.read_messages(output, "tool"), "tool")
    if isinstance(opened, Mapping) and (text is None or questions_and_answers.is_document(opened)):
        return questions_and_answers.find_passages(opened)
    return (Document(values.clean_text(text)),) if questions_and_answers.is_passage(text) else None


def _read_documents(found: Sequence[Any]) -> tuple[Document, ...]:
    read = (questions_and_answers.read_document(one) for one in found)
    return tuple(document for document in read if document is not None)


def _unprefix(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes by the last part of their names: `db.query.result.id` is `id`."""
    return {key.rpartition(".")[2]: value for key, value in attributes.items()}


def cost_of(span: Span) -> float | None:
    """The cost of a call of a model in US dollars: the total, or that of input and output together."""
    total = values.read_number(span_attributes.find(span.attributes, "cost"))
    if total is not None:
        return total
    parts = [
        values.read_number(span_attributes.find(span.attributes, meaning)) for meaning in ("input_cost", "output_cost")
    ]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def text_of(span: Span, meaning: str) -> str | None:
    """An attribute such as the session as text; a number becomes its digits. None if there is none."""
    found = span_attributes.find(span.attributes, meaning)
    return None if found is None or isinstance(found, list | dict) else values.clean_text(str(found)) or None


def error_of(span: Span) -> str | None:
    """Why the span failed: its status' message, or that of its exception; None if it did not fail."""
    if span.status != ERROR:
        return None
    if span.message:
        return values.clean_text(span.message)
    for event in reversed(span.events):
        if event.name == "exception":
            shown = (event.attributes.get("exception.type"), event.attributes.get("exception.message"))
            return values.clean_text(": ".join(str(part) for part in shown if part)) or "failed"
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
                yield _read_feedback(said, source or "unknown", values.dump_text(short.get("identifier")))


def _read_feedback(said: Mapping[str, Any], source: Speaker, author: str | None) -> Feedback:
    name = values.dump_text(said.get("name")) or "evaluation"
    label, comment = (values.dump_text(said.get(part)) for part in ("label", "comment"))
    return Feedback(name, values.read_number(said.get("value")), label, comment, source, author)


def format_moment(moment: datetime) -> str:
    """ISO 8601 in UTC with `Z`: `2026-03-01T12:00:00Z`; microseconds only if there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
