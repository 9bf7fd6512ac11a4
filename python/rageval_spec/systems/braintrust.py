"""`braintrust`: answers that a system gave in production, from its logs or experiments in Braintrust."""

from __future__ import annotations

from pydantic import model_validator

from rageval_spec.exchange.braintrust.source import BraintrustSource, BraintrustSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.trace_system import TraceSystem


class BraintrustSystemNode(GeneratingNode, BraintrustSourceNode):
    """Answers from Braintrust's rows, by its API or in exported files."""

    @model_validator(mode="after")
    def _check_dataset(self) -> BraintrustSystemNode:
        if self.dataset is not None:
            raise ValueError("a dataset of Braintrust has no answers; write it under 'datasets:'")
        return self


class BraintrustSystem(TraceSystem[BraintrustSystemNode]):
    """The answers in traces, with the documents that were retrieved, their latency, tokens and cost."""

    node_type = BraintrustSystemNode
    source_type = BraintrustSource


PLUGIN = BraintrustSystem
