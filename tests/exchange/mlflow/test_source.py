""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rageval_spec.data.traces import Trace
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.mlflow.source import (
    MlflowConnection,
    MlflowSource,
    MlflowSourceNode,
    load_records,
    read_record,
    read_table,
    read_trace,
)
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.plugin import Context
from rageval_spec.plugin.secrets import Secret
from tests.endpoints.api_server import Asked
from tests.exchange.mlflow.server import MlflowServer, make_span, make_trace
from tests.models.endpoint import Answer

PAGE = b"<!doctype html><title>MLflow</title>"


def read(**settings: Any) -> list[Trace]:
    source = MlflowSource(MlflowSourceNode(**({"experiment": "support"} | settings)), Context("mlflow", Path()))
    try:
        return list(source.read())
    finally:
        source.close()


def test_all_pages_are_read_newest_first(mlflow: MlflowServer) -> None:
    assert [trace.question for trace in read()] == [f"Question {number}?" for number in (5, 4, 3, 2, 1)]
    assert len([one for one in mlflow.asked if one.route.endswith("/search")]) == 3
    assert [trace.question for trace in read(limit=2)] == ["Question 5?", "Question 4?"]


def test_a_trace_that_moves_to_the_next_page_is_read_once(mlflow: MlflowServer) -> None:
    real = mlflow.answer

    def reply(asked: Asked) -> Answer:
        answer = real(asked)
        if asked.route.endswith("/search") and len(mlflow.traces) == 5:
            mlflow.traces.append(make_trace(6))
        return answer

    mlflow.reply = reply
    assert [trace.question for trace in read()] == [f"Question {number}?" for number in (5, 4, 3, 2, 1)]


def test_the_window_and_the_run_are_conditions_of_the_search(mlflow: MlflowServer) -> None:
    read(since="2026-11-22T13:02:00Z", until="2026-11-22T13:05:00Z", run="abc123")
    body = next(one.content for one in mlflow.asked if one.route.endswith("/search"))
    assert body["filter"] == "timestamp_ms >= 1795352520000 AND timestamp_ms < 1795352700000 AND run_id = 'abc123'"
    assert body["locations"] == [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "1"}}]
    with pytest.raises(UsageError, match="is not the id of a run"):
        read(run="x' OR '1' = '1")


def test_an_experiment_that_is_not_there_is_named_with_those_that_are(mlflow: MlflowServer) -> None:
    with pytest.raises(UsageError, match="mlflow: there is no experiment 'suport'; did you mean 'support'"):
        read(experiment="suport")


def test_a_dataset_gives_questions_with_references(mlflow: MlflowServer) -> None:
    mlflow.records = [
        {"dataset_record_id": f"dr-{number}", "inputs": {"question": f"Q{number}?", "lang": "de"},
         "expectations": {"expected_response": f"A{number}.", "expected_documents": ["d1"], "strict": True},
         "tags": {"difficulty": "easy", "mlflow.user": "root"}, "outputs": {}}
        for number in range(5)
    ]  # fmt: skip
    traces = read(dataset="golden")
    assert [trace.id for trace in traces] == [f"dr-{number}" for number in range(5)]
    assert (traces[0].references, traces[0].relevant, traces[0].answer) == (("A0.",), ("d1",), None)
    assert dict(traces[0].metadata) == {"input.lang": "de", "difficulty": "easy", "expectation.strict": True}
    with pytest.raises(UsageError, match="there is no dataset 'silver'; the datasets are golden"):
        read(dataset="silver")


