from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.trace import Trace
from rageval_spec.exchange.langsmith.traces import has_root, make_trace, read_example
from rageval_spec.exchange.shared.places import Places
from tests.exchange.langfuse.test_rows import JSON
from tests.exchange.langsmith.server import make_id, rag_trace, run


@given(
    question=st.text(min_size=1).filter(lambda text: text.strip()),
    answer=st.text(min_size=1),
    documents=st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique_by=lambda pair: pair[0], max_size=4),
    tokens=st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)),
    cost=st.floats(0, 1e6).map(lambda number: round(number, 6)),
)
def test_what_both_sides_know_arrives_unchanged(
    question: str, answer: str, documents: list[tuple[str, str]], tokens: tuple[int, int], cost: float
) -> None:
    found = [{"page_content": text, "metadata": {"id": doc_id}} for doc_id, text in documents]
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_cost": cost}
    trace = make_trace(
        [
            run("t", "t", "chain", 1, inputs={"question": question}, outputs={"answer": answer}),
            run("r", "t", "retriever", 2, outputs={"documents": found}),
            run("m", "t", "llm", 3, **usage),
        ],
        Places(),
        "support",
    )
    assert trace is not None
    assert (trace.question, trace.answer) == (question, answer)
    assert [(one.doc_id, one.text) for one in trace.documents or ()] == documents
    assert (trace.input_tokens, trace.output_tokens, trace.cost) == (*tokens, cost)
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace


def test_a_trace_without_its_first_run_is_none() -> None:
    rows = rag_trace(1)
    assert has_root(rows)
    assert not has_root(rows[1:])
    assert make_trace(rows[1:], Places(), None) is None


def test_a_root_that_adds_up_is_counted_once() -> None:
    root = run("t", "t", "chain", 1, inputs={"q": "Why?"}, prompt_tokens=10, completion_tokens=5, total_cost=0.5)
    trace = make_trace([root], Places(), None)
    assert trace is not None
    assert (trace.input_tokens, trace.output_tokens, trace.cost) == (10, 5, 0.5)


def test_examples_of_every_form() -> None:
    for row in (
        {"id": "e", "inputs": {"question": "Why?"}, "outputs": {"answer": "So."}},
        {"id": "e", "inputs": '{"question": "Why?"}', "outputs": '{"answer": "So."}'},
        {"id": "e", "input_question": "Why?", "output_answer": "So."},
        {"id": "e", "inputs.question": "Why?", "outputs.answer": "So."},
    ):
        trace = read_example(row, Places(), "golden")
        assert trace is not None
        assert (trace.id, trace.question, trace.references) == ("e", "Why?", ("So.",))


def test_an_example_without_an_id_gets_one_that_stays() -> None:
    first, second = (read_example({"inputs": {"q": "Why?"}}, Places(), "golden") for _ in range(2))
    assert first is not None
    assert first == second
    assert first.id != make_id("x")


@given(st.lists(st.dictionaries(st.sampled_from([*rag_trace(1)[0]]), JSON), max_size=3))
def test_no_types_break_the_reading(changes: list[dict[str, Any]]) -> None:
    rows = rag_trace(1)
    for row, change in zip(rows, changes, strict=False):
        row |= {key: value for key, value in change.items() if key not in ("id", "trace_id")}
    trace = make_trace(rows, Places(), None)
    if trace is not None:
        json.dumps(trace.to_row(), allow_nan=False)
