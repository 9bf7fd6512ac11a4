""""""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.data.evidence.citations import load_citations
from rageval_spec.data.traces import Document, Feedback, Step, StepKind, Trace, TraceLink
from rageval_spec.exchange.shared.spans.protobuf import decode_spans, encode_spans
from rageval_spec.exchange.shared.spans.span_traces import SpanReader, make_id, write_spans
from rageval_spec.exchange.shared.spans.spans import ERROR, SECOND, Span, SpanEvent
from rageval_spec.recorded.messages import read_messages
from rageval_spec.recorded.span_attributes import NAMES
from rageval_spec.systems.shared.trace_system import read_answer

T = "0af7651916cd43dd8448eb211c80319c"
NANOSECONDS = 1_000_000_000
BEGIN = 1_772_366_400 * NANOSECONDS


def _span(number: int, parent: int | None, start: float, end: float, **attributes: Any) -> Span:
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    times = BEGIN + int(start * NANOSECONDS), BEGIN + int(end * NANOSECONDS)
    return Span(T, f"{number:016x}", None if parent is None else f"{parent:016x}", f"s{number}", *times, named)


def _read(*spans: Span) -> list[Trace]:
    return list(SpanReader("otel").read(spans))


def _retriever(number: int, parent: int | None, start: float, *documents: tuple[str, str, float]) -> Span:
    flat = {
        f"retrieval.documents.{n}.document.{key}": value
        for n, document in enumerate(documents)
        for key, value in zip(("id", "content", "score"), document, strict=True)
    }
    kind = {"openinference.span.kind": "RETRIEVER", "input.value": "query of the retriever"}
    return _span(number, parent, start, start + 0.1)._replace(attributes={**kind, **flat})


