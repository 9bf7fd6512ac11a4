"""Turns the spans of OpenTelemetry, OpenInference and the tools built on them into traces, and back.

Spans are written with the attribute names of OpenInference; reading them gives the trace again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from rageval_spec.data.traces import NO_ANSWER, Document, Feedback, Step, StepKind, Trace, TraceLink
from rageval_spec.exchange.shared.spans.spans import (
    ERROR,
    OK,
    SECOND,
    Span,
    SpanTree,
    answer_of,
    cost_of,
    documents_of,
    error_of,
    feedback_of,
    format_nanoseconds,
    input_of,
    kind_of,
    messages_of,
    output_of,
    question_of,
    seconds_of,
    text_of,
)
from rageval_spec.recorded import questions_and_answers, values
from rageval_spec.recorded.answers_and_steps import find_end
from rageval_spec.recorded.cited_blocks import find_blocks
from rageval_spec.recorded.questions_and_answers import RecordedPaths, list_above, outermost
from rageval_spec.recorded.span_attributes import find, find_all
from rageval_spec.wording import count_noun

_STEPS: Mapping[str, StepKind] = {
    "model": "model", "retrieval": "retrieval", "rerank": "rerank", "tool": "tool", "agent": "agent",
    "guardrail": "guardrail", "chain": "other", "other": "other",
}  # fmt: skip
_SPEAKING = ("", "model", "agent", "chain")
"""Kinds of spans whose input can be the question and whose output can be the answer."""
Retrieved = Mapping[str, tuple[Document, ...]]
"""The documents of each span that retrieved, by its id."""


class SpanReader:
    """Reads traces from the spans of one tool, and counts what it left out."""

    def __init__(self, tool: str, places: RecordedPaths | None = None) -> None:
        """Read for a tool; its word stands in each trace's link.

        With `places`, only they are looked at for the question, and what any step used counts, not only models.
        """
        self._tool = tool
        self._places = places
        self.keeps_all = False
        """Whether a trace without a question is given, with an empty one, and not left out."""
        self.without_question = 0
        self.unusable: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def read(self, spans: Sequence[Span]) -> Iterator[Trace]:
        """The questions in the spans of one trace, in order of time.

        A trace in which no span has an input is left out and counted, unless `keeps_all`. Tokens, costs and scores
        that are not numbers are left out and counted in `unusable`.
        """
        tree = SpanTree(spans)
        questions = tree.questions()
        is_open = not any(span.parent_id is None and span.end > 0 for span in spans)
        for entry, parts in questions:
            trace = self.read_question(entry, parts, is_only=len(questions) == 1)
            if trace is None and self.keeps_all:
                name, started = entry.trace_id if len(questions) == 1 else "", format_nanoseconds(entry.start)
                trace = Trace(self._link(entry, None), "", name, started=started, is_open=not entry.end)
            if trace is None:
                self.without_question += 1
            else:
                yield replace(trace, is_open=True) if is_open else trace

    def remarks(self) -> list[str]:
        said = []
        if self.without_question:
            verb = "was" if self.without_question == 1 else "were"
            some = count_noun(self.without_question, "trace")
            said.append(f"{some} {verb} left out: no span has an input that could be the question")
        for what, number in sorted(self.unusable.items()):
            some = count_noun(number, "span has", "spans have")
            said.append(f"{some} {what} that could not be read and was left out; the first is {self.first[what]}")
        return said

    def read_question(
        self, entry: Span, parts: Sequence[Span], *, is_only: bool = True, found: Retrieved | None = None
    ) -> Trace | None:
        """The question that was asked at a span, with the spans that belong to it, itself included; None without one.

        `found` are the documents of each span that retrieves, where the tool knows better which spans do.
        """
        timed = sorted(parts, key=lambda span: (span.start, span.span_id))
        parents = {span.span_id: span.parent_id for span in parts}
        if found is None:
            found = {span.span_id: listed for span in timed if (listed := documents_of(span)) is not None}
        retrieved = _choose_retrievals(entry, timed, parents, found)
        question, answer = self._find_ends(entry, timed, parents, retrieved)
        if question is None:
            return None
        models = [span for span in timed if kind_of(span) == "model"]
        metadata = _read_metadata(entry)
        documents, retriever = _choose_documents(entry, timed, retrieved)
        for given in (metadata, find(entry.attributes, "input")):
            documents = questions_and_answers.find_contexts(given) if documents is None else documents
        is_row = self._places is not None
        paid = [span for span in timed if kind_of(span) == "model" or (is_row and span is not entry)]
        priced = {span.span_id: span for span in paid if _has_usage(span)}
        usage = [priced[name] for name in outermost(priced, parents)] or [entry]
        costs = [cost for span in usage if (cost := cost_of(span)) is not None]
        ends = (models[-1], entry) if models else reversed(timed)
        return Trace(
            self._link(entry, retriever),
            question,
            query_id=entry.trace_id if is_only else "",
            answer=answer,
            documents=documents,
            error=_find_error(entry, timed) if answer is None else None,
            seconds=seconds_of(entry) if entry in parts else None,
            input_tokens=self._sum(usage, "input_tokens"),
            output_tokens=self._sum(usage, "output_tokens"),
            cost=math.fsum(costs) if costs else None,
            cache_read_tokens=_count_tokens(usage, "cache_read_tokens"),
            cache_write_tokens=_count_tokens(usage, "cache_write_tokens"),
            reasoning_tokens=_count_tokens(usage, "reasoning_tokens"),
            first_chunk_seconds=_find_first_chunk(usage),
            finish_reason=next(filter(None, map(_find_end, ends)), None),
            session=_find_text(entry, timed, "session"),
            user=_find_text(entry, timed, "user"),
            model=_find_text(models[-1] if models else entry, (entry,), "model"),
            started=format_nanoseconds(entry.start),
            version=values.find_version(entry.resource, entry.attributes, metadata),
            messages=_conversation(entry),
            steps=tuple(
                step for span in timed if span is not entry and (step := _read_step(span, found.get(span.span_id)))
            )
            or _lone_step(entry, found),
            feedback=tuple(dict.fromkeys(said for span in timed for said in feedback_of(span))),
            citations=_find_citations((*reversed(models), entry), answer),
            metadata=metadata,
            is_open=entry.parent_id is None and not entry.end,
        )

    def _find_ends(
        self, entry: Span, timed: Sequence[Span], parents: Mapping[str, str | None], retrieved: Retrieved
    ) -> tuple[str | None, str | None]:
        """The question and the answer."""
        if self._places is None:
            return _find_question(entry, timed, retrieved), _find_answer(entry, timed, parents)
        asked = [entry, *(span for span in timed if kind_of(span) in (*_SPEAKING, "retrieval"))]
        question = self._places.question(*(find(span.attributes, "input") for span in asked))
        if self._places.answer_path is None:
            return question, _find_answer(entry, timed, parents)
        return question, self._places.answer(find(entry.attributes, "output"))

    def _link(self, entry: Span, retriever: Span | None) -> TraceLink:
        others = {"ended": str(entry.end)} if entry.end else {}
        if retriever is not None:
            others["retriever"] = retriever.span_id
        return TraceLink(self._tool, entry.trace_id, entry.span_id, _project(entry), others)

    def _sum(self, spans: Sequence[Span], meaning: str) -> int | None:
        total = None
        for span in spans:
            found = find(span.attributes, meaning)
            count = values.read_count(found) if found is not None else _find_tokens(span)[meaning == "output_tokens"]
            if count is not None:
                total = (total or 0) + count
            elif found is not None:
                what = f"a number of {meaning.replace('_', ' ')}"
                self.unusable[what] += 1
                self.first.setdefault(what, span.place or f"span {span.span_id}")
        return total


def _find_question(entry: Span, timed: Sequence[Span], retrieved: Retrieved) -> str | None:
    """The entry's question, or that of the first span with one; what retrievers and tools were asked comes last.

    A prompt that holds the documents, or the query that found them, is no question: the query is. Without any other
    question, JSON of no known form is one, because a row must have one.
    """
    if kind_of(entry) in ("", "agent", "chain") and (text := question_of(entry)) is not None:
        return text
    ranked = sorted((entry, *timed), key=lambda span: kind_of(span) not in _SPEAKING)
    found = next((text for span in ranked if (text := question_of(span)) is not None), None)
    if found is None:
        return next((text for span in (entry, *timed) if (text := input_of(span)) is not None), None)
    queries = [text for span in timed if span.span_id in retrieved and (text := question_of(span)) is not None]
    passages = [one.text for listed in retrieved.values() for one in listed if one.text and len(one.text) >= _PASSAGE]
    is_prompt = any(text in found for text in (*queries, *passages))
    return queries[0] if queries and is_prompt else found


_PASSAGE = 20
"""The fewest characters of a document that show that a prompt holds it."""


def _find_answer(entry: Span, timed: Sequence[Span], parents: Mapping[str, str | None]) -> str | None:
    """The entry's answer; else that of the last model, if the entry did not fail.

    An output that is JSON or a printed object counts if a model wrote exactly that. One that is empty counts if it is
    marked as plain text, or if no model wrote anything. Models inside retrievals, tools and guards answer nobody.
    """
    found = answer_of(entry) if kind_of(entry) in _SPEAKING else None
    if found is not None or entry.status == ERROR:
        return found
    is_empty = entry.attributes.get("output.value") == ""
    if is_empty and _is_plain_text(entry):
        return ""
    aside = {
        span.span_id for span in timed if kind_of(span) in ("retrieval", "rerank", "tool", "guardrail", "evaluator")
    }
    spoken = [
        span
        for span in timed
        if kind_of(span) in ("model", "agent", "chain") and aside.isdisjoint(list_above(span.span_id, parents))
    ]
    models = [span for span in spoken if kind_of(span) == "model"]
    if models and _only_calls(models[-1]):
        return None
    said = next((text for span in reversed(models or spoken) if (text := answer_of(span)) is not None), None)
    if said is None and models:
        said = next((text for span in reversed(spoken) if (text := answer_of(span)) is not None), None)
    return "" if said is None and is_empty else said


def _only_calls(model: Span) -> bool:
    """Whether a model called tools and wrote nothing else, so that its run went on, or was cut there."""
    said = messages_of(model, "output")
    return bool(said) and bool(said[-1].get("tool_calls"))


def _find_error(entry: Span, timed: Sequence[Span]) -> str:
    for span in (entry, *reversed(timed)):
        error = error_of(span)
        if error is not None:
            return error
    output = output_of(entry)
    if output is None or kind_of(entry) not in _SPEAKING:
        return NO_ANSWER
    shown = output if len(output) <= _SHOWN else f"{output[:_SHOWN]}..."
    return f"{NO_ANSWER}: its output holds no text for the user, but {shown}"


_SHOWN = 60


def _choose_retrievals(
    entry: Span, timed: Sequence[Span], parents: Mapping[str, str | None], found: Retrieved
) -> dict[str, tuple[Document, ...]]:
    """The documents of each span that retrieved, by its id. Of retrievals inside one another, the outermost counts.

    Tools and functions count if no retrieval inside them has documents of its own.
    """
    declared = [span.span_id for span in timed if span.span_id in found and kind_of(span) in ("retrieval", "rerank")]
    filled = [name for name in declared if found[name]] or declared
    kept = set(outermost(filled, parents))
    others = [span for span in timed if span.span_id in found and kind_of(span) not in ("retrieval", "rerank")]
    if others:
        around = {above for name in kept for above in list_above(name, parents)} | {entry.span_id}
        aside = [span.span_id for span in others if span.span_id not in around]
        kept.update(outermost([name for name in aside if kept.isdisjoint(list_above(name, parents))], parents))
        if not kept and kind_of(entry) == "tool" and entry.span_id in found:
            kept = {entry.span_id}
    return {span.span_id: found[span.span_id] for span in timed if span.span_id in kept}


def _choose_documents(
    entry: Span, timed: Sequence[Span], retrieved: Retrieved
) -> tuple[tuple[Document, ...] | None, Span | None]:
    """The documents that the answer is based on, and the one span that they are of, if it is only one.

    Those that the entry's output names count first. What a reranker gave replaces what was retrieved before it. Several
    retrievals count in order, each document once.
    """
    sources: list[Span] = []
    for span in timed:
        if span.span_id in retrieved:
            sources = [span] if kind_of(span) == "rerank" else [*sources, span]
    named = questions_and_answers.find_contexts(find(entry.attributes, "output")) if not _is_plain_text(entry) else None
    joined = questions_and_answers.join_documents(retrieved[span.span_id] for span in sources) if sources else None
    documents = questions_and_answers.choose_documents(named, joined)
    return documents, sources[0] if len(sources) == 1 and documents == joined else None


def _is_plain_text(span: Span) -> bool:
    return span.attributes.get("output.mime_type") == "text/plain"


def _find_citations(spans: Sequence[Span], answer: str | None) -> tuple[dict[str, Any], ...]:
    """What the first of several spans cites beside the answer."""
    outputs = (find(span.attributes, "output") for span in spans if answer)
    found = next(filter(None, (find_blocks(output, answer or "") for output in outputs)), ())
    return tuple(one.to_row() for one in found)


def _find_end(span: Span) -> str | None:
    """Why a model stopped, as its attributes say; `length` if its reply says that its token limit stopped it."""
    named = values.load_json(find(span.attributes, "finish_reason"))
    said = named[0] if isinstance(named, list | tuple) and named else named
    if isinstance(said, str):
        return said
    outputs = (find(span.attributes, "output"), *find_all(span.attributes, "output_messages"))
    return find_end(*outputs)


def _has_usage(span: Span) -> bool:
    named = any(find(span.attributes, meaning) is not None for meaning in ("input_tokens", "output_tokens", "cost"))
    return named or _find_tokens(span) != (None, None)


def _find_tokens(span: Span) -> tuple[int | None, int | None]:
    """The tokens that the reply of a model says it used, for libraries that have no attributes for them."""
    return (
        questions_and_answers.find_tokens(find(span.attributes, "output")) if kind_of(span) == "model" else (None, None)
    )


def _read_step(span: Span, documents: tuple[Document, ...] | None) -> Step | None:
    kind = kind_of(span)
    if kind not in _STEPS:
        return None
    is_search = kind in ("retrieval", "rerank")
    name = find(span.attributes, "name")
    return Step(
        _STEPS[kind],
        values.clean_text(name if isinstance(name, str) else span.name),
        question_of(span) if is_search else input_of(span),
        None if is_search and documents is not None else output_of(span),
        documents,
        seconds_of(span),
        error_of(span),
    )


def _lone_step(entry: Span, retrieved: Retrieved) -> tuple[Step, ...]:
    """The step of a trace that is one call of a model or one retrieval."""
    if kind_of(entry) not in ("model", "retrieval", "rerank", "tool"):
        return ()
    step = _read_step(entry, retrieved.get(entry.span_id))
    return () if step is None else (step,)


def _conversation(entry: Span) -> tuple[dict[str, Any], ...]:
    """The messages of a question that has more than itself: earlier turns, or a system prompt."""
    messages = messages_of(entry, "input")
    if not messages:
        return questions_and_answers.find_messages(find(entry.attributes, "input"))
    return tuple(map(values.clean, messages)) if len(messages) > 1 else ()


def _find_text(entry: Span, timed: Sequence[Span], meaning: str) -> str | None:
    return text_of(entry, meaning) or next((text for span in timed if (text := text_of(span, meaning))), None)


def _read_metadata(entry: Span) -> dict[str, Any]:
    found = values.load_json(find(entry.attributes, "metadata"))
    metadata = {str(key): value for key, value in found.items()} if isinstance(found, Mapping) else {}
    tags = values.load_json(find(entry.attributes, "tags"))
    if isinstance(tags, list) and tags:
        metadata["tags"] = tags
    return cast(dict[str, Any], values.clean(metadata))


def _project(entry: Span) -> str | None:
    found = find(entry.resource, "project")
    return values.clean_text(found) if isinstance(found, str) else None


def _count_tokens(spans: Sequence[Span], part: str) -> int | None:
    """The tokens of one kind in all calls; None if no call says how many it had."""
    known = [count for span in spans if (count := values.read_count(find(span.attributes, part))) is not None]
    return sum(known) if known else None


def _find_first_chunk(spans: Sequence[Span]) -> float | None:
    """The seconds to the first piece of the last reply that was streamed; None if none says so."""
    for span in reversed(spans):
        seconds = values.read_number(find(span.attributes, "first_chunk_seconds"))
        milliseconds = values.read_number(find(span.attributes, "first_chunk_milliseconds"))
        if seconds is not None or milliseconds is not None:
            return seconds if milliseconds is None else milliseconds / 1000
    return None


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
