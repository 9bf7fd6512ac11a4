"""A trace: one question to a system in production, what it did, and what it answered, as tracing tools record it.

As a row of a file (`to_row`, `from_row`), a trace is both a question and an answer, so the same file can be a dataset
and a system of a spec:

| key | |
|---|---|
| `id` | the id of the question: that of the trace, with the span's if a trace has several questions |
| `question`, `answer`, `reference` | texts; `answer` is absent if there is none, and `error` says why |
| `reference_contexts`, `relevant` | the texts and the ids of the documents that contain the reference |
| `contexts` | the documents that the answer is based on: `{id, text, score}` each, best first |
| `seconds`, `input_tokens`, `output_tokens`, `cost` | numbers; the cost is in US dollars |
| `cache_read_tokens`, `cache_write_tokens`, `reasoning_tokens`, `first_chunk_seconds` | numbers |
| `session`, `user`, `model`, `started` | texts; `started` is an ISO 8601 time in UTC |
| `version` | that of the application, if the tool knows it |
| `finish_reason` | why the model that wrote the answer stopped, as it says: `length` |
| `messages`, `steps`, `feedback`, `metadata` | the conversation, what an agent did, what users said, and the rest |
| `trace` | where the trace is: `tool`, `trace_id`, and what else that tool needs to find it again |
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from rageval_spec.dataclass import dataclass, field, fields, replace

NO_ANSWER = "the trace has no answer"
"""How the error of a trace begins that did not fail, and in which there is no text for the user."""
StepKind = Literal["retrieval", "rerank", "tool", "model", "agent", "guardrail", "other"]


def _list_known(part: TraceLink | Step | Feedback) -> dict[str, Any]:
    """The attributes that are not None, by name."""
    return {one.name: value for one in fields(part) if (value := getattr(part, one.name)) is not None}


@dataclass(frozen=True, slots=True)
class TraceLink:
    """Where a trace is, so that values can be sent back to it.

    Attributes:
        tool: the word of the tool in `import` and `export`, such as `phoenix`.
        span_id: the span that holds the question and the answer; None if the trace as a whole does.
        others: what else the tool needs to find it, by name.
    """

    tool: str
    trace_id: str
    span_id: str | None = None
    project: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, str]:
        """The link as JSON types; None is left out."""
        known = _list_known(self)
        return {**known.pop("others"), **known}

    def dump(self) -> str:
        """The link as JSON text with sorted keys."""
        return json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_dict(cls, found: Any) -> TraceLink | None:
        """The link in a mapping; None if it is not one."""
        if not isinstance(found, Mapping) or not all(isinstance(found.get(key), str) for key in ("tool", "trace_id")):
            return None
        texts = {str(key): value for key, value in found.items() if isinstance(value, str)}
        own = {key: texts.pop(key, None) for key in ("tool", "trace_id", "span_id", "project")}
        return cls(str(own["tool"]), str(own["trace_id"]), own["span_id"], own["project"], texts)

    @classmethod
    def load(cls, text: str | None) -> TraceLink | None:
        """The link in JSON text; None if it is not one."""
        try:
            return None if text is None else cls.from_dict(json.loads(text))
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Document:
    """A retrieved document; what is not known is None."""

    text: str | None = None
    doc_id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_row(self) -> dict[str, Any]:
        """The document as a row's context: `id`, `text`, `score`, `metadata`; what is not known is left out."""
        row = {"id": self.doc_id, "text": self.text, "score": self.score, "metadata": dict(self.metadata) or None}
        return {key: value for key, value in row.items() if value is not None}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Document:
        """The document that `to_row` wrote."""
        return cls(row.get("text"), row.get("id"), row.get("score"), row.get("metadata") or {})


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the system did for an answer: a retrieval, a call of a tool or of a model.

    Attributes:
        name: what the tool calls it.
        input, output: texts, or JSON as text.
        documents: the documents that it retrieved, best first; None if it is not a retrieval.
        error: why it failed.
    """

    kind: StepKind
    name: str = ""
    input: str | None = None
    output: str | None = None
    documents: tuple[Document, ...] | None = None
    seconds: float | None = None
    error: str | None = None

    def to_row(self) -> dict[str, Any]:
        """The step as JSON types; what is not known is left out."""
        row = _list_known(self)
        documents = {} if self.documents is None else {"documents": [one.to_row() for one in self.documents]}
        return row | documents

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Step:
        """The step that `to_row` wrote."""
        documents = row.get("documents")
        read = None if documents is None else tuple(map(Document.from_row, documents))
        return cls(**{**row, "documents": read})


def describe_steps(steps: Sequence[Step], calls: Sequence[Mapping[str, Any]] = ()) -> Iterator[str]:
    """A line for each step, `2 ✓ retrieval Search(Ada) → 1 document: “Ada is ...”`, and for each missing call."""
    known = [call for call in calls if call["metric"] == calls[0]["metric"]]
    signs = {call["step"]: "✓" if call["state"] == "matched" else call["state"] for call in known}
    for number, step in enumerate(steps, 1):
        told = (signs.get(number), step.kind, _write_call(step.name, step.input))
        yield f"{number} {' '.join(filter(None, told))}{_describe_result(step)}"
    yield from (f"– missing {_write_call(call['name'], call['arguments'])}" for call in known if call["step"] is None)


def _write_call(name: str, given: str | None) -> str:
    return name if given is None else f"{name}({given})"


def _describe_result(step: Step) -> str:
    if step.error is not None:
        return f" → error: {step.error}"
    if step.documents is None:
        return "" if step.output is None else f" → {step.output}"
    names = ", ".join(one.doc_id or (f"“{one.text}”" if one.text else "?") for one in step.documents)
    return f" → {len(step.documents)} document{'s' * (len(step.documents) != 1)}{names and f': {names}'}"


@dataclass(frozen=True, slots=True)
class Feedback:
    """What somebody said of an answer.

    Attributes:
        name: what was judged, such as `thumbs`.
        value: a number; None if there is only a label or a comment.
    """

    name: str
    value: float | None = None
    label: str | None = None
    comment: str | None = None
    source: Literal["user", "annotator", "program", "unknown"] = "unknown"
    author: str | None = None

    def to_row(self) -> dict[str, Any]:
        """The feedback as JSON types; what is not known is left out."""
        return _list_known(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Feedback:
        """The feedback that `to_row` wrote."""
        return cls(**row)


@dataclass(frozen=True, slots=True)
class Trace:
    """A question and what became of it. What is not known is None; the table above describes what is not here.

    Attributes:
        query_id: the question's id; by default that of the trace, with the span's after a colon if it has one.
        documents: the documents that the answer is based on, best first.
        references, reference_contexts: gold answers, and the texts that contain them, if the tool has them.
        relevant: the ids of relevant documents, if the tool has them.
        error: why there is no answer.
        reasoning_tokens: the output tokens that the model thought with.
        first_chunk_seconds: how long the last reply that was streamed took to its first piece.
        messages: the conversation, as chat messages; () if there is only the question.
        steps: what the system did, in order of time.
        citations: what was cited beside the answer's text, as rows of `data.evidence.citations.Citation`.
        metadata: everything else that the tool knows, as JSON types.
        is_open: whether it had not ended when it was read, so that more may come. Not a part of its row.
    """

    link: TraceLink
    question: str
    query_id: str = ""
    answer: str | None = None
    documents: tuple[Document, ...] | None = None
    references: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] | None = None
    relevant: tuple[str, ...] | None = None
    error: str | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    first_chunk_seconds: float | None = None
    finish_reason: str | None = None
    session: str | None = None
    user: str | None = None
    model: str | None = None
    started: str | None = None
    version: str | None = None
    messages: tuple[Mapping[str, Any], ...] = ()
    steps: tuple[Step, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    citations: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_open: bool = field(default=False, compare=False)

    @property
    def id(self) -> str:
        """The question's id."""
        link = self.link
        return self.query_id or (link.trace_id if link.span_id is None else f"{link.trace_id}:{link.span_id}")

    def list_columns(self) -> Iterator[tuple[str, Any]]:
        """What a trace says besides the question and the answer: metadata, and `feedback.NAME` of each feedback."""
        yield from self.metadata.items()
        yield from ((name, value) for name in ("session", "user", "model", "started") if (value := getattr(self, name)))
        yield from merge_scores("feedback", [one.to_row() for one in self.feedback]).items()

    def to_row(self) -> dict[str, Any]:
        """The trace as a row of a file: see this module. What is not known is left out."""
        row = {
            "id": self.id,
            "question": self.question,
            "answer": self.answer,
            **self._contexts(),
            "reference": unwrap(self.references),
            "reference_contexts": None if self.reference_contexts is None else list(self.reference_contexts),
            "relevant": None if self.relevant is None else list(self.relevant),
            **{name: getattr(self, name) for name in _PLAIN},
            "messages": list(self.messages),
            "steps": [step.to_row() for step in self.steps],
            "feedback": [one.to_row() for one in self.feedback],
            "citations": [dict(one) for one in self.citations],
            "metadata": dict(self.metadata),
        }
        known = {key: value for key, value in row.items() if value is not None and value != {}}
        lists = {key: value for key, value in known.items() if value != [] or key in _CAN_BE_EMPTY}
        return {**lists, "trace": self.link.to_dict()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Trace:
        """The trace that `to_row` wrote.

        Raises:
            ValueError: the row has no question or does not say where its trace is.
        """
        link = TraceLink.from_dict(row.get("trace"))
        if link is None or not isinstance(row.get("question"), str):
            raise ValueError("the row has no question, or no trace with a tool and a trace_id")
        documents = row.get("documents", row.get("contexts"))
        reference = row.get("reference")
        plain: dict[str, Any] = {name: row.get(name) for name in _PLAIN}
        trace = cls(
            link,
            row["question"],
            answer=row.get("answer"),
            documents=None if documents is None else tuple(map(_read_document, documents)),
            references=(reference,) if isinstance(reference, str) else tuple(reference or ()),
            reference_contexts=_tuple_of(row.get("reference_contexts")),
            relevant=_tuple_of(row.get("relevant")),
            **plain,
            messages=tuple(row.get("messages", ())),
            steps=tuple(map(Step.from_row, row.get("steps", ()))),
            feedback=tuple(map(Feedback.from_row, row.get("feedback", ()))),
            citations=tuple(one for one in row.get("citations") or () if isinstance(one, Mapping)),
            metadata=row.get("metadata", {}),
        )
        return trace if trace.id == row.get("id") else replace(trace, query_id=str(row.get("id", "")))

    def _contexts(self) -> dict[str, Any]:
        """The documents as contexts with what all of them have; in full beside them if that leaves something out."""
        if self.documents is None:
            return {}
        rows = [document.to_row() for document in self.documents]
        shared = set.intersection(*map(set, rows)) if rows else {"text"}
        is_all = all(len(row) == len(shared) for row in rows)
        kept = rows if is_all else [{key: value for key, value in row.items() if key in shared} for row in rows]
        if "text" not in shared:
            ids = {"context_ids": [row["id"] for row in rows]} if "id" in shared else {}
            return {**ids, "documents": rows}
        return {"contexts": kept} if kept == rows else {"contexts": kept, "documents": rows}


_PLAIN = (
    "error", "seconds", "input_tokens", "output_tokens", "cost", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "first_chunk_seconds", "finish_reason", "session", "user", "model", "started",
    "version",
)  # fmt: skip


_CAN_BE_EMPTY = frozenset({"contexts", "reference_contexts", "relevant", "documents"})
"""Lists that say something also when they are empty: that there are none."""


def merge_scores(prefix: str, scores: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The value of each score by its name, `feedback.thumbs`: a number, else what it is called or the comment.

    Several numbers of one name are averaged: two people who gave 4 and 5 said 4.5.
    """
    said: dict[str, list[Any]] = {}
    for one in scores:
        found = (one[key] for key in ("value", "score", "label", "comment") if one.get(key) is not None)
        if (value := next(found, None)) is not None:
            said.setdefault(f"{prefix}.{one['name']}", []).append(value)
    numbers = {name: [value for value in every if isinstance(value, (int, float))] for name, every in said.items()}
    return {name: math.fsum(kept) / len(kept) if (kept := numbers[name]) else said[name][-1] for name in said}


def _tuple_of(found: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if found is None else tuple(found)


def _read_document(found: Any) -> Document:
    return Document(text=found) if isinstance(found, str) else Document.from_row(found)


def unwrap(texts: Sequence[str]) -> str | list[str] | None:
    """The only text, the list of several, or None for none."""
    return None if not texts else texts[0] if len(texts) == 1 else list(texts)