RAG = (
    _span(
        1, None, 0, 2.5, openinference__span__kind="CHAIN", input__value="What is it?", output__value="A thing.",
        session__id="s1", user__id="u1", metadata='{"lang": "en"}', tag__tags=["prod"],
    )._replace(resource={"service.name": "bot", "service.version": "1.4.0"}),
    _retriever(2, 1, 0.1, ("d1", "text 1", 0.9), ("d2", "text 2", 0.4)),
    _span(
        3, 1, 0.5, 2.4, openinference__span__kind="LLM", llm__model_name="m-1", llm__token_count__prompt=120,
        llm__token_count__completion="30", llm__cost__total=0.002,
        **{"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "stuffed prompt"},
        **{"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "A thing."},
    ),
)  # fmt: skip


def test_a_chain_with_a_retriever_and_a_model() -> None:
    (trace,) = _read(*RAG)
    assert (trace.question, trace.answer, trace.id) == ("What is it?", "A thing.", T)
    assert trace.documents == (Document("text 1", "d1", 0.9), Document("text 2", "d2", 0.4))
    assert (trace.seconds, trace.input_tokens, trace.output_tokens, trace.cost) == (2.5, 120, 30, 0.002)
    assert (trace.session, trace.user, trace.model) == ("s1", "u1", "m-1")
    assert trace.started == "2026-03-01T12:00:00Z"
    assert trace.metadata == {"lang": "en", "tags": ["prod"]}
    assert trace.version == "1.4.0"
    assert (trace.link.tool, trace.link.span_id, trace.link.project) == ("otel", f"{1:016x}", "bot")
    assert trace.link.others == {"retriever": f"{2:016x}", "ended": str(BEGIN + 5 * NANOSECONDS // 2)}
    assert [step.kind for step in trace.steps] == ["retrieval", "model"]
    assert trace.steps[0].input == "query of the retriever"


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_spans_arrive_changes_nothing(seed: int) -> None:
    shuffled = [*RAG, *RAG]  # some arrive twice, as after a retry
    random.Random(seed).shuffle(shuffled)
    assert _read(*shuffled) == _read(*RAG)


def test_the_conventions_of_opentelemetry() -> None:
    messages = [{"role": "user", "parts": [{"type": "text", "content": "What is it?"}]}]
    reply = [{"role": "assistant", "parts": [{"type": "text", "content": "A thing."}], "finish_reason": "stop"}]
    (trace,) = _read(
        _span(1, None, 0, 1, gen_ai__operation__name="invoke_agent", gen_ai__conversation__id="c1")
        ._replace(attributes={
            "gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c1",
            "gen_ai.input.messages": json.dumps(messages), "gen_ai.output.messages": json.dumps(reply),
        }),
        _span(2, 1, 0.1, 0.2)._replace(attributes={
            "gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "it",
            "gen_ai.retrieval.documents": [{"id": "d1", "score": 0.5}],
        }),
        _span(3, 1, 0.3, 0.4)._replace(attributes={
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "clock",
            "gen_ai.tool.call.arguments": '{"zone": "UTC"}', "gen_ai.tool.call.result": "12:00",
        }),
        _span(4, 1, 0.5, 0.9)._replace(attributes={
            "gen_ai.operation.name": "chat", "gen_ai.response.model": "m-2", "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.output_tokens": 3,
        }),
    )  # fmt: skip
    assert (trace.question, trace.answer, trace.session) == ("What is it?", "A thing.", "c1")
    assert trace.documents == (Document(None, "d1", 0.5),)
    assert (trace.input_tokens, trace.output_tokens, trace.model) == (7, 3, "m-2")
    assert trace.steps[:2] == (
        Step("retrieval", "s2", "it", None, trace.documents, 0.1),
        Step("tool", "clock", '{"zone": "UTC"}', "12:00", None, 0.1),
    )


def test_deprecated_names_still_count() -> None:
    (trace,) = _read(
        _span(1, None, 0, 1)._replace(
            attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.prompt_tokens": 5,
                        "gen_ai.usage.completion_tokens": 6, "gen_ai.request.model": "old"},
            events=(
                SpanEvent("gen_ai.content.prompt", 1, {"gen_ai.prompt": '[{"role": "user", "content": "Old?"}]'}),
                SpanEvent("gen_ai.content.completion", 2, {"gen_ai.completion": '[{"role": "ai", "content": "Yes"}]'}),
            ),
        )
    )  # fmt: skip
    assert (trace.question, trace.answer, trace.input_tokens, trace.output_tokens) == ("Old?", "Yes", 5, 6)
    assert trace.model == "old" and [step.kind for step in trace.steps] == ["model"]


def test_a_call_that_two_libraries_record_counts_once() -> None:
    call = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 10, "llm.token_count.completion": 1}
    inner = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1}
    (trace,) = _read(
        _span(1, None, 0, 3, input__value="q", output__value="a"),
        _span(2, 1, 0, 1)._replace(attributes=call),
        _span(3, 2, 0.1, 0.9)._replace(attributes=inner),
        _span(4, 1, 1, 2)._replace(attributes=call),
    )
    assert (trace.input_tokens, trace.output_tokens) == (20, 2)


def test_a_trace_without_its_root_takes_the_ends_of_its_spans() -> None:
    (trace,) = _read(
        _retriever(2, 1, 0.1, ("d1", "text 1", 0.9)),
        _span(3, 1, 0.5, 2, openinference__span__kind="LLM")._replace(attributes={
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "What is it?",
            "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "A thing.",
        }),
    )  # fmt: skip
    assert (trace.question, trace.answer) == ("What is it?", "A thing.")
    assert trace.documents == (Document("text 1", "d1", 0.9),)


def test_several_questions_of_one_trace_are_rows_of_their_own() -> None:
    turns = [
        span
        for turn in (1, 2)
        for span in (
            _span(turn * 10, 1, turn, turn + 0.5, openinference__span__kind="AGENT", input__value=f"Question {turn}?",
                  output__value=f"Answer {turn}."),
            _retriever(turn * 10 + 1, turn * 10, turn + 0.1, (f"d{turn}", "text", 0.5)),
        )
    ]  # fmt: skip
    traces = _read(_span(1, None, 0, 5, openinference__span__kind="CHAIN", session__id="s"), *turns)
    assert [(trace.question, trace.answer) for trace in traces] == [
        ("Question 1?", "Answer 1."),
        ("Question 2?", "Answer 2."),
    ]
    assert [trace.id for trace in traces] == [f"{T}:{10:016x}", f"{T}:{20:016x}"]
    assert [[one.doc_id for one in trace.documents or ()] for trace in traces] == [["d1"], ["d2"]]


def test_chains_that_ask_the_same_give_the_answer_of_the_last() -> None:
    (trace,) = _read(
        _span(1, None, 0, 3),
        _span(2, 1, 0, 1, openinference__span__kind="CHAIN", input__value="q", output__value="[]"),
        _span(3, 1, 1, 2, openinference__span__kind="CHAIN", input__value="q", output__value="a"),
    )
    assert (trace.question, trace.answer, trace.seconds) == ("q", "a", 3.0)


def test_what_a_reranker_gives_replaces_what_was_retrieved() -> None:
    reranked = {"openinference.span.kind": "RERANKER", "reranker.query": "q",
                "reranker.output_documents.0.document.id": "d2", "reranker.output_documents.0.document.score": 0.99,
                "reranker.input_documents.0.document.id": "d1"}  # fmt: skip
    (trace,) = _read(
        _span(1, None, 0, 3, input__value="q", output__value="a"),
        _retriever(2, 1, 0.1, ("d1", "text 1", 0.9), ("d2", "text 2", 0.4)),
        _span(3, 1, 0.5, 0.6)._replace(attributes=reranked),
        _retriever(4, 1, 0.8, ("d3", "text 3", 0.2)),
    )
    assert [document.doc_id for document in trace.documents or ()] == ["d2", "d3"]
    assert [step.kind for step in trace.steps] == ["retrieval", "rerank", "retrieval"]
    assert "retriever" not in trace.link.others


def test_a_trace_that_failed_has_its_error() -> None:
    broken = SpanEvent("exception", 0, {"exception.type": "TimeoutError", "exception.message": "too slow"})
    (trace,) = _read(_span(1, None, 0, 1, input__value="q")._replace(status=ERROR, events=(broken,)))
    assert (trace.answer, trace.error) == (None, "TimeoutError: too slow")


def test_feedback_of_annotations_and_of_events() -> None:
    said = {
        "annotations.0.annotation.name": "thumbs", "annotations.0.annotation.score": 1,
        "annotations.0.annotation.annotator_kind": "HUMAN", "annotations.0.annotation.explanation": "good",
        "evaluations.0.evaluation.name": "toxic", "evaluations.0.evaluation.label": "no",
    }  # fmt: skip
    event = SpanEvent("gen_ai.evaluation.result", 0, {
        "gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.5,
    })  # fmt: skip
    (trace,) = _read(_span(1, None, 0, 1, input__value="q", output__value="a", **said)._replace(events=(event,)))
    assert trace.feedback == (
        Feedback("relevance", 0.5, source="program"),
        Feedback("thumbs", 1.0, None, "good", "annotator"),
        Feedback("toxic", None, "no"),
    )


@pytest.mark.parametrize(
    ("value", "question"),
    [
        ("plain", "plain"),
        ('{"question": "inner?"}', "inner?"),
        ('{"input": {"query": "deep?"}, "k": 3}', "deep?"),
        ('{"messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "last?"}]}', "last?"),
        ('{"kwargs": {"question": "called?"}}', "called?"),
        ('{"a": "no", "b": "key"}', '{"a": "no", "b": "key"}'),
        ("{not json", "{not json"),
        ('[{"role": "human", "content": [{"type": "text", "text": "parts?"}]}]', "parts?"),
        ('"quoted"', "quoted"),
    ],
)
def test_questions_are_found_inside_json(value: str, question: str) -> None:
    (trace,) = _read(_span(1, None, 0, 1, input__value=value, output__value="a"))
    assert trace.question == question


def test_json_that_is_plain_text_stays_as_it_is() -> None:
    (trace,) = _read(_span(1, None, 0, 1, input__value='{"question": "x"}', input__mime_type="text/plain"))
    assert trace.question == '{"question": "x"}'


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ('{"choices": [{"message": {"role": "assistant", "content": "openai"}}]}', "openai"),
        ('{"generations": [[{"text": "langchain"}]]}', "langchain"),
        ('{"answer": "keyed", "context": []}', "keyed"),
        ('{"messages": [{"type": "human", "content": "q"}, {"type": "ai", "content": "said"}]}', "said"),
        ('{"question": "q", "generation": "state"}', "state"),
        ("AIMessage(content='printed', additional_kwargs={})", "printed"),
    ],
)
def test_answers_are_found_inside_json(value: str, answer: str) -> None:
    (trace,) = _read(_span(1, None, 0, 1, input__value="q", output__value=value))
    assert trace.answer == answer


