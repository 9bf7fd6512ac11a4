"""Sends a tool the values that wait for it, and the numbers of the monitor.

A value is sent at least once, under a key that is always the same: what is sent again after a kill, or after its trace
was judged again, replaces itself in tools that have keys. OTLP has none.

A tool that does not answer is asked again with growing waits. If it refuses a block of values, halves of the block are
tried, down to the value that it refuses, which is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import SAMPLES, VALUES, SampleTable, empty_samples, type_samples
from rageval_spec.data.traces import TraceLink
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.drawing.openmetrics import MetricFamily
from rageval_spec.endpoints.pacing import double_wait
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.contracts import PARTLY, Target
from rageval_spec.exchange.shared.delivery import split
from rageval_spec.exchange.shared.scores import ValueTarget
from rageval_spec.exchange.shared.spans.protobuf import Gauge
from rageval_spec.exchange.shared.spans.spans import SECOND
from rageval_spec.history.database import HistoryError
from rageval_spec.libraries import pl
from rageval_spec.monitoring.alerts import FIRST_WAIT, LONGEST_WAIT
from rageval_spec.monitoring.inspection.redaction import Redaction
from rageval_spec.monitoring.ledger import ClaimedTrace, Ledger
from rageval_spec.monitoring.outputs.outbox import Outbox, QueuedValue
from rageval_spec.monitoring.traces.trace_judging import make_sample
from rageval_spec.recorded.values import write_time

BLOCK = 200
"""The most values that are sent together."""
LEASE = 120.0
"""Seconds for which one process of a monitor sends to a tool and the others do not."""
_REFUSALS = (PARTLY, 400, 409, 413, 422)
"""The statuses with which a tool refuses what it was sent, so that sending the same again would not help."""
_Placed = tuple[QueuedValue, TraceLink]


@dataclass
class ToolSender:
    """What sends to one tool.

    Attributes:
        name: names the tool in the database and on pages: `phoenix http://localhost:6006`.
        frame: an evaluation without values: the monitor's name, its metrics, and the spec.
        complain: gets why the tool took nothing last; None once it takes what it gets.
        numbers: gives the latest numbers; the same object for as long as there are no newer ones.
    """

    name: str
    target: Target[Any]
    frame: Evaluation
    redaction: Redaction
    complain: Callable[[str | None], None] = lambda _: None
    numbers: Callable[[], Sequence[MetricFamily]] = tuple
    _told: Sequence[MetricFamily] = field(default=(), repr=False)
    _tries: int | None = None
    _again_at: float = 0.0

    def deliver(self, ledger: Ledger, now: float) -> bool:
        """Send what waits; whether there can be more to send at once. Raises only what the database does."""
        outbox, numbers = Outbox(ledger.connection, ledger.monitor), self.numbers()
        is_new = "numbers" in self.target.takes and bool(numbers) and numbers is not self._told
        if now < self._again_at or not (is_new or outbox.has_any(self.name)):
            return False
        if not ledger.lead(f"send {self.name}", now, LEASE):
            return False
        block = outbox.read(self.name, BLOCK)
        try:
            self._send_values(outbox, block)
            if is_new:
                self.target.send_numbers([*list_gauges(numbers, now)])
                self._told = numbers
        except HistoryError:
            raise
        except Exception as error:  # also what the target of another package raises
            told = str(error) if isinstance(error, RagevalError) else f"it broke off with {type(error).__name__}"
            self._note(outbox, told, now)
            return False
        self._note(outbox, None, now)
        return len(block) == BLOCK

    def _note(self, outbox: Outbox, failure: str | None, now: float) -> None:
        if failure is not None:
            self._tries = (self._tries or 0) + 1
            self._again_at = now + double_wait(self._tries, FIRST_WAIT, LONGEST_WAIT)
        elif self._tries == 0:
            return
        else:
            self._tries = 0
        outbox.note(self.name, failure, now)
        self.complain(failure)

    def _send_values(self, outbox: Outbox, block: Sequence[QueuedValue]) -> None:
        """Send a block; values that have no place at the tool are left out."""
        placed: list[_Placed] = []
        for one in block:
            link = self._find_place(one)
            if isinstance(link, str):
                outbox.settle(self.name, [one], 1, link)
            else:
                placed.append((one, link))
        for _, some in groupby(placed, key=lambda pair: pair[0].series):
            self._send_series(outbox, list(some))

    def _find_place(self, one: QueuedValue) -> TraceLink | str:
        """Where a value belongs at the tool, else why it has no place there."""
        if one.trace is None or one.state is None:
            return "the text of the trace is no longer kept, and with it where the trace is"
        link, target = one.trace.link, self.target
        if not isinstance(target, ValueTarget) or link.tool == target.tool:
            return link
        if link.tool != "otel" or target.otel_prefix is None:
            return f"the trace is of {link.tool}, not of {target.tool}"
        # Langfuse replaces a value only if its time is the same, too.
        started = write_time(datetime.fromtimestamp(one.started or 0.0, UTC))
        others = {"started": str(started), **link.others}
        return replace(link, tool=target.tool, trace_id=f"{target.otel_prefix}{link.trace_id}", others=others)

    def _send_series(self, outbox: Outbox, some: list[_Placed]) -> None:
        """Send values of one series. Two series of a metric are two evaluations, so their values are never mixed."""
        target, before = self.target, self._count_gone()
        reason = "their traces are no longer there, or the tool takes no value without a number"
        parcels = {parcel.key: parcel for parcel in target.list_parcels(self._make_evaluation(some))}
        try:
            for batch in split(parcels.values(), target.batch):
                target.send(batch)
        except ServiceError as error:
            if error.status not in _REFUSALS:
                raise
            if len(some) == 1:
                outbox.settle(self.name, [some[0][0]], 1, str(error))
            else:
                for half in (some[: len(some) // 2], some[len(some) // 2 :]):
                    self._send_series(outbox, half)
            return
        lost = self._count_gone() - before + int(getattr(target, "without_value", 0))
        outbox.settle(self.name, [one for one, _ in some], min(lost, len(some)), reason)

    def _count_gone(self) -> int:
        return self.target.gone.total() if isinstance(self.target, ValueTarget) else 0

    def _make_evaluation(self, some: Sequence[_Placed]) -> Evaluation:
        """Values of one series as an evaluation of the traces' answers."""
        first = some[0][0]
        place = {"dataset": "production", "system": first.identity[:8]}
        samples = pl.DataFrame([self._make_row(place, *pair) for pair in some], schema=empty_samples().schema)
        rows = [
            {**place, "metric": first.metric, "query_id": one.trace_id, "value": one.value,
             "status": "scored" if one.state == "judged" else "unscorable" if one.state == "filtered" else "error",
             "reason": self.redaction.hide_reason(one.reason), "details": self.redaction.hide_reason(one.details)}
            for one, _ in some
        ]  # fmt: skip
        schema = {name: pl.Float64 if name == "value" else pl.String for name in (*VALUES, "details")}
        return replace(
            self.frame, datasets=(place["dataset"],), systems=(place["system"],),
            values=pl.DataFrame(rows, schema=schema), sample_table=SampleTable(lambda: [type_samples(samples)]),
            provenance=replace(self.frame.provenance, implementations={first.metric: first.identity}),
        )  # fmt: skip

    def _make_row(self, place: dict[str, str], one: QueuedValue, link: TraceLink) -> dict[str, Any]:
        """A row of the samples table, without texts if `redact:` of the spec leaves any out."""
        assert one.trace is not None, "a value without its trace has no place"
        known: dict[str, Any] = dict.fromkeys(SAMPLES) | {"question": "", "references": [], "slices": []}
        if not self.redaction.columns:
            sample = make_sample(ClaimedTrace(one.trace_id, 0.0, None, one.trace))
            known |= {name: getattr(sample, name) for name in ("question", "answer", "error", "seconds", "cost")}
            lists = {name: getattr(sample, name) for name in ("contexts", "context_ids")}
            known |= {name: None if found is None else list(found) for name, found in lists.items()}
        return {**known, **place, "query_id": one.trace_id, "trace": link.dump()}


def list_gauges(families: Sequence[MetricFamily], now: float) -> Iterator[Gauge]:
    """The numbers of `/metrics` in the words of OpenTelemetry: `rageval_lag_seconds` is `rageval.lag_seconds`."""
    for one in families:
        for labels, value in one.samples:
            if value is not None:
                name, is_total = one.name.replace("_", ".", 1), one.kind == "counter"
                yield Gauge(name, float(value), labels, int(now) * SECOND, one.told, "", is_total)
