from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.trace import Trace
from rageval_spec.errors import DataError
from rageval_spec.exchange.mlflow.traces import load_records, read_record, read_trace
from rageval_spec.exchange.shared.span_traces import SpanReader
from tests.exchange.mlflow.server import make_span, make_trace

TEXTS = st.text("abc? ", min_size=1, max_size=20).filter(str.strip)
PLAIN = st.one_of(st.text("xyz", min_size=1, max_size=5), st.integers(-(2**53), 2**53), st.booleans(), st.floats(-9, 9))
DOCUMENTS = st.lists(
    st.fixed_dictionaries(
        {"page_content": TEXTS, "id": st.text("0123abc", min_size=1, max_size=6),
         "metadata": st.dictionaries(st.text("klm", min_size=1, max_size=4), PLAIN, max_size=3)}
    ),
    min_size=1, max_size=4, unique_by=lambda one: (one["id"], one["page_content"]),
)  # fmt: skip


def read(found: dict[str, Any]) -> Trace:
    (trace,) = read_trace(found["trace_info"], found.get("spans"), SpanReader("mlflow"), "support", "here")
    return trace


def test_spans_and_information_make_a_trace() -> None:
    trace = read(make_trace(7))
    assert (trace.id, trace.question, trace.answer) == (f"tr-{7:032x}", "Question 7?", "Answer 7.")
    assert [(one.doc_id, one.text, dict(one.metadata)) for one in trace.documents or ()] == [
        ("d0", "Text 0.", {"page": 0}),
        ("d1", "Text 1.", {"page": 1}),
    ]
    assert (trace.seconds, trace.input_tokens, trace.output_tokens, trace.cost) == (2.0, 100, 20, 0.25)
    assert (trace.session, trace.user, trace.model) == ("s1", "u1", "gpt-4o-mini")
    assert dict(trace.metadata) == {"env": "prod"}
    assert trace.link.to_dict() == {"tool": "mlflow", "trace_id": f"tr-{7:032x}", "project": "support"}


def test_without_spans_the_information_counts() -> None:
    metadata = {
        "mlflow.trace.tokenUsage": '{"input_tokens": 7, "output_tokens": 3}',
        "mlflow.trace.cost": '{"total_cost": 0.5}',
    }
    found = make_trace(7, trace_metadata=metadata)
    trace = read({"trace_info": found["trace_info"]})
    assert (trace.question, trace.answer, trace.seconds) == ("Question 7?", "Answer 7.", 2.5)
    assert (trace.input_tokens, trace.output_tokens, trace.cost) == (7, 3, 0.5)
    assert trace.started == "2026-11-22T13:07:00Z"


def test_what_people_said_is_feedback_and_what_they_expected_is_the_reference() -> None:
    def say(name: str, value: Any, kind: str = "HUMAN", source: str = "ann", **more: Any) -> dict[str, Any]:
        return {
            "assessment_name": name,
            "source": {"source_type": kind, "source_id": source},
            "feedback": {"value": value},
            **more,
        }

    facts = {"serialized_value": {"value": '["One.", "Two."]', "serialization_format": "JSON"}}
    expected = {"assessment_name": "expected_facts", "source": {}, "expectation": facts}
    documents = {
        "assessment_name": "expected_retrieved_context",
        "expectation": {"value": [{"doc_uri": "a"}, {"doc_uri": "b"}]},
    }
    said = [
        say("helpful", True, rationale="nice"), say("tone", "kind", "LLM_JUDGE"), say("stars", 4),
        say("old", 1, valid=False), say("ours", 0.5, "CODE", "rageval-spec"), expected, documents,
    ]  # fmt: skip
    trace = read(make_trace(7, assessments=said))
    assert [(one.name, one.value, one.label, one.comment, one.source) for one in trace.feedback] == [
        ("helpful", 1.0, "true", "nice", "annotator"),
        ("tone", None, "kind", None, "program"),
        ("stars", 4.0, None, None, "annotator"),
    ]
    assert (trace.references, trace.relevant) == (("One. Two.",), ("a", "b"))


def test_a_failed_trace_has_its_error() -> None:
    found = make_trace(7)
    found["spans"][0] = make_span(7, "CHAIN", 1, {"question": "Q?"}) | {
        "status": {"code": "STATUS_CODE_ERROR", "message": "TimeoutError: model"}
    }
    trace = read(found)
    assert (trace.answer, trace.error) == (None, "TimeoutError: model")


def test_a_span_that_cannot_be_read_is_named() -> None:
    found = make_trace(7)
    found["spans"][1]["span_id"] = "short"
    with pytest.raises(DataError, match=r"here: trace tr-0+7: .*spans\[1\]\.spanId: 'short'"):
        read(found)
    with pytest.raises(DataError, match="here: a trace without a trace_id"):
        read({"trace_info": {}})


@given(TEXTS, TEXTS, DOCUMENTS)
def test_what_mlflow_knows_of_a_trace_comes_back(question: str, answer: str, documents: list[dict[str, Any]]) -> None:
    spans = [
        make_span(1, "CHAIN", 1, {"question": question}, {"answer": answer}),
        make_span(1, "RETRIEVER", 2, {"query": question}, documents),
    ]
    trace = read({"trace_info": {"trace_id": "tr-1"}, "spans": spans})
    assert (trace.question, trace.answer) == (question, answer)
    back = [
        {"page_content": one.text, "id": one.doc_id, "metadata": dict(one.metadata)} for one in trace.documents or ()
    ]
    assert back == documents


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"inputs": {"question": "x"}}, "here: it has no id"),
        ({"dataset_record_id": "d", "inputs": {}}, "here: it has no inputs"),
    ],
)
def test_a_record_that_cannot_be_read_is_named(record: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_record(record, "golden", "here")


def test_a_record_can_have_an_answer() -> None:
    record = {"dataset_record_id": "d", "inputs": {"question": "Q?"}, "outputs": {"answer": "A."}}
    assert read_record(record, "golden", "here").answer == "A."


@pytest.mark.parametrize("text", ["[1, 2]", "{}", "[{", None])
def test_records_that_are_no_list_of_objects_are_refused(text: Any) -> None:
    with pytest.raises(DataError, match="here: its records are not a list of objects"):
        load_records(text, "here")
