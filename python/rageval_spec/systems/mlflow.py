"""`mlflow`: the answers in the traces of an experiment, or a table of a run, in MLflow."""

from __future__ import annotations

from rageval_spec.exchange.mlflow.source import MlflowSource, MlflowSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.traces import TraceSystem


class MlflowNode(GeneratingNode, MlflowSourceNode):
    """The answers in the traces of an experiment, or a table of a run, in MLflow."""


class Mlflow(TraceSystem[MlflowNode]):
    """Reads answers with their contexts, and remembers their traces, so that values can be written back to them."""

    node_type = MlflowNode
    source_type = MlflowSource


PLUGIN = Mlflow