MODEL = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}


@pytest.mark.parametrize(
    "output", ['{"price": 3}', "<generator object f at 0x7f00>", "Response(id=abc, text: 'So...')", '{"messages": []}']
)
def test_the_nearest_model_answers_where_the_root_says_nothing_usable(output: str) -> None:
    root = _span(1, None, 0, 9, input__value="q", output__value=output)
    (alone,) = _read(root)
    assert alone.answer is None
    assert alone.error == f"the trace has no answer: its output holds no text for the user, but {output}"
    said = _span(3, 1, 2, 3)._replace(attributes={**MODEL, "llm.output_messages.0.message.content": "So."})
    rewritten = _span(2, 1, 1, 2)._replace(attributes={**MODEL, "llm.output_messages.0.message.content": "no"})
    judging = _span(4, 1, 4, 8, openinference__span__kind="GUARDRAIL", input__value="q")
    inside = _span(5, 4, 5, 6)._replace(attributes={**MODEL, "llm.output_messages.0.message.content": "safe"})
    (trace,) = _read(root, rewritten, said, judging, inside)
    assert (trace.answer, trace.error) == ("So.", None)
    dumped = _span(3, 1, 2, 3)._replace(attributes={**MODEL, "llm.output_messages.0.message.content": '{"price": 3}'})
    assert [one.answer for one in _read(root, dumped)] == ['{"price": 3}']


