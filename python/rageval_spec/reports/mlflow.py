"""`mlflow`: writes the values as runs and feedback in MLflow."""

from __future__ import annotations

from rageval_spec.exchange.mlflow.target import MlflowTarget, MlflowTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport


class MlflowReportNode(ReportNode, MlflowTargetNode):
    """Writes the values as runs and feedback in MLflow."""


class MlflowReport(SendingReport[MlflowReportNode]):
    """Writes what is new since the last time, once the values are computed."""

    node_type = MlflowReportNode
    target_type = MlflowTarget


PLUGIN = MlflowReport
