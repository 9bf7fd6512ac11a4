from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.errors import UsageError
from tests.exchange.mlflow.sending import AGGREGATES, judge, send
from tests.exchange.mlflow.server import MlflowServer


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
