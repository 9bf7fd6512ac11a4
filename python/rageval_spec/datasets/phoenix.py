"""`phoenix`: the questions of the examples of a dataset, or of the traces of a project, in Arize Phoenix."""

from __future__ import annotations

from rageval_spec.datasets.shared.trace_dataset import TraceDataset
from rageval_spec.exchange.phoenix.source import PhoenixSource, PhoenixSourceNode
from rageval_spec.plugin import DatasetNode


class PhoenixDatasetNode(DatasetNode, PhoenixSourceNode):
    """The questions of the examples of a dataset, or of the traces of a project, in Arize Phoenix."""


class PhoenixDataset(TraceDataset[PhoenixDatasetNode]):
    """Reads questions, with their references if there are any."""

    node_type = PhoenixDatasetNode
    source_type = PhoenixSource
    known_as = ("arize", "arize_phoenix")


PLUGIN = PhoenixDataset