def test_a_run_s_table_gives_its_rows(mlflow: MlflowServer) -> None:
    mlflow.files["1/r0/artifacts/eval.json"] = b'{"columns": ["inputs", "outputs"], "data": [["Q?", "A."]]}'
    mlflow.runs["r0"] = {}
    (trace,) = read(experiment=None, run="r0", table="eval.json")
    assert (trace.question, trace.answer) == ("Q?", "A.")
    with pytest.raises(UsageError, match=r"the run r0 has no file 'x\.json'; it has eval\.json"):
        read(experiment=None, run="r0", table="x.json")
    with pytest.raises(UsageError, match="there is no run 'r9'"):
        read(experiment=None, run="r9", table="x.json")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(PAGE, Content_Type="text/html"), "answered 200 with a web page; is url right"),
        (Answer(b"no", 401), r"answered 401 Unauthorized \(is the key right\?\)"),
        (Answer(PAGE, 404, Content_Type="text/html"), "answered 404"),
        (Answer({"error_code": "INVALID_PARAMETER_VALUE", "message": "bad page"}, 400), "answered 400 .*bad page"),
        (Answer(b'{"traces": [{"trace_id": '), "answered 200 with something that is not JSON"),
        (Answer({"traces": {}}), "the reply has no list 'traces'; is url that of MLflow"),
        (Answer([1]), "the reply has no list 'traces'; is url that of MLflow"),
        (Answer({"traces": [], "next_page_token": "x"}), "gave the page 'x' twice"),
    ],
)
def test_a_bad_reply_is_an_error_with_its_place(mlflow: MlflowServer, answer: Answer, message: str) -> None:
    real = mlflow.answer
    mlflow.reply = lambda asked: answer if asked.route.endswith("/traces/search") else real(asked)
    with pytest.raises(ServiceError, match=message):
        read()


def test_a_page_of_another_service_is_an_error(mlflow: MlflowServer) -> None:
    mlflow.reply = lambda asked: Answer({"hello": "world"})
    with pytest.raises(ServiceError, match="experiment: the reply has no 'experiment'; is url that of MLflow"):
        read()


def test_records_that_are_no_list_are_an_error(mlflow: MlflowServer) -> None:
    real = mlflow.answer
    mlflow.reply = lambda asked: Answer({"records": '[{"a": '}) if asked.route.endswith("/records") else real(asked)
    with pytest.raises(DataError, match="dataset golden: its records are not a list of objects"):
        read(dataset="golden")


