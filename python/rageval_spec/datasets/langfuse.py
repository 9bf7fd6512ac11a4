"""`langfuse`: the questions of traces, or of a dataset, in Langfuse."""

from __future__ import annotations

from rageval_spec.datasets.shared.trace_dataset import TraceDataset
from rageval_spec.exchange.langfuse.source import LangfuseSource, LangfuseSourceNode
from rageval_spec.plugin import DatasetNode


class LangfuseDatasetNode(DatasetNode, LangfuseSourceNode):
    """Questions of Langfuse: of traces, or with gold answers of a dataset."""


class LangfuseDataset(TraceDataset[LangfuseDatasetNode]):
    """The questions that users asked, or a dataset's, whose expected outputs are the gold answers."""

    node_type = LangfuseDatasetNode
    source_type = LangfuseSource


PLUGIN = LangfuseDataset
