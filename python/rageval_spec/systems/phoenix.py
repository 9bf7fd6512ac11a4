"""`phoenix`: the answers in the traces of a project in Arize Phoenix."""

from __future__ import annotations

from rageval_spec.exchange.phoenix.source import PhoenixSource, PhoenixSourceNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.trace_system import TraceSystem


class PhoenixSystemNode(GeneratingNode, PhoenixSourceNode):
    """The answers in the traces of a project in Arize Phoenix."""


class PhoenixSystem(TraceSystem[PhoenixSystemNode]):
    """Reads answers with their contexts, and remembers their traces, so that values can be written back to them."""

    node_type = PhoenixSystemNode
    source_type = PhoenixSource
    known_as = ("arize", "arize_phoenix")

    def check(self) -> str | None:
        """A dataset of Arize Phoenix has no answers."""
        if self.node.dataset is None:
            return None
        return "a dataset of Arize Phoenix has no answers; write it under datasets, and here what has the answers"


PLUGIN = PhoenixSystem
