"""`phoenix`: the questions of the examples of a dataset, or of the traces of a project, in Arize Phoenix."""

from __future__ import annotations

from rageval_spec.datasets.shared.traces import TraceDataset
from rageval_spec.exchange.phoenix.source import PhoenixSource, PhoenixSourceNode
from rageval_spec.plugin import DatasetNode


class PhoenixNode(DatasetNode, PhoenixSourceNode):
    """The questions of the examples of a dataset, or of the traces of a project, in Arize Phoenix."""


class Phoenix(TraceDataset[PhoenixNode]):
    """Reads questions, with their references if there are any."""

    node_type = PhoenixNode
    source_type = PhoenixSource
    known_as = ("arize", "arize_phoenix")


PLUGIN = Phoenix
