"""`langfuse`: answers that a system gave in production, from its traces in Langfuse."""

from __future__ import annotations

from pydantic import model_validator

from rageval_spec.exchange.langfuse.source import LangfuseSource, LangfuseSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.trace_system import TraceSystem


class LangfuseSystemNode(GeneratingNode, LangfuseSourceNode):
    """Answers from Langfuse's traces, by its API or in exported files."""

    @model_validator(mode="after")
    def _check_dataset(self) -> LangfuseSystemNode:
        if self.dataset is not None:
            raise ValueError("a dataset of Langfuse has no answers; write it under 'datasets:'")
        return self


class LangfuseSystem(TraceSystem[LangfuseSystemNode]):
    """The answers in traces, with the documents that were retrieved, their latency, tokens and cost."""

    node_type = LangfuseSystemNode
    source_type = LangfuseSource


PLUGIN = LangfuseSystem
