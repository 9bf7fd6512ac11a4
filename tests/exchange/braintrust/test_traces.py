from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.trace import Trace
from rageval_spec.exchange.braintrust.traces import is_root, make_trace, read_row
from rageval_spec.exchange.shared.places import Places
from tests.exchange.braintrust.server import rag_trace, row
from tests.exchange.langfuse.test_rows import JSON


@given(
    question=st.text(min_size=1).filter(lambda text: text.strip()),
    answer=st.text(min_size=1),
    expected=st.text(min_size=1).filter(lambda text: text.strip()),
    documents=st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique_by=lambda pair: pair[0], max_size=4),
    scores=st.dictionaries(st.text(min_size=1), st.floats(0, 1), max_size=3),
)
def test_what_both_sides_know_arrives_unchanged(
    question: str, answer: str, expected: str, documents: list[tuple[str, str]], scores: dict[str, float]
) -> None:
    contexts = [{"id": doc_id, "text": text} for doc_id, text in documents]
    output = {"answer": answer, "contexts": contexts}
    one = row("t", "t", "eval", 1, input={"question": question}, output=output, expected=expected, scores=scores)
    trace = make_trace([one], Places(), {}, "support")
    assert trace is not None
    assert (trace.question, trace.answer) == (question, answer)
    assert trace.references == (expected,) or expected.lstrip()[:1] in ("{", "[", '"')
    assert [(doc.doc_id, doc.text) for doc in trace.documents or ()] == documents
    assert {one.name: one.value for one in trace.feedback} == scores
    assert Trace.from_row(json.loads(json.dumps(trace.to_row()))) == trace


def test_a_trace_without_its_first_row_is_none() -> None:
    rows = rag_trace(1)
    assert [is_root(one) for one in rows] == [True, False, False, False]
    assert make_trace(rows[1:], Places(), {}, None) is None


def test_rows_of_datasets_have_gold_answers() -> None:
    trace = read_row(
        {"id": "e", "input": "Why?", "expected": {"answer": "So.", "relevant_doc_ids": ["d1"]}, "metadata": {"n": 1}},
        Places(), "golden", "support",
    )  # fmt: skip
    assert trace is not None
    assert (trace.id, trace.question, trace.references, trace.relevant) == ("e", "Why?", ("So.",), ("d1",))
    assert read_row({"id": "e", "input": None}, Places(), "golden", None) is None


@given(st.lists(st.dictionaries(st.sampled_from([*rag_trace(1)[0]]), JSON), max_size=3))
def test_no_types_break_the_reading(changes: list[dict[str, Any]]) -> None:
    rows = rag_trace(1)
    for one, change in zip(rows, changes, strict=False):
        one |= {key: value for key, value in change.items() if key not in ("id", "root_span_id")}
    trace = make_trace(rows, Places(), {}, None)
    if trace is not None:
        json.dumps(trace.to_row(), allow_nan=False)
