"""`trulens`: the answers in the records in TruLens's SQLite file."""

from __future__ import annotations

from rageval_spec.exchange.trulens.source import TrulensSource, TrulensSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.traces import TraceSystem


class TrulensNode(GeneratingNode, TrulensSourceNode):
    """The answers in the records in TruLens's SQLite file."""


class Trulens(TraceSystem[TrulensNode]):
    """Reads answers with their contexts, and remembers their traces, so that values can be written back to them."""

    node_type = TrulensNode
    source_type = TrulensSource

    def check(self) -> str | None:
        """A dataset of TruLens has no answers."""
        if self.node.dataset is None:
            return None
        return "a dataset of TruLens has no answers; write it under datasets, and here what has the answers"


PLUGIN = Trulens