def test_a_run_that_ends_with_a_call_of_a_tool_has_no_answer() -> None:
    calling = {**MODEL, "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search"}
    (trace,) = _read(
        _span(1, None, 0, 9, input__value="q"),
        _span(2, 1, 1, 2)._replace(attributes={**MODEL, "llm.output_messages.0.message.content": "Let me see."}),
        _span(3, 1, 3, 4)._replace(attributes=calling),
    )
    assert (trace.answer, trace.error) == (None, "the trace has no answer")


def test_retrievals_inside_one_another_count_once() -> None:
    printed = '["<NodeWithScore(node=TextNode(id_=d1), score=0.9)>"]'
    inner = _span(3, 2, 0.2, 0.3, openinference__span__kind="RETRIEVER", output__value=printed)
    other = _retriever(4, 2, 0.2, ("d9", "text 9", 0.9))
    (trace,) = _read(
        _span(1, None, 0, 1, input__value="q", output__value="a"), _retriever(2, 1, 0.1, ("d1", "t", 0.9)), inner, other
    )
    assert trace.documents == (Document("t", "d1", 0.9),) and trace.link.others["retriever"] == f"{2:016x}"
    opaque = _span(2, 1, 0.1, 0.9, openinference__span__kind="RETRIEVER", output__value='["<Node object at 0x7f00>"]')
    (below,) = _read(
        _span(1, None, 0, 1, input__value="q", output__value="a"), opaque, _retriever(3, 2, 0.2, ("d1", "t", 0.9))
    )
    assert below.documents == (Document("t", "d1", 0.9),)


