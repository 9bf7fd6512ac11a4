"""`mlflow`: writes the values as runs and feedback in MLflow."""

from __future__ import annotations

from rageval_spec.exchange.mlflow.target import MlflowTarget, MlflowTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.sending import SendingReport


class MlflowNode(ReportNode, MlflowTargetNode):
    """Writes the values as runs and feedback in MLflow."""


class Mlflow(SendingReport[MlflowNode]):
    """Writes what is new since the last time, once the values are computed."""

    node_type = MlflowNode
    target_type = MlflowTarget


PLUGIN = Mlflow