def test_the_credentials_are_sent_and_never_shown(mlflow: MlflowServer, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow.reply = lambda asked: Answer(f"who is {asked.headers['authorization']}?".encode(), 403)
    with pytest.raises(ServiceError) as caught:
        read(token=Secret("very-secret-token-4711"))
    assert mlflow.asked[-1].headers["authorization"] == "Bearer very-secret-token-4711"
    assert "4711" not in str(caught.value)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "pass-4711")
    with pytest.raises(ServiceError) as caught:
        read()
    assert mlflow.asked[-1].headers["authorization"] == "Basic bWU6cGFzcy00NzEx"
    assert "bWU6cGFzcy00NzEx" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "name `experiment`"),
        ({"table": "x.json"}, "name `run` too"),
        ({"run": "r", "table": "x.json", "dataset": "d"}, "`dataset` does not go together with `table`"),
        ({"experiment": "e", "dataset": "d", "since": "7d"}, "`since` does not go together with `dataset`"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MlflowSourceNode(**settings)


def test_traces_that_are_too_large_together_are_asked_for_in_parts(mlflow: MlflowServer) -> None:
    for trace in mlflow.traces:
        trace["trace_info"]["filler"] = "x" * 20_000_000
    assert len(read(limit=2)) == 2
    mlflow.page = 1
    assert [trace.question for trace in read()] == [f"Question {number}?" for number in (5, 4, 3, 2, 1)]
    sizes = [len(one.parameters["trace_ids"]) for one in mlflow.asked if one.route.endswith("/batchGet")]
    assert sizes == [2, 5, 2, 3]


def test_a_row_is_a_question_with_its_answer_contexts_and_the_rest() -> None:
    columns = ["query_id", "inputs", "predictions", "targets", "retrieved_context", "score/v1"]
    data = [
        ["q1", {"question": "Why?"}, "So.", "Because.", [{"doc_uri": "d1", "content": "Text."}, "plain"], 0.5],
        ["q2", "How?", None, None, None, None],
    ]
    first, second = read_table({"columns": columns, "data": data}, "r0", "eval.json", "here")
    assert (first.id, first.question, first.answer, first.references) == ("q1", "Why?", "So.", ("Because.",))
    assert [(one.doc_id, one.text) for one in first.documents or ()] == [("d1", "Text."), (None, "plain")]
    assert dict(first.metadata) == {"score/v1": 0.5}
    assert (second.question, second.answer, second.documents) == ("How?", None, None)
    assert first.link.to_dict() == {"tool": "mlflow", "trace_id": "r0/0", "run": "r0", "table": "eval.json"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "here: not a table of MLflow"),
        ({"columns": ["v"], "data": []}, "here: no column holds the question; the columns are v"),
        ({"columns": ["question"], "data": [["a", "b"]]}, "here: row 1 does not have 1 values"),
        ({"columns": ["question"], "data": [["a"], [None]]}, "here: row 2 has no text in 'question'"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error_with_its_place(content: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_table(content, "r0", "eval.json", "here"))


TEXTS = st.text("abc? ", min_size=1, max_size=20).filter(str.strip)
PLAIN = st.one_of(st.text("xyz", min_size=1, max_size=5), st.integers(-(2**53), 2**53), st.booleans(), st.floats(-9, 9))
DOCUMENTS = st.lists(
    st.fixed_dictionaries(
        {"page_content": TEXTS, "id": st.text("0123abc", min_size=1, max_size=6),
         "metadata": st.dictionaries(st.text("klm", min_size=1, max_size=4), PLAIN, max_size=3)}
    ),
    min_size=1, max_size=4, unique_by=lambda one: (one["id"], one["page_content"]),
)  # fmt: skip


def read_traces(found: dict[str, Any]) -> Trace:
    (trace,) = read_trace(found["trace_info"], found.get("spans"), SpanReader("mlflow"), "support", "here")
    return trace


def test_spans_and_information_make_a_trace() -> None:
    trace = read_traces(make_trace(7))
    assert (trace.id, trace.question, trace.answer) == (f"tr-{7:032x}", "Question 7?", "Answer 7.")
    assert [(one.doc_id, one.text, dict(one.metadata)) for one in trace.documents or ()] == [
        ("d0", "Text 0.", {"page": 0}),
        ("d1", "Text 1.", {"page": 1}),
    ]
    assert (trace.seconds, trace.input_tokens, trace.output_tokens, trace.cost) == (2.0, 100, 20, 0.25)
    assert (trace.session, trace.user, trace.model) == ("s1", "u1", "gpt-4o-mini")
    assert dict(trace.metadata) == {"env": "prod"}
    assert trace.link.to_dict() == {"tool": "mlflow", "trace_id": f"tr-{7:032x}", "project": "support"}


@pytest.mark.parametrize("part", ["trace_metadata", "tags"])
def test_a_trace_names_the_commit_of_its_application(part: str) -> None:
    found: dict[str, Any] = {part: {"mlflow.source.git.commit": "51f7a9b3c0"}}
    assert read_traces(make_trace(7, **found)).version == "51f7a9b3c0"


def test_without_spans_the_information_counts() -> None:
    metadata = {
        "mlflow.trace.tokenUsage": '{"input_tokens": 7, "output_tokens": 3}',
        "mlflow.trace.cost": '{"total_cost": 0.5}',
    }
    found = make_trace(7, trace_metadata=metadata)
    trace = read_traces({"trace_info": found["trace_info"]})
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
    trace = read_traces(make_trace(7, assessments=said))
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
    trace = read_traces(found)
    assert (trace.answer, trace.error) == (None, "TimeoutError: model")


def test_a_span_that_cannot_be_read_is_named() -> None:
    found = make_trace(7)
    found["spans"][1]["span_id"] = "short"
    with pytest.raises(DataError, match=r"here: trace tr-0+7: .*spans\[1\]\.spanId: 'short'"):
        read_traces(found)
    with pytest.raises(DataError, match="here: a trace without a trace_id"):
        read_traces({"trace_info": {}})


@given(TEXTS, TEXTS, DOCUMENTS)
def test_what_mlflow_knows_of_a_trace_comes_back(question: str, answer: str, documents: list[dict[str, Any]]) -> None:
    spans = [
        make_span(1, "CHAIN", 1, {"question": question}, {"answer": answer}),
        make_span(1, "RETRIEVER", 2, {"query": question}, documents),
    ]
    trace = read_traces({"trace_info": {"trace_id": "tr-1"}, "spans": spans})
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


def test_settings_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert (MlflowConnection().find_url(), MlflowConnection().find_headers()) == (MlflowConnection.usual_url, {})
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example.org/")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t-1")
    assert MlflowConnection().find_url() == "https://mlflow.example.org"
    assert MlflowConnection().find_headers()["Authorization"].reveal() == "Bearer t-1"
    assert MlflowConnection(url="http://localhost:1").find_url() == "http://localhost:1"


def test_a_file_in_the_environment_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    with pytest.raises(UsageError, match=r"MLFLOW_TRACKING_URI: write a URL .*start a server with: mlflow server"):
        MlflowConnection().find_url()
