from __future__ import annotations

from pathlib import Path

from rageval_spec.history.saved_evaluations import load_record
from tests.command_line import invoke
from tests.exchange.mlflow.conftest import mlflow as mlflow
from tests.exchange.mlflow.server import MlflowServer

SPEC = """
version: 1
name: nightly
datasets: {prod: {use: mlflow, experiment: support, limit: 5}}
systems: {bot: {use: mlflow, experiment: support, limit: 5}}
metrics: [is_json, latency@p50]
reports: [html, {use: mlflow}]
"""


def test_traces_are_evaluated_and_their_values_written_back(mlflow: MlflowServer, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert "mlflow: sent 10 assessments, 2 files and 1 run to http://127.0.0.1" in done.output, done.output
    evaluation = load_record(tmp_path / "results").evaluation
    assert sorted(evaluation.samples["question"].to_list()) == [f"Question {number}?" for number in range(1, 6)]
    assert {len(said) for said in mlflow.assessments.values()} == {2}
    assert mlflow.experiments[-1] == "nightly"
    assert mlflow.runs["r0"]["metrics"]["is_json"][0] == 0.0
    report = next(content for name, content in mlflow.files.items() if name.endswith("report.html"))
    assert report == (tmp_path / "results" / "report.html").read_bytes()
