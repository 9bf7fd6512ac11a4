from __future__ import annotations

from pathlib import Path

from rageval_spec.plugin import Context
from rageval_spec.reports.mlflow import MlflowReport, MlflowReportNode
from tests.exchange.mlflow.conftest import mlflow as mlflow
from tests.exchange.mlflow.sending import judge
from tests.exchange.mlflow.server import MlflowServer


def test_the_report_says_what_it_wrote_and_writes_nothing_twice(mlflow: MlflowServer, tmp_path: Path) -> None:
    def render() -> str:
        report = MlflowReport(
            MlflowReportNode(use="mlflow", experiment="x"), Context("mlflow", tmp_path, output=tmp_path)
        )
        return report.render(judge(2)).decode()

    assert render() == f"mlflow: sent 4 assessments, 1 file and 1 run to {mlflow.url}, experiment x\n"
    assert "sent nothing" in render()
    assert len(mlflow.runs) == 1
