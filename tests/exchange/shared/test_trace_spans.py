from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.data.trace import Document, Feedback, Step, StepKind, Trace, TraceLink
from rageval_spec.exchange.shared.otlp.protobuf_spans import decode_spans, encode_spans
from rageval_spec.exchange.shared.span_traces import SpanReader
from rageval_spec.exchange.shared.spans import SECOND
from rageval_spec.exchange.shared.trace_spans import make_id, write_spans

T = "0af7651916cd43dd8448eb211c80319c"
START = 1_772_366_400 * SECOND
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
MAYBE = st.none() | TEXTS
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
SECONDS = st.none() | st.integers(1, 10**9).map(lambda thousands: thousands / 1000)
KINDS: tuple[StepKind, ...] = ("retrieval", "rerank", "tool", "model", "agent", "guardrail", "other")
DOCUMENTS = st.builds(
    Document,
    MAYBE,
    TEXTS,
    NUMBERS,
    st.dictionaries(st.sampled_from(["page", "lang"]), st.integers() | TEXTS, max_size=2),
)
LISTED = st.lists(DOCUMENTS, max_size=3, unique_by=lambda one: (one.doc_id, one.text)).map(tuple)
STEPS = st.builds(
    lambda kind, name, asked, output, documents, seconds, error: Step(
        kind,
        name,
        asked,
        None if kind in ("retrieval", "rerank") else output,
        documents if kind in ("retrieval", "rerank") else None,
        seconds,
        error,
    ),
    st.sampled_from(KINDS), TEXTS, MAYBE, MAYBE, LISTED, SECONDS, MAYBE,
)  # fmt: skip
FEEDBACK = st.builds(
    Feedback, TEXTS, NUMBERS, MAYBE, MAYBE, st.sampled_from(["user", "annotator", "program", "unknown"]), MAYBE
)
TRACES = st.builds(
    Trace,
    st.just(TraceLink("otel", T)),
    TEXTS,
    st.just(T),
    answer=TEXTS | st.just(""),
    documents=st.none(),
    seconds=SECONDS,
    input_tokens=st.none() | st.integers(0, 10**6),
    output_tokens=st.none() | st.integers(0, 10**6),
    cost=st.none() | st.floats(0, 100),
    session=MAYBE,
    user=MAYBE,
    model=MAYBE,
    messages=st.lists(st.fixed_dictionaries({"role": TEXTS, "content": TEXTS}), max_size=3)
    .filter(lambda listed: len(listed) != 1)
    .map(tuple),
    steps=st.lists(STEPS, max_size=4).map(tuple),
    feedback=st.lists(FEEDBACK, max_size=2, unique=True).map(tuple),
    metadata=st.dictionaries(
        TEXTS.filter(lambda key: key != "tags"), TEXTS | st.integers() | st.booleans(), max_size=3
    ),
)


def _round(trace: Trace) -> Trace:
    data = encode_spans(write_spans(trace, T, START, {}))
    (read,) = SpanReader("otel").read(list(decode_spans(data)))
    return read


@settings(max_examples=150, deadline=None)
@given(TRACES)
def test_nothing_is_lost_that_spans_have_names_for(trace: Trace) -> None:
    read = _round(trace)
    shown = replace(read, link=trace.link, documents=None, started=None)
    assert shown == trace
    assert _round(read) == read


@settings(max_examples=60, deadline=None)
@given(LISTED)
def test_documents_that_no_step_retrieved_have_a_step_of_their_own(documents: tuple[Document, ...]) -> None:
    read = _round(Trace(TraceLink("otel", T), "q", answer="a", documents=documents))
    assert read.documents == documents
    assert read.steps == (Step("retrieval", "retrieve", "q", documents=documents),)


def test_an_answer_that_failed() -> None:
    read = _round(Trace(TraceLink("otel", T), "q", error="TimeoutError"))
    assert (read.answer, read.error) == (None, "TimeoutError")


def test_json_stays_the_text_that_it_is() -> None:
    text = json.dumps({"question": "inner?"})
    read = _round(Trace(TraceLink("otel", T), text, answer=text))
    assert (read.question, read.answer) == (text, text)


def test_ids_depend_only_on_their_parts() -> None:
    assert make_id("a", "bc", digits=16) == make_id("a", "bc", digits=16) != make_id("ab", "c", digits=16)
    assert len(make_id("a", digits=32)) == 32
