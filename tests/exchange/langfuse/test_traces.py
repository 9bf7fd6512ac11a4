from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.trace import Trace
from rageval_spec.exchange.langfuse.rows import normalise
from rageval_spec.exchange.langfuse.traces import is_cut, make_trace
from rageval_spec.exchange.shared.places import Places
from rageval_spec.reading.json_path import parse_path
from tests.exchange.langfuse.server import observation, rag_trace, score
from tests.exchange.langfuse.test_rows import JSON


def make(*rows: dict[str, Any], places: Places | None = None) -> Trace | None:
    return make_trace([normalise(row, "row") for row in rows], places or Places())


@given(
    question=st.text(min_size=1).filter(lambda text: text.strip()),
    answer=st.text(),
    documents=st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique_by=lambda pair: pair[0], max_size=4),
    tokens=st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)),
    cost=st.floats(0, 1e6).map(lambda number: round(number, 6)),
)
def test_what_both_sides_know_arrives_unchanged(
    question: str, answer: str, documents: list[tuple[str, str]], tokens: tuple[int, int], cost: float
) -> None:
    retrieved = [{"id": doc_id, "text": text} for doc_id, text in documents]
    root = observation(1, "t", isRootObservation=True, input=json.dumps({"question": question}))
    root["output"] = json.dumps({"answer": answer})
    retriever = observation(2, "t", "RETRIEVER", parentObservationId="o1", output=json.dumps(retrieved))
    usage = {"usageDetails": {"input": tokens[0], "output": tokens[1]}, "totalCost": cost}
    trace = make(root, retriever, observation(3, "t", "GENERATION", parentObservationId="o1", **usage))
    assert trace is not None
    assert trace.question == question
    assert (trace.answer or "") == answer
    assert [(one.doc_id, one.text) for one in trace.documents or ()] == documents
    assert (trace.input_tokens, trace.output_tokens, trace.cost) == (*tokens, cost)
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace


def test_chat_messages_give_the_last_question_and_the_conversation() -> None:
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Why?"},
    ]
    root = observation(1, "t", isRootObservation=True, input=json.dumps(said))
    root["output"] = json.dumps({"role": "assistant", "content": "So."})
    trace = make(root)
    assert trace is not None
    assert (trace.question, trace.answer, list(trace.messages)) == ("Why?", "So.", said)


def test_named_places_win() -> None:
    places = Places(parse_path("$.a.b"), parse_path("$.out[0]"))
    rows = [
        observation(
            1, "t", isRootObservation=True, input='{"question": "no", "a": {"b": "yes"}}', output='{"out": ["x"]}'
        )
    ]
    trace = make(*rows, places=places)
    assert trace is not None
    assert (trace.question, trace.answer) == ("yes", "x")
    assert make(*rows, places=Places(parse_path("$.c"))) is None


def test_a_part_of_a_trace_is_recognised() -> None:
    rows = [normalise(row, "row") for row in rag_trace(1)]
    assert not is_cut(rows)
    assert is_cut(rows[1:])
    assert not is_cut([*rows[1:], normalise({"id": "t1", "timestamp": "2026-03-01T12:00:00Z", "input": "q"}, "row")])


@given(st.lists(st.dictionaries(st.sampled_from([*rag_trace(1)[2], "input", "metadata", "scores"]), JSON), max_size=3))
def test_no_types_break_the_reading(changes: list[dict[str, Any]]) -> None:
    rows = rag_trace(1)
    for row, change in zip(rows, changes, strict=False):
        row |= {key: value for key, value in change.items() if key not in ("id", "traceId")}
    trace = make(*rows, score(1, "t1", "thumbs", 1.0))
    if trace is not None:
        json.dumps(trace.to_row(), allow_nan=False)
