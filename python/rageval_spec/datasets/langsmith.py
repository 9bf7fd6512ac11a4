"""`langsmith`: the questions of traces, or of a dataset, in LangSmith."""

from __future__ import annotations

from rageval_spec.datasets.shared.trace_dataset import TraceDataset
from rageval_spec.exchange.langsmith.source import LangSmithSource, LangSmithSourceNode
from rageval_spec.plugin import DatasetNode


class LangSmithDatasetNode(DatasetNode, LangSmithSourceNode):
    """Questions of LangSmith: of traces, or with gold answers of a dataset."""


class LangSmithDataset(TraceDataset[LangSmithDatasetNode]):
    """The questions that users asked, or a dataset's, whose outputs are the gold answers."""

    node_type = LangSmithDatasetNode
    source_type = LangSmithSource


PLUGIN = LangSmithDataset
