"""`trulens`: the questions of the ground truths of a dataset, or of the records, in TruLens's SQLite file."""

from __future__ import annotations

from rageval_spec.datasets.shared.traces import TraceDataset
from rageval_spec.exchange.trulens.source import TrulensSource, TrulensSourceNode
from rageval_spec.plugin import DatasetNode


class TrulensNode(DatasetNode, TrulensSourceNode):
    """The questions of the ground truths of a dataset, or of the records, in TruLens's SQLite file."""


class Trulens(TraceDataset[TrulensNode]):
    """Reads questions, with their references if there are any."""

    node_type = TrulensNode
    source_type = TrulensSource


PLUGIN = Trulens
