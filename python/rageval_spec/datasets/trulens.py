"""`trulens`: the questions of the ground truths of a dataset, or of the records, in TruLens's SQLite file."""

from __future__ import annotations

from rageval_spec.datasets.shared.trace_dataset import TraceDataset
from rageval_spec.exchange.trulens.source import TrulensSource, TrulensSourceNode
from rageval_spec.plugin import DatasetNode


class TrulensDatasetNode(DatasetNode, TrulensSourceNode):
    """The questions of the ground truths of a dataset, or of the records, in TruLens's SQLite file."""


class TrulensDataset(TraceDataset[TrulensDatasetNode]):
    """Reads questions, with their references if there are any."""

    node_type = TrulensDatasetNode
    source_type = TrulensSource


PLUGIN = TrulensDataset
