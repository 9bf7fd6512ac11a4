"""`braintrust`: answers that a system gave in production, from its logs or experiments in Braintrust."""

from __future__ import annotations

from pydantic import model_validator

from rageval_spec.exchange.braintrust.source import BraintrustSource, BraintrustSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.traces import TraceSystem


class BraintrustNode(GeneratingNode, BraintrustSourceNode):
    """Answers from Braintrust's rows, by its API or in exported files."""

    @model_validator(mode="after")
    def _check_dataset(self) -> BraintrustNode:
        if self.dataset is not None:
            raise ValueError("a dataset of Braintrust has no answers; write it under 'datasets:'")
        return self


class Braintrust(TraceSystem[BraintrustNode]):
    """The answers in traces, with the documents that were retrieved, their latency, tokens and cost."""

    node_type = BraintrustNode
    source_type = BraintrustSource


PLUGIN = Braintrust