@pytest.mark.parametrize(
    ("name", "kind", "output", "texts"),
    [
        ("fetch", "TOOL", '[{"id": "d1", "text": "t", "score": 0.5}]', ["t"]),
        ("fetch", "CHAIN", '[{"id": "d1", "text": "t", "score": 0.5}]', ["t"]),
        (
            "fetch",
            "TOOL",
            '{"content": [{"type": "text", "text": "[{\\"id\\": \\"d1\\", \\"text\\": \\"t\\"}]"}]}',
            ["t"],
        ),
        ("retrieve", "CHAIN", '["t", "u"]', ["t", "u"]),
        ("search_library", "TOOL", "All that the library says.", ["All that the library says."]),
        ("search_and_answer", "CHAIN", "An answer.", None),
        ("split_text", "CHAIN", '["t", "u"]', None),
        ("weather", "TOOL", "Sunny.", None),
    ],
)
def test_tools_and_functions_that_retrieve(name: str, kind: str, output: str, texts: list[str] | None) -> None:
    step = _span(2, 1, 0.1, 0.2, openinference__span__kind=kind, output__value=output)._replace(name=name)
    (trace,) = _read(_span(1, None, 0, 1, input__value="q", output__value="a"), step)
    assert (None if trace.documents is None else [one.text for one in trace.documents]) == texts


def test_documents_in_events_of_a_vector_database() -> None:
    result = {"db.query.result.id": "d1", "db.query.result.document": "t", "db.query.result.metadata": '{"page": 3}'}
    query = _span(2, 1, 0.1, 0.2)._replace(name="chroma.query", events=(SpanEvent("db.query.result", 1, result),))
    (trace,) = _read(_span(1, None, 0, 1, input__value="q", output__value="a"), query)
    assert trace.documents == (Document("t", "d1", None, {"page": 3}),)


@pytest.mark.parametrize(
    "prompt", ["Answer from: text 1, which is long enough. Question: it?", "Context: none. What is it?"]
)
def test_a_prompt_with_the_documents_or_the_query_is_no_question(prompt: str) -> None:
    found = _retriever(2, None, 0.1, ("d1", "text 1, which is long enough", 0.9))
    found = found._replace(attributes={**found.attributes, "input.value": "What is it?"})
    call = {**MODEL, "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": prompt}
    (trace,) = _read(found, _span(3, None, 0.5, 1)._replace(attributes=call))
    assert trace.question == "What is it?"


def test_a_question_below_one_that_had_ended_is_a_row_of_its_own() -> None:
    spans = (
        _span(1, None, 0, 1, input__value="first?", output__value="one"),
        _span(2, 1, 0.5, 3, openinference__span__kind="LLM", input__value="late", output__value="one"),
        _span(3, 1, 2, 3, input__value="second?", output__value="two"),
    )
    assert [(one.question, one.answer) for one in _read(*spans)] == [("first?", "one"), ("second?", "two")]


def test_tokens_stand_in_the_reply_where_no_attribute_has_them() -> None:
    reply = '{"message": {"content": "a"}, "raw": {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}}'
    (trace,) = _read(
        _span(1, None, 0, 1, input__value="q", output__value="a"),
        _span(2, 1, 0.1, 0.9, openinference__span__kind="LLM"),
        _span(3, 2, 0.2, 0.8, openinference__span__kind="LLM", output__value=reply),
    )
    assert (trace.input_tokens, trace.output_tokens) == (7, 3)


