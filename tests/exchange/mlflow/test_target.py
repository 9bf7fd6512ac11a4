""""""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.traces import TraceLink
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.mlflow.target import MlflowTarget, MlflowTargetNode, clean_metric_names
from rageval_spec.plugin import Context
from tests.endpoints.api_server import Asked
from tests.exchange.mlflow.sending import AGGREGATES, judge, make_traces, send
from tests.exchange.mlflow.server import MlflowServer, make_trace
from tests.exchange.traced_evaluation import evaluate
from tests.models.endpoint import Answer


def test_runs_come_first_and_then_the_feedback(mlflow: MlflowServer) -> None:
    assert dict(send(judge()).sent) == {"run": 1, "file": 1, "assessment": 10}


def test_answers_from_elsewhere_have_only_runs(mlflow: MlflowServer) -> None:
    others = [replace(trace, link=TraceLink("phoenix", "x")) for trace in make_traces(2)]
    receipt = send(evaluate(others, aggregates=AGGREGATES))
    assert (dict(receipt.sent), receipt.remarks) == ({"run": 1, "file": 1}, ())
    assert not mlflow.assessments


def test_a_dry_run_shows_everything_and_sends_nothing(mlflow: MlflowServer) -> None:
    assert send(judge(1), dry_run=True).remarks == (
        "faithfulness 0.5, ndcg_at_10 0.25 -> run support-bot",
        "rageval_values.json (1 row) -> run support-bot",
        f"faithfulness unscorable -> trace tr-{1:032x}",
        f"ndcg@10 0.25 -> trace tr-{1:032x}",
    )
    assert not mlflow.asked


def test_the_destination_names_the_server_and_the_experiment() -> None:
    target = MlflowTarget(MlflowTargetNode(url="http://localhost:5000", experiment="x"), Context("mlflow", Path()))
    assert target.destination == "http://localhost:5000, experiment x"
    target.close()


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


def test_a_run_has_the_aggregates_under_names_that_mlflow_accepts(mlflow: MlflowServer) -> None:
    receipt = send(judge(), write="runs", experiment="nightly")
    assert dict(receipt.sent) == {"run": 1, "file": 1}
    assert mlflow.experiments[-1] == "nightly"
    run = mlflow.runs["r0"]
    assert {key: value[0] for key, value in run["metrics"].items()} == {
        "faithfulness": 0.5, "faithfulness/low": 0.25, "faithfulness/high": 0.75, "faithfulness/scored": 4.0,
        "ndcg_at_10": 0.25, "ndcg_at_10/scored": 5.0,
    }  # fmt: skip
    assert run["tags"]["rageval_spec.metric.ndcg_at_10"] == "ndcg@10"
    assert run["params"] == {"dataset": "golden", "system": "v1", "rageval_spec": "1.2.3"}
    assert (run["info"]["run_name"], run["info"]["status"]) == ("support-bot", "FINISHED")
    assert run["inputs"][0]["dataset"]["name"] == "golden"


def test_the_table_has_a_row_for_each_answer(mlflow: MlflowServer) -> None:
    send(judge(), write="runs")
    table = json.loads(mlflow.files["1/r0/artifacts/rageval_values.json"])
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    assert [row["question"] for row in rows] == [f"Question {number}?" for number in range(1, 6)]
    assert (rows[1]["faithfulness"], rows[1]["ndcg@10"], rows[1]["trace_id"]) == (0.1, 0.25, f"tr-{2:032x}")
    assert (rows[4]["faithfulness"], rows[4]["faithfulness reason"]) == (None, "there is no answer")
    logged = json.loads(mlflow.runs["r0"]["tags"]["mlflow.loggedArtifacts"])
    assert logged == [{"path": "rageval_values.json", "type": "table"}]


def test_the_report_of_the_results_folder_is_written_too(mlflow: MlflowServer, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<h1>Report</h1>")
    assert dict(send(judge(), write="runs", output=tmp_path).sent) == {"run": 1, "file": 2}
    assert mlflow.files["1/r0/artifacts/report.html"] == b"<h1>Report</h1>"
    kinds = [one.headers["content-type"] for one in mlflow.asked if one.route.endswith("report.html")]
    assert kinds == ["text/html"]
    with pytest.raises(UsageError, match=r"x\.html: there is no such file"):
        send(judge(), write="runs", file=(str(tmp_path / "x.html"),))


def test_files_of_another_store_are_sent_through_the_server(mlflow: MlflowServer) -> None:
    mlflow.artifacts = "s3://bucket/1"
    send(judge(), write="runs")
    assert "r0/rageval_values.json" in mlflow.files


def test_the_same_values_keep_their_run_and_others_make_a_new_one(mlflow: MlflowServer) -> None:
    send(judge(), write="runs")
    before = mlflow.snapshot()
    send(judge(), write="runs")
    assert mlflow.snapshot() == before
    send(judge(shift=0.5), write="runs")
    assert len(mlflow.runs) == 2


def test_several_systems_have_a_run_each(mlflow: MlflowServer) -> None:
    more = [replace(one, system="v2", mean=0.75) for one in AGGREGATES[1:2]]
    send(judge(systems=("v1", "v2"), aggregates=(*AGGREGATES, *more)), write="runs")
    assert [run["info"]["run_name"] for run in mlflow.runs.values()] == ["support-bot/v1", "support-bot/v2"]
    assert mlflow.runs["r1"]["metrics"]["ndcg_at_10"][0] == 0.75


ACCEPTED = re.compile(r"[\w\-. :/]{1,250}")
"""What MLflow accepts, besides that no part of a name may be empty, `.` or `..`."""


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("ndcg@10", "ndcg_at_10"),
        ("ndcg(gain=exp)@10", "ndcg_gain_exp__at_10"),
        ("latency@p95", "latency_p95"),
        ("faithfulness", "faithfulness"),
        ("safety/toxicity", "safety/toxicity"),
        ("../etc", "__/etc"),
        ("//", "metric"),
        ("Qualität", "Qualität"),
    ],
)
def test_names_keep_what_mlflow_accepts(metric: str, name: str) -> None:
    assert clean_metric_names([metric]) == {metric: name}


def test_a_name_that_needs_no_change_keeps_it() -> None:
    assert clean_metric_names(["ndcg@10", "ndcg_at_10"]) == {"ndcg@10": "ndcg_at_10_2", "ndcg_at_10": "ndcg_at_10"}


@given(st.lists(st.text(min_size=1, max_size=300)))
def test_all_names_are_accepted_and_different(metrics: list[str]) -> None:
    named = clean_metric_names(metrics)
    assert list(named) == list(dict.fromkeys(metrics))
    assert len(set(named.values())) == len(named)
    for name in named.values():
        assert ACCEPTED.fullmatch(name)
        assert not {"", ".", ".."} & set(name.split("/"))
        assert ACCEPTED.fullmatch(f"{name}/scored")
