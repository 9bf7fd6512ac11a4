from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.data.trace import TraceLink
from rageval_spec.errors import RagevalError, UsageError
from tests.endpoints.api_server import Asked
from tests.exchange.mlflow.sending import judge, make_traces, send
from tests.exchange.mlflow.server import MlflowServer, make_trace
from tests.exchange.traced_evaluation import evaluate
from tests.models.endpoint import Answer


def test_values_reasons_and_labels_go_to_the_trace_of_the_answer(mlflow: MlflowServer) -> None:
    receipt = send(judge(), write="assessments")
    assert dict(receipt.sent) == {"assessment": 10}
    said = {one["assessment_name"]: one for one in mlflow.assessments[f"tr-{2:032x}"].values()}
    one = said["faithfulness"]
    assert (one["feedback"], one["metadata"]["label"]) == ({"value": 0.1}, "poor")
    assert one["rationale"].startswith("1 supported, 1 contradicted")
    assert one["source"] == {"source_type": "LLM_JUDGE", "source_id": "rageval-spec"}
    assert (said["ndcg@10"]["feedback"], said["ndcg@10"]["source"]["source_type"]) == ({"value": 0.25}, "CODE")


def test_what_could_not_be_scored_is_said_so(mlflow: MlflowServer) -> None:
    send(judge(), write="assessments")
    lost = {one["assessment_name"]: one for one in mlflow.assessments[f"tr-{5:032x}"].values()}["faithfulness"]
    error = {"error_code": "UNSCORABLE", "error_message": "there is no answer"}
    assert lost["feedback"] == {"value": None, "error": error}


def test_sending_twice_changes_nothing_and_asks_for_no_change(mlflow: MlflowServer) -> None:
    send(judge(), write="assessments")
    before, asked = mlflow.snapshot(), len(mlflow.asked)
    send(judge(), write="assessments")
    assert mlflow.snapshot() == before
    assert [one.method for one in mlflow.asked[asked:]] == ["POST"]  # which only reads what is there
    send(judge(shift=0.5), write="assessments")
    assert {len(said) for said in mlflow.assessments.values()} == {2}
    changed = {one["assessment_name"]: one for one in mlflow.assessments[f"tr-{2:032x}"].values()}
    assert changed["faithfulness"]["feedback"] == {"value": 0.6}


def test_an_export_that_was_killed_goes_on(mlflow: MlflowServer, tmp_path: Path) -> None:
    mlflow.traces = [make_trace(number) for number in range(1, 51)]
    real, written = mlflow.answer, list[Asked]()

    def break_down(asked: Asked) -> Answer:
        if asked.route.endswith("/assessments"):
            written.append(asked)
            if len(written) > 70:
                return Answer(b"gone", 400)
        return real(asked)

    mlflow.reply = break_down
    with pytest.raises(RagevalError, match="answered 400"):
        send(judge(50), tmp_path, write="assessments")
    mlflow.reply = real
    receipt = send(judge(50), tmp_path, write="assessments")
    assert (receipt.known, receipt.sent.total()) == (50, 50)
    assert sum(map(len, mlflow.assessments.values())) == 100


def test_traces_that_are_gone_are_left_out_and_counted(mlflow: MlflowServer) -> None:
    gone = [replace(trace, link=TraceLink("mlflow", "tr-0"), query_id="gone") for trace in make_traces(1)]
    receipt = send(evaluate([*gone, *make_traces()]), write="assessments")
    assert receipt.remarks == ("2 assessments left out: 1 trace not in MLflow, such as tr-0",)
    assert len(mlflow.assessments) == 5


def test_answers_without_a_trace_of_mlflow_are_refused(mlflow: MlflowServer) -> None:
    others = [replace(trace, link=TraceLink("phoenix", "x")) for trace in make_traces(2)]
    with pytest.raises(UsageError, match="no answer has a trace of mlflow; their traces are of phoenix"):
        send(evaluate(others), write="assessments")


def test_a_refusal_is_an_error_with_its_place(mlflow: MlflowServer) -> None:
    real = mlflow.answer
    mlflow.reply = lambda asked: Answer(b"no", 422) if asked.route.endswith("/assessments") else real(asked)
    with pytest.raises(RagevalError, match=r"/traces/tr-0+1/assessments answered 422"):
        send(judge(1), write="assessments")