def test_earlier_turns_are_kept_as_messages() -> None:
    turns = [("user", "Hi"), ("assistant", "Hello"), ("user", "And now?")]
    flat = {
        f"llm.input_messages.{n}.message.{key}": value
        for n, turn in enumerate(turns)
        for key, value in zip(("role", "content"), turn, strict=True)
    }
    (trace,) = _read(_span(1, None, 0, 1, openinference__span__kind="LLM", **flat))
    assert trace.question == "And now?"
    assert [(message["role"], message["content"]) for message in trace.messages] == turns


def test_what_cannot_be_read_is_said() -> None:
    reader = SpanReader("otel")
    spans = (
        _span(1, None, 0, 1, input__value="q", output__value="a"),
        _span(2, 1, 0, 1, openinference__span__kind="LLM", llm__token_count__prompt="many")._replace(place="f:7"),
    )
    (trace,) = reader.read(spans)
    assert trace.input_tokens is None
    assert not list(reader.read([_span(1, None, 0, 1, http__method="GET")]))
    assert reader.remarks() == [
        "1 trace was left out: no span has an input that could be the question",
        "1 span has a number of input tokens that could not be read and was left out; the first is f:7",
    ]


def test_spans_that_are_their_own_ancestors_do_not_loop() -> None:
    spans = (
        _span(1, 2, 0, 1, input__value="q", output__value="a"),
        _span(2, 1, 0, 1, openinference__span__kind="LLM"),
        _span(3, 3, 0, 1, openinference__span__kind="LLM"),
    )
    assert [trace.question for trace in _read(*spans)] == ["q"]


def test_a_trace_survives_a_row_of_a_file() -> None:
    (trace,) = _read(*RAG)
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace


KEYS = [name.removesuffix(".N") for names in NAMES.values() for name in names]
FLAT = [f"{name.removesuffix('N')}0.{part}" for names in NAMES.values() for name in names if name.endswith(".N")
        for part in ("document.id", "document.content", "document.score", "document.metadata", "message.role",
                     "message.content", "message.tool_calls.0.tool_call.function.arguments", "annotation.score",
                     "evaluation.name", "role", "content")]  # fmt: skip
MIMES = ["input.mime_type", "output.mime_type"]
TEXTS = st.sampled_from(
    ["RETRIEVER", "LLM", "CHAIN", "RERANKER", "text/plain", "NaN", "[NaN]", '{"messages": [{"role": "user"}]}',
     '[{"role": "user", "content": NaN, "tool_calls": [{"name": 1, "arguments": Infinity}]}]', '{"a": Infinity}',
     '[{"id": [1], "score": "x", "content": {"a": 1}, "metadata": {"x": NaN}}]', "\ud800",
     "[" * 2000, "[" * 900 + "]" * 900, '"\\ud800"', "\x00"]
)  # fmt: skip
WILD = st.recursive(
    TEXTS | st.floats() | st.integers() | st.booleans() | st.none() | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "id", "score", "metadata", "question"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from([*KEYS, *FLAT, *MIMES]), WILD, max_size=6), min_size=1, max_size=4),
    st.sampled_from([0, 1, 2]),
)
def test_attributes_with_any_value_break_nothing(found: list[dict[str, Any]], status: int) -> None:
    event = SpanEvent("gen_ai.evaluation.result", 0, found[0])
    spans = [
        _span(number, number - 1 or None, number, number + 1)._replace(
            attributes={"input.value": "q", **attributes}, status=status, events=(event,), resource=attributes
        )
        for number, attributes in enumerate(found, 1)
    ]
    for trace in _read(*spans):
        row = json.loads(json.dumps(trace.to_row(), ensure_ascii=False, allow_nan=False).encode())
        assert isinstance(row["question"], str) and Trace.from_row(row).id == trace.id


