"""`trulens`: the answers in the records in TruLens's SQLite file."""

from __future__ import annotations

from rageval_spec.exchange.trulens.source import TrulensSource, TrulensSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.trace_system import TraceSystem


class TrulensSystemNode(GeneratingNode, TrulensSourceNode):
    """The answers in the records in TruLens's SQLite file."""


class TrulensSystem(TraceSystem[TrulensSystemNode]):
    """Reads answers with their contexts, and remembers their traces, so that values can be written back to them."""

    node_type = TrulensSystemNode
    source_type = TrulensSource

    def check(self) -> str | None:
        """A dataset of TruLens has no answers."""
        if self.node.dataset is None:
            return None
        return "a dataset of TruLens has no answers; write it under datasets, and here what has the answers"


PLUGIN = TrulensSystem
