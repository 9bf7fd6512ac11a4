from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.data.trace import Trace
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.mlflow.source import MlflowSource, MlflowSourceNode
from rageval_spec.plugin import Context
from rageval_spec.plugin.secret import Secret
from tests.endpoints.api_server import Asked
from tests.exchange.mlflow.server import MlflowServer, make_trace
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
    with pytest.raises(UsageError, match="has no dataset 'silver'; its datasets are golden"):
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
        (Answer({"traces": {}}), "answered without the list 'traces'"),
        (Answer([1]), "answered without the list 'traces'"),
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
    with pytest.raises(ServiceError, match="the experiment has no 'experiment'; is url that of MLflow"):
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
        ({"run": "r", "table": "x.json", "dataset": "d"}, "either `dataset` or `table`"),
        ({"experiment": "e", "dataset": "d", "since": "7d"}, "since and until select traces"),
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
