"""The base class of sources that read spans of tools which keep them trace by trace."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rageval_spec.exchange.shared.contracts import TraceSource, WindowNode
from rageval_spec.exchange.shared.spans.span_traces import SpanReader

if TYPE_CHECKING:
    from rageval_spec.data.traces import Trace

N = TypeVar("N", bound=WindowNode)


class SpanSource(TraceSource[N]):
    """Reads traces from spans, and counts what of them could not be read."""

    tool: ClassVar[str]

    def __init__(self, node: N, context: Any) -> None:
        super().__init__(node, context)
        self.reader = SpanReader(self.tool)

    @abstractmethod
    def read_all(self) -> Iterator[Trace]:
        """The traces, newest first, or the rows of a dataset as traces; more than the limit if there are more."""

    def read(self) -> Iterator[Trace]:
        return islice(self.read_all(), self.node.limit)

    def remarks(self) -> Sequence[str]:
        return self.reader.remarks()


def describe_known(what: str, names: Iterable[str]) -> str:
    """What there is instead of something that was not found: `its apps are bot, search`."""
    listed = ", ".join(names)
    return f"its {what} are {listed}" if listed else "it has none"
