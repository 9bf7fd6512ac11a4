"""Gathers spans by trace in the ledger's database until their traces are complete.

Spans come in any order, in several requests, and again after a kill. A trace is complete once its root has ended and
nothing came of it for `settle` seconds; or once nothing came for five minutes; in any case two hours after its first
span. Spans that come later open it again, once, for at most two hours. A trace that was given is forgotten after a
while; spans that come even later are counted as late.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rageval_spec.exchange.shared.spans.span_files import MOST_SPANS
from rageval_spec.exchange.shared.spans.spans import Link, Span, SpanEvent, text_of
from rageval_spec.history.database import insert
from rageval_spec.monitoring.feeds.contract import LONGEST, PATIENCE
from rageval_spec.monitoring.ledger import MOST_GIVEN, Ledger

KEPT = 900.0
"""Seconds for which spans are kept after their trace was given, for spans that come late."""
_AT_ONCE = 200
"""How many traces are assembled or forgotten at once."""


class GatheredTrace(NamedTuple):
    """The spans of a trace that is due."""

    trace_id: str
    is_whole: bool
    spans: list[Span]


class GatheredSpans:
    """The spans of one feed."""

    def __init__(self, ledger: Ledger, feed: str, settle: float) -> None:
        self._ledger, self._database = ledger, ledger.connection
        self._feed, self._key = feed, (ledger.monitor, feed)
        self._settle = settle
        self.late = self.cut = 0
        """Traces whose spans came too late, and traces with more spans than are read."""

    def add(self, spans: Iterable[Span], now: float) -> None:
        """Keep spans, in one transaction. Adding the same again changes nothing but the time of the last."""
        by_trace: dict[str, list[Span]] = {}
        for span in spans:
            by_trace.setdefault(span.trace_id, []).append(span)
        parts, traces = [], []
        for trace_id, some in by_trace.items():
            text = json.dumps([_dump(span) for span in some], default=str).encode()
            digest = hashlib.sha256(text).hexdigest()[:16]
            parts.append((*self._key, trace_id, digest, zlib.compress(text, 1)))
            is_whole = any(span.parent_id is None and span.end > 0 for span in some)
            due = now + (self._settle if is_whole else max(PATIENCE, self._settle))
            traces.append((*self._key, trace_id, now, due, int(is_whole), 0, None, *[now + self._settle] * 2))
        with self._database.write():
            self._database.execute_many(_ADD_PART, parts)
            self._database.execute_many(_ADD_TRACE, traces)

    def take_due(self, now: float, prefix: str = "") -> Iterator[list[GatheredTrace]]:
        """The traces that are complete, some at a time. `mark_given` must follow each time, once they are written.

        Their ids in the ledger begin with `prefix`.
        """
        due = (
            "SELECT trace_id, is_whole, given FROM rageval_span_traces WHERE monitor = ? AND feed = ? AND due <= ? "
            "ORDER BY due LIMIT ?"
        )
        while rows := self._ledger.query(due, self._feed, now, _AT_ONCE):
            known = self._ledger.find_questions([prefix + trace_id for trace_id, _, given in rows if not given])
            late = [trace_id for trace_id, _, given in rows if prefix + trace_id in known or given >= MOST_GIVEN]
            self.late += len(late)
            self.mark_given(late, now)
            self._delete(late, "rageval_spans")
            wanted = {trace_id: bool(is_whole) for trace_id, is_whole, _ in rows if trace_id not in late}
            if wanted:
                spans = self._read(wanted)
                yield [GatheredTrace(one, is_whole, spans.get(one, [])) for one, is_whole in wanted.items()]

    def mark_given(self, trace_ids: Sequence[str], now: float) -> None:
        """Note that traces are in the ledger. Nothing is due of them until more comes."""
        self._database.execute_many(
            "UPDATE rageval_span_traces SET due = NULL, given = given + 1, began = ?, kept_until = ? "
            "WHERE monitor = ? AND feed = ? AND trace_id = ? AND due IS NOT NULL",
            [(now, now + KEPT, *self._key, trace_id) for trace_id in trace_ids],
        )

    def prune(self, now: float) -> None:
        """Forget the traces that were given long enough ago."""
        old = (
            "SELECT trace_id FROM rageval_span_traces WHERE monitor = ? AND feed = ? AND due IS NULL "
            "AND kept_until < ? LIMIT ?"
        )
        while rows := self._ledger.query(old, self._feed, now, _AT_ONCE):
            with self._database.write():
                self._delete([trace_id for (trace_id,) in rows], "rageval_spans", "rageval_span_traces")

    def count(self) -> int:
        """How many traces are not complete yet."""
        waiting = "SELECT COUNT(*) FROM rageval_span_traces WHERE monitor = ? AND feed = ? AND due IS NOT NULL"
        return int(self._ledger.query(waiting, self._feed)[0][0])

    def _delete(self, trace_ids: Sequence[str], *tables: str) -> None:
        for table in tables:
            some = f"DELETE FROM {table} WHERE monitor = ? AND feed = ? AND trace_id"
            self._ledger.query_some(some, trace_ids, self._feed)

    def _read(self, trace_ids: Iterable[str]) -> dict[str, list[Span]]:
        found: dict[str, list[Span]] = {}
        kept = "SELECT trace_id, content FROM rageval_spans WHERE monitor = ? AND feed = ? AND trace_id"
        for trace_id, content in self._ledger.query_some(kept, trace_ids, self._feed):
            spans = found.setdefault(trace_id, [])
            if len(spans) < MOST_SPANS:
                spans += _unpack(content)
                self.cut += len(spans) > MOST_SPANS
                del spans[MOST_SPANS:]
        return found


_PART = ("monitor", "feed", "trace_id", "part", "content")
_ADD_PART = f"{insert('rageval_spans', _PART)} ON CONFLICT (monitor, feed, trace_id, part) DO NOTHING"
_TRACE = ("monitor", "feed", "trace_id", "began", "due", "is_whole", "given", "kept_until")
_DUE = (
    "CASE WHEN rageval_span_traces.is_whole = 1 OR excluded.is_whole = 1 THEN CAST(? AS DOUBLE PRECISION) "
    "ELSE excluded.due END"
)
_LIMIT = f"rageval_span_traces.began + {LONGEST:.0f}"
_ADD_TRACE = (
    f"{insert('rageval_span_traces', _TRACE)} ON CONFLICT (monitor, feed, trace_id) DO UPDATE SET "
    f"due = CASE WHEN {_DUE} < {_LIMIT} THEN {_DUE} ELSE {_LIMIT} END, "
    "is_whole = CASE WHEN excluded.is_whole = 1 THEN 1 ELSE rageval_span_traces.is_whole END"
)


def find_traces_of(ledger: Ledger, user: str) -> set[str]:
    """The traces of a user among those whose spans are kept, by their own ids."""
    rows = ledger.query("SELECT trace_id, content FROM rageval_spans WHERE monitor = ?")
    return {one for one, content in rows if any(text_of(span, "user") == user for span in _unpack(content))}


def _dump(span: Span) -> list[Any]:
    return [*span[:6], dict(span.attributes), *span[7:11], dict(span.resource), span.kind]


def _unpack(content: bytes) -> Iterator[Span]:
    return map(_load, json.loads(zlib.decompress(bytes(content))))


def _load(found: list[Any]) -> Span:
    events, links = ([*map(kind._make, some)] for kind, some in ((SpanEvent, found[7]), (Link, found[8])))
    return Span._make([*found[:7], tuple(events), tuple(links), *found[9:], ""])
