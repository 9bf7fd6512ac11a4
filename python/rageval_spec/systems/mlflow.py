"""`mlflow`: the answers in the traces of an experiment, or a table of a run, in MLflow."""

from __future__ import annotations

from rageval_spec.exchange.mlflow.source import MlflowSource, MlflowSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.trace_system import TraceSystem


class MlflowSystemNode(GeneratingNode, MlflowSourceNode):
    """The answers in the traces of an experiment, or a table of a run, in MLflow."""


class MlflowSystem(TraceSystem[MlflowSystemNode]):
    """Reads answers with their contexts, and remembers their traces, so that values can be written back to them."""

    node_type = MlflowSystemNode
    source_type = MlflowSource


PLUGIN = MlflowSystem
