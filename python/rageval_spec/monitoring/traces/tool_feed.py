"""Feeds of tools: what Phoenix, Langfuse, MLflow and others have recorded, asked for again and again.

Tools are asked for traces by when they began, and a trace can be seen long before it ends, or only when it has ended.
So each poll asks for everything that began since some time before the last one, longer than any trace takes. What was
seen before changes nothing. A poll that fails half-way keeps what it has read and is repeated in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rageval_spec.data.traces import Trace
from rageval_spec.exchange.shared.contracts import TraceSource
from rageval_spec.monitoring.ledger import SeenTrace
from rageval_spec.monitoring.traces.feeds import BATCH, Batch, Feed

LONGEST = 2 * 3600.0
"""How long a trace may take, in seconds."""
SKEW = 600.0
"""How far the clock of a tool may be from this one's, in seconds."""


class ToolFeed(Feed):
    """Polls a tool by its trace source."""

    def __init__(self, name: str, settle: float, part: type[TraceSource[Any]], source: TraceSource[Any]) -> None:
        """Open nothing. Each poll opens a source of its own, with the node of this one and another `since`."""
        super().__init__(name, settle)
        self._part = part
        self._node = source.node
        self._context = source.context

    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        polled = cursor["polled"] if isinstance(cursor, Mapping) else now
        source = self._open(min(polled, now) - LONGEST - SKEW)
        batch: list[SeenTrace] = []
        try:
            for trace in source.read():
                batch.append(self.see(trace, now, is_whole=is_whole(trace)))
                if len(batch) >= BATCH:
                    yield Batch(batch, cursor)
                    batch = []
        finally:
            source.close()
        yield Batch(batch, {"polled": now})

    def _open(self, since: float) -> TraceSource[Any]:
        written = datetime.fromtimestamp(since, UTC).isoformat()
        first = self._node.window[0]  # what the spec asks for, if that is later
        keys: dict[str, Any] = {name: getattr(self._node, name) for name in type(self._node).model_fields}
        if first is None or first.timestamp() < since:
            keys["since"] = written
        return self._part(type(self._node)(**keys), self._context)


def is_whole(trace: Trace) -> bool:
    """Whether a trace has ended: it has an answer, or an error, and took a known time."""
    return trace.seconds is not None and (trace.answer is not None or trace.error is not None)
