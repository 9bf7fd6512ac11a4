"""`langsmith`: answers that a system gave in production, from its traces in LangSmith."""

from __future__ import annotations

from pydantic import model_validator

from rageval_spec.exchange.langsmith.source import LangSmithSource, LangSmithSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.trace_system import TraceSystem


class LangSmithSystemNode(GeneratingNode, LangSmithSourceNode):
    """Answers from LangSmith's traces, by its API or in exported files."""

    @model_validator(mode="after")
    def _check_dataset(self) -> LangSmithSystemNode:
        if self.dataset is not None:
            raise ValueError("a dataset of LangSmith has no answers; write it under 'datasets:'")
        return self


class LangSmithSystem(TraceSystem[LangSmithSystemNode]):
    """The answers in traces, with the documents that were retrieved, their latency, tokens and cost."""

    node_type = LangSmithSystemNode
    source_type = LangSmithSource


PLUGIN = LangSmithSystem
