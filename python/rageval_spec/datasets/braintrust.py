"""`braintrust`: the questions of logs, of an experiment or of a dataset, in Braintrust."""

from __future__ import annotations

from rageval_spec.datasets.shared.trace_dataset import TraceDataset
from rageval_spec.exchange.braintrust.source import BraintrustSource, BraintrustSourceNode
from rageval_spec.plugin import DatasetNode


class BraintrustDatasetNode(DatasetNode, BraintrustSourceNode):
    """Questions of Braintrust: of logs and experiments, or with gold answers of a dataset."""


class BraintrustDataset(TraceDataset[BraintrustDatasetNode]):
    """The questions that users asked, or a dataset's, whose expected values are the gold answers."""

    node_type = BraintrustDatasetNode
    source_type = BraintrustSource


PLUGIN = BraintrustDataset
