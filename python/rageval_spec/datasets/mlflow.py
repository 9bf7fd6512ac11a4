"""`mlflow`: the questions of the records of an evaluation dataset, or of the traces of an experiment, in MLflow."""

from __future__ import annotations

from rageval_spec.datasets.shared.trace_dataset import TraceDataset
from rageval_spec.exchange.mlflow.source import MlflowSource, MlflowSourceNode
from rageval_spec.plugin import DatasetNode


class MlflowDatasetNode(DatasetNode, MlflowSourceNode):
    """The questions of the records of an evaluation dataset, or of the traces of an experiment, in MLflow."""


class MlflowDataset(TraceDataset[MlflowDatasetNode]):
    """Reads questions, with their references if there are any."""

    node_type = MlflowDatasetNode
    source_type = MlflowSource


PLUGIN = MlflowDataset
