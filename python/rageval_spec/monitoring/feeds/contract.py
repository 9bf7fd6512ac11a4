"""The contract of feeds: what has come, and where a monitor goes on reading after a kill.

A feed gives traces in batches, each with a cursor. The ledger writes both in one transaction, so nothing is lost and
nothing counts twice, wherever a monitor was killed. A feed may give a trace again; the ledger knows it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rageval_spec.data.traces import Trace
from rageval_spec.monitoring.ledger import SeenTrace
from rageval_spec.recorded.values import read_time
from rageval_spec.wording import count_noun

BATCH = 2000
"""The most traces of one batch."""
PATIENCE = 300.0
"""Seconds after which a trace is judged although its root has not ended."""
LONGEST = 7200.0
"""Seconds that a trace may take, from its beginning to the end of its root."""
SKEW = 600.0
"""Seconds by which the clocks of applications may be wrong."""


class Batch(NamedTuple):
    """Traces, where the feed goes on after them, and how many rows could not be read."""

    traces: list[SeenTrace]
    cursor: Any
    unread: int = 0


class Feed(ABC):
    """Gives traces as they come. `name` is its name in the ledger: that of its system in the spec."""

    def __init__(self, name: str, settle: float) -> None:
        """Open nothing. A trace is due `settle` seconds after the last that came of it."""
        self.name = name
        self.settle = settle
        self.delay = settle
        """Seconds after its end in which a trace becomes due; windows wait for so long."""
        self.prefix = ""
        """How the ids of its traces begin in the ledger, so that two feeds with the same ids stay apart."""
        self._ahead = 0
        self._unread: str | None = None

    @abstractmethod
    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        """What has come since the cursor, which is None at the beginning; nothing if there is nothing new.

        Raises:
            RagevalError: the traces cannot be read at the moment; what was given until then stays.
        """

    def explain_unread(self) -> str | None:
        """Why the last row that could not be read was left out, with its place; None if all were read."""
        return self._unread

    def remarks(self) -> Sequence[str]:
        """What else a person should know, such as how many spans came too late."""
        if not self._ahead:
            return ()
        some = count_noun(self._ahead, "trace says that it", "traces say that they")
        return (f"{some} began more than {SKEW / 60:.0f} minutes from now; the time at which they came counts",)

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Release what was opened."""

    def see(self, trace: Trace, now: float, *, is_whole: bool = True, due: float | None = None) -> SeenTrace:
        """A trace that came just now. One that says that it began later than clocks may be wrong began now."""
        trace = replace_nul(trace)
        moment = read_time(trace.started)
        started = now if moment is None else moment.timestamp()
        if started > now + SKEW:
            started = now
            self._ahead += 1
        if due is None:
            due = now + (self.settle if is_whole else max(self.settle, PATIENCE))
        named = replace(trace, query_id=self.prefix + trace.id) if self.prefix else trace
        return SeenTrace(named, started, due, is_whole)


def replace_nul(trace: Trace) -> Trace:
    """The trace without NUL in its id and its user, which PostgreSQL cannot store in its texts."""
    if "\0" not in trace.id and "\0" not in (trace.user or ""):
        return trace
    user = None if trace.user is None else trace.user.replace("\0", "\ufffd")
    return replace(trace, query_id=trace.id.replace("\0", "\ufffd"), user=user)


def name_questions(traces: Iterator[Trace]) -> Iterator[Trace]:
    """Traces of which the first question of each has the trace's own id, however many questions follow.

    So a question keeps its id if a later span brings a second one, and is not judged under two ids.
    """
    before = None
    for trace in traces:
        trace_id = trace.link.trace_id
        yield trace if trace_id == before else replace(trace, query_id=trace_id)
        before = trace_id