START = 1_772_366_400 * SECOND
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
MAYBE = st.none() | ANY_TEXT
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
SECONDS = st.none() | st.integers(1, 10**9).map(lambda thousands: thousands / 1000)
KINDS: tuple[StepKind, ...] = ("retrieval", "rerank", "tool", "model", "agent", "guardrail", "other")
DOCUMENTS = st.builds(
    Document,
    MAYBE,
    ANY_TEXT,
    NUMBERS,
    st.dictionaries(st.sampled_from(["page", "lang"]), st.integers() | ANY_TEXT, max_size=2),
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
    st.sampled_from(KINDS), ANY_TEXT, MAYBE, MAYBE, LISTED, SECONDS, MAYBE,
)  # fmt: skip
FEEDBACK = st.builds(
    Feedback,
    ANY_TEXT,
    NUMBERS,
    MAYBE,
    MAYBE,
    st.sampled_from(["user", "annotator", "program", "unknown"]),
    MAYBE,
)
ROLES = ANY_TEXT.filter(lambda role: read_messages({"role": role, "content": "a"})[0]["role"] == role)
"""Roles that are read as they are: `SYSTEM` is `system`, and `HumanMessage` is `user`."""
TRACES = st.builds(
    Trace,
    st.just(TraceLink("otel", T)),
    ANY_TEXT,
    st.just(T),
    answer=ANY_TEXT | st.just(""),
    documents=st.none(),
    seconds=SECONDS,
    input_tokens=st.none() | st.integers(0, 10**6),
    output_tokens=st.none() | st.integers(0, 10**6),
    cost=st.none() | st.floats(0, 100),
    session=MAYBE,
    user=MAYBE,
    model=MAYBE,
    messages=st.lists(st.fixed_dictionaries({"role": ROLES, "content": ANY_TEXT}), max_size=3)
    .filter(lambda listed: len(listed) != 1)
    .map(tuple),
    steps=st.lists(STEPS, max_size=4).map(tuple),
    feedback=st.lists(FEEDBACK, max_size=2, unique=True).map(tuple),
    metadata=st.dictionaries(
        ANY_TEXT.filter(lambda key: key != "tags"),
        ANY_TEXT | st.integers() | st.booleans(),
        max_size=3,
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


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (
            {"gen_ai.usage.cache_read.input_tokens": 30, "gen_ai.usage.cache_write.input_tokens": 20,
             "gen_ai.usage.reasoning.output_tokens": 4, "gen_ai.response.time_to_first_chunk": 0.25},
            (30, 20, 4, 0.25),
        ),
        (
            {"gen_ai.usage.cache_read.input_tokens": "30", "gen_ai.usage.cache_creation.input_tokens": 20},
            (30, 20, None, None),
        ),
        (
            {"llm.token_count.prompt_details.cache_read": 30, "llm.token_count.prompt_details.cache_write": 20,
             "llm.token_count.completion_details.reasoning": 4},
            (30, 20, 4, None),
        ),
        (
            {"gen_ai.usage.cache_read_input_tokens": 30, "gen_ai.usage.cache_creation_input_tokens": 20,
             "gen_ai.usage.reasoning_tokens": 4},
            (30, 20, 4, None),
        ),
        (
            {"ai.usage.cachedInputTokens": 30, "ai.usage.reasoningTokens": 4, "ai.response.msToFirstChunk": 250},
            (30, None, 4, 0.25),
        ),
        ({"gen_ai.usage.cache_read.input_tokens": 0}, (0, None, None, None)),
        ({"gen_ai.usage.cache_read.input_tokens": -1, "gen_ai.response.time_to_first_chunk": "soon"}, (None,) * 4),
    ],
)  # fmt: skip
def test_tokens_of_the_cache_and_of_reasoning(attributes: dict[str, Any], expected: tuple[float | None, ...]) -> None:
    calls = [
        _span(number, 1, number, number + 0.5)._replace(attributes={"gen_ai.operation.name": "chat", **attributes,
                                                                    "gen_ai.usage.input_tokens": 100})
        for number in (2, 3)
    ]  # fmt: skip
    (trace,) = _read(_span(1, None, 0, 9, input__value="Why?", output__value="So."), *calls)
    found = (trace.cache_read_tokens, trace.cache_write_tokens, trace.reasoning_tokens, trace.first_chunk_seconds)
    doubled = [None if count is None else count * 2 for count in expected[:3]]  # of two calls
    assert found == (*doubled, expected[3]) and trace.input_tokens == 200
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace


