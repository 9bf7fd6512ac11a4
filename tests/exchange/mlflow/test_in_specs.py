"""A spec that reads from and writes to the tool."""

from __future__ import annotations

from pathlib import Path

from rageval_spec.history.saved_evaluations import load_record
from tests.command_line import invoke
from tests.exchange.blocks import list_gold, open_dataset, render_report
from tests.exchange.mlflow.sending import judge
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


def test_the_records_of_a_dataset_are_its_questions(mlflow: MlflowServer, tmp_path: Path) -> None:
    expected = {"expected_response": "So.", "expected_documents": ["d1", "d2"]}
    mlflow.records = [{"dataset_record_id": "dr-1", "inputs": {"question": "Why?"}, "expectations": expected}]
    collection = open_dataset(tmp_path, use="mlflow", experiment="support", dataset="golden")
    assert list_gold(collection) == [("dr-1", "Why?", ["So."])]
    assert collection.qrels is not None and collection.qrels.rows() == [("dr-1", "d1", 1), ("dr-1", "d2", 1)]


def test_the_report_says_what_it_wrote_and_writes_nothing_twice(mlflow: MlflowServer, tmp_path: Path) -> None:
    first, second = (render_report(judge(2), tmp_path, use="mlflow", experiment="x") for _ in range(2))
    assert first == f"mlflow: sent 4 assessments, 1 file and 1 run to {mlflow.url}, experiment x\n"
    assert "sent nothing" in second
    assert len(mlflow.runs) == 1
