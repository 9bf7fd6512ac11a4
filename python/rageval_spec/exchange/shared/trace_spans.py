"""Turns a trace into spans, as OpenInference names their attributes; `span_traces` reads them back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rageval_spec.data.trace import Document, Feedback, Step, StepKind, Trace
from rageval_spec.exchange.shared.spans import ERROR, OK, SECOND, Span

_KINDS: Final[Mapping[StepKind, str]] = {
    "retrieval": "RETRIEVER", "rerank": "RERANKER", "tool": "TOOL", "model": "LLM", "agent": "AGENT",
    "guardrail": "GUARDRAIL", "other": "CHAIN",
}  # fmt: skip
_ANNOTATORS: Final[Mapping[str, str]] = {"user": "USER", "annotator": "HUMAN", "program": "CODE"}


def make_id(*parts: str, digits: int) -> str:
    """An id with so many hexadecimal digits, which depends only on the parts."""
    content = "".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "backslashreplace")
    found = hashlib.blake2b(content, digest_size=digits // 2).hexdigest()
    return found if found.strip("0") else "1".zfill(digits)


def write_spans(trace: Trace, trace_id: str, start: int, resource: Mapping[str, Any]) -> list[Span]:
    """The spans of a trace that begins at `start`, in nanoseconds since 1970: the root, then one for each step.

    Documents that no step retrieved have a step of their own. References and relevant documents are left out, because
    spans have no names for them.
    """
    root_id = make_id(trace_id, "root", digits=16)
    failed = trace.answer is None
    end = start + round((trace.seconds or 0) * SECOND)
    root = Span(
        trace_id, root_id, None, "question", start, end, dict(_describe_root(trace)),
        status=ERROR if failed else OK, message=(trace.error or "") if failed else "", resource=resource, kind=1,
    )  # fmt: skip
    steps = [*trace.steps]
    if trace.documents is not None and not any(step.documents is not None for step in steps):
        steps.insert(0, Step("retrieval", "retrieve", trace.question, documents=trace.documents))
    return [root, *(_write_step(step, number, root) for number, step in enumerate(steps, 1))]


def _describe_root(trace: Trace) -> Iterator[tuple[str, Any]]:
    yield "openinference.span.kind", "CHAIN"
    yield from _text("input", trace.question)
    yield from _text("output", trace.answer)
    named = {
        "session.id": trace.session, "user.id": trace.user, "llm.model_name": trace.model,
        "llm.token_count.prompt": trace.input_tokens, "llm.token_count.completion": trace.output_tokens,
        "llm.cost.total": trace.cost,
    }  # fmt: skip
    yield from ((key, value) for key, value in named.items() if value is not None)
    if trace.metadata:
        yield "metadata", json.dumps(dict(trace.metadata), ensure_ascii=False, default=str)
    for number, message in enumerate(trace.messages):
        for key in ("role", "content"):
            if isinstance(message.get(key), str):
                yield f"llm.input_messages.{number}.message.{key}", message[key]
    for number, said in enumerate(trace.feedback):
        yield from _describe_feedback(f"annotations.{number}.annotation.", said)


def _describe_feedback(prefix: str, said: Feedback) -> Iterator[tuple[str, Any]]:
    parts = {
        "name": said.name, "score": said.value, "label": said.label, "explanation": said.comment,
        "annotator_kind": _ANNOTATORS.get(said.source), "identifier": said.author,
    }  # fmt: skip
    yield from ((prefix + key, value) for key, value in parts.items() if value is not None)


def _write_step(step: Step, number: int, root: Span) -> Span:
    attributes: dict[str, Any] = {"openinference.span.kind": _KINDS[step.kind]}
    attributes |= dict(_text("input", step.input))
    output = "[]" if step.documents == () and step.output is None else step.output
    attributes |= dict(_text("output", output))
    if step.documents:
        prefix = "reranker.output_documents" if step.kind == "rerank" else "retrieval.documents"
        attributes |= dict(_describe_documents(prefix, step.documents))
    start = root.start + number
    return Span(
        root.trace_id, make_id(root.trace_id, "step", str(number), digits=16), root.span_id, step.name, start,
        start + round((step.seconds or 0) * SECOND), attributes, status=OK if step.error is None else ERROR,
        message=step.error or "", resource=root.resource, kind=1,
    )  # fmt: skip


def _describe_documents(prefix: str, documents: Sequence[Document]) -> Iterator[tuple[str, Any]]:
    for number, document in enumerate(documents):
        metadata = json.dumps(dict(document.metadata), ensure_ascii=False, default=str) if document.metadata else None
        parts = {"id": document.doc_id, "content": document.text, "score": document.score, "metadata": metadata}
        yield from ((f"{prefix}.{number}.document.{key}", one) for key, one in parts.items() if one is not None)


def _text(end: str, text: str | None) -> Iterator[tuple[str, str]]:
    """An input or output that is not to be looked into, even if it is JSON."""
    if text is not None:
        yield f"{end}.value", text
        yield f"{end}.mime_type", "text/plain"