def test_a_call_without_a_kind_says_its_end_too() -> None:
    call = {
        "gen_ai.system": "OpenAI",
        "gen_ai.completion.0.content": "So.",
        "gen_ai.completion.0.finish_reason": "length",
    }
    root = _span(1, None, 0, 9, input__value="Why?", output__value="So.")
    (trace,) = _read(root, _span(2, 1, 1, 2)._replace(attributes=call))
    assert trace.finish_reason == "length"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.response.finish_reasons": ["length"]}, "length"),
        ({"gen_ai.response.finish_reasons": '["max_tokens"]'}, "max_tokens"),
        ({"gen_ai.response.finish_reasons": ["stop"]}, "stop"),
        ({"ai.response.finishReason": "length"}, "length"),
        ({"gen_ai.completion.0.content": "So", "gen_ai.completion.0.finish_reason": "length"}, "length"),
        ({"gen_ai.output.messages": '[{"role": "assistant", "parts": [], "finish_reason": "length"}]'}, "length"),
        ({"output.value": '{"choices": [{"message": {"content": "So"}, "finish_reason": "length"}]}'}, "length"),
        ({"output.value": "So"}, None),
    ],
)
def test_the_end_of_the_last_model_is_the_answer_s(attributes: dict[str, Any], expected: str | None) -> None:
    cut = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["length"]}
    calls = [
        _span(number, 1, number, number + 0.5)._replace(attributes=found)
        for number, found in ((2, cut), (3, {"gen_ai.operation.name": "chat", **attributes}))
    ]
    (trace,) = _read(_span(1, None, 0, 9, input__value="Why?", output__value="So."), *calls)
    assert trace.finish_reason == expected
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace
    assert read_answer(trace).truncated == (True if expected in ("length", "max_tokens") else None)


@pytest.mark.parametrize("place", ["input.value", "metadata"])
def test_contexts_that_a_question_came_with_count_where_nothing_was_retrieved(place: str) -> None:
    root = _span(1, None, 0, 9, input__value='{"question": "Why?"}', output__value="So.")
    given = root._replace(attributes={**root.attributes, place: '{"question": "Why?", "contexts": ["c"]}'})
    assert _read(given)[0].documents == (Document("c"),)
    assert _read(given, _retriever(2, 1, 0.1, ("d1", "text 1", 0.9)))[0].documents == (Document("text 1", "d1", 0.9),)


def test_what_a_model_cites_beside_its_answer() -> None:
    text = "It opened in 1889. It is tall."
    note = {"type": "url_citation", "start_index": 0, "end_index": 18, "url": "d1"}
    reply = {"output": [{"type": "message", "content": [{"type": "output_text", "text": text, "annotations": [note]}]}]}
    model = _span(3, 1, 0.3, 1, openinference__span__kind="LLM", output__value=json.dumps(reply))
    chain = {"openinference.span.kind": "CHAIN", "input.value": "When?", "output.value": text}
    (trace,) = _read(
        _span(1, None, 0, 2)._replace(attributes=chain), _retriever(2, 1, 0.1, ("d1", "Opened in 1889.", 0.5)), model
    )
    assert trace.citations == ({"start": 0, "end": 18, "document": "d1"},)
    assert Trace.from_row(trace.to_row()) == trace
    found = load_citations(read_answer(trace).citations) or ()
    assert [(one.document, one.context) for one in found] == [("d1", 0)]
