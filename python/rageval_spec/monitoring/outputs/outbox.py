"""The outbox: which values are still to be sent to which tool, in the database of the ledger.

A value is put in by the transaction that writes its judgement, for each destination, under its series and its trace. It
leaves once the tool has it, or is left out with a reason: what was put in was sent, was left out, or waits. A trace
that is judged again puts its value in again, also if it has none any more, so that the tool can be corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass
from rageval_spec.history.database import Connection, insert
from rageval_spec.monitoring.ledger import State, unpack
from rageval_spec.monitoring.tables import MOST_FAILURES
from rageval_spec.recorded.values import write_time
from rageval_spec.wording import count_noun

_QUEUE = (
    "INSERT INTO rageval_outbox (monitor, destination, series, trace_id, queued) "
    "SELECT CAST(? AS TEXT), CAST(? AS TEXT), series, trace_id, CAST(? AS DOUBLE PRECISION) FROM rageval_judgements "
    "WHERE series = ? AND trace_id = ? AND counted IS NOT NULL AND retry_at IS NULL "
    "ON CONFLICT (monitor, destination, series, trace_id) DO UPDATE SET queued = excluded.queued"
)
_DELIVERY = ("monitor", "destination", "sent", "left_out", "reason", "failures", "since", "failure")
_ADD = (
    f"{insert('rageval_deliveries', _DELIVERY)} ON CONFLICT (monitor, destination) DO UPDATE SET "
    "sent = rageval_deliveries.sent + excluded.sent, left_out = rageval_deliveries.left_out + excluded.left_out, "
    "reason = COALESCE(excluded.reason, rageval_deliveries.reason)"
)
_FAIL = (
    f"{insert('rageval_deliveries', _DELIVERY)} ON CONFLICT (monitor, destination) DO UPDATE SET "
    "failures = rageval_deliveries.failures + 1, failure = excluded.failure, "
    "since = CASE WHEN rageval_deliveries.failures = 0 THEN excluded.since ELSE rageval_deliveries.since END"
)


class DestinationState(NamedTuple):
    """What became of the values for a destination.

    `reason` is why the last one that was left out was. The last `failures` tries in a row failed, since a time, the
    last one for the reason `failure`.
    """

    waiting: int = 0
    sent: int = 0
    left_out: int = 0
    reason: str | None = None
    failures: int = 0
    since: float | None = None
    failure: str | None = None

    @property
    def is_stuck(self) -> bool:
        """Whether the tool has taken nothing for so long that people must know."""
        return self.failures > MOST_FAILURES

    def explain_failure(self) -> str:
        """Since when it takes nothing, and why."""
        since = write_time(datetime.fromtimestamp(self.since or 0.0, UTC).replace(microsecond=0))
        return f"it has taken nothing since {since}: {self.failure}"


class QueuedValue(NamedTuple):
    """A value that waits. `trace` is None if its text is no longer kept, and `state` if its series has no judgement."""

    series: int
    trace_id: str
    queued: float
    metric: str
    identity: str
    state: State | None
    value: float | None
    reason: str | None
    details: str | None
    started: float | None
    trace: Trace | None


@dataclass(frozen=True)
class Outbox:
    """The values of one monitor that are still to be sent.

    Attributes:
        destinations: the names of those that get values.
        series: gives those whose values are sent; what users said came from the tools and does not go back.
    """

    connection: Connection
    monitor: str
    destinations: Sequence[str] = ()
    series: Callable[[], Collection[int]] = tuple

    def queue(self, judged: Sequence[tuple[int, str]], now: float) -> None:
        """Put in what has or had a value, within the transaction that is open."""
        wanted = self.series()
        rows = [
            (self.monitor, name, now, series, trace_id)
            for name in self.destinations
            for series, trace_id in judged
            if series in wanted
        ]
        self.connection.execute_many(_QUEUE, rows)

    def has_any(self, destination: str) -> bool:
        """Whether something waits for a destination."""
        one = "SELECT 1 FROM rageval_outbox WHERE monitor = ? AND destination = ? LIMIT 1"
        return bool(self.connection.execute(one, (self.monitor, destination)))

    def read(self, destination: str, most: int) -> list[QueuedValue]:
        """At most so many values that wait for a destination, series by series."""
        rows = self.connection.execute(
            "SELECT o.series, o.trace_id, o.queued, s.metric, s.identity, j.state, j.value, j.reason, j.details, "
            "t.started, t.content FROM rageval_outbox o JOIN rageval_series s ON s.id = o.series "
            "LEFT JOIN rageval_judgements j ON j.series = o.series AND j.trace_id = o.trace_id "
            "LEFT JOIN rageval_traces t ON t.monitor = o.monitor AND t.trace_id = o.trace_id "
            "WHERE o.monitor = ? AND o.destination = ? ORDER BY o.series, o.trace_id LIMIT ?",
            (self.monitor, destination, most),
        )
        return [QueuedValue._make((*row[:10], None if row[10] is None else unpack(row[10]))) for row in rows]

    def settle(self, destination: str, values: Sequence[QueuedValue], left_out: int = 0, reason: str = "") -> None:
        """Take out values of which so many were left out, except those that were judged again meanwhile."""
        key = (self.monitor, destination)
        with self.connection.write():
            self.connection.execute_many(
                "DELETE FROM rageval_outbox WHERE monitor = ? AND destination = ? AND series = ? AND trace_id = ? "
                "AND queued = ?",
                [(*key, one.series, one.trace_id, one.queued) for one in values],
            )
            row = (*key, len(values) - left_out, left_out, reason if left_out else None, 0, None, None)
            self.connection.execute(_ADD, row)

    def note(self, destination: str, failure: str | None, now: float) -> None:
        """Write down that a try failed, or that the destination takes what it gets."""
        key = (self.monitor, destination)
        if failure is not None:
            self.connection.execute(_FAIL, (*key, 0, 0, None, 1, now, failure))
            return
        self.connection.execute(
            "UPDATE rageval_deliveries SET failures = 0, since = NULL, failure = NULL "
            "WHERE monitor = ? AND destination = ? AND failures > 0",
            key,
        )

    def count(self) -> dict[str, DestinationState]:
        """What became of the values, by destination; also of destinations that the spec no longer has."""
        waiting = dict(
            self.connection.execute(
                "SELECT destination, COUNT(*) FROM rageval_outbox WHERE monitor = ? GROUP BY destination",
                (self.monitor,),
            )
        )
        columns = ", ".join(_DELIVERY[1:])
        rows = self.connection.execute(
            f"SELECT {columns} FROM rageval_deliveries WHERE monitor = ? ORDER BY destination", (self.monitor,)
        )
        done = {name: rest for name, *rest in rows}
        names = dict.fromkeys((*self.destinations, *waiting, *done))
        return {name: DestinationState(int(waiting.get(name, 0)), *done.get(name, ())) for name in names}

    def describe(self, *, only_troubles: bool = False) -> Iterator[str]:
        """A line for each destination, or for those with troubles, for people."""
        for name, one in self.count().items():
            if only_troubles and not (one.failures or one.left_out):
                continue
            left_out = f", {one.left_out:,} left out, the last because {one.reason}" if one.left_out else ""
            failure = f"; {one.explain_failure()}" if one.failures else ""
            yield f"{name}: {count_noun(one.sent, 'value')} sent, {one.waiting:,} waiting{left_out}{failure}"
