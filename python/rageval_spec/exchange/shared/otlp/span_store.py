"""Collects spans on the disk until all have come, and gives them back trace by trace."""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from rageval_spec.exchange.shared.spans import Event, Link, Span

_BATCH = 2000
MOST_SPANS = 20_000
"""The most spans of one trace that are read, so that programs that give all spans one id do not fill the memory."""
_CACHE_KIBIBYTES = 32_768


class SpanStore:
    """Spans in a temporary database, which vanishes when it is closed. So the spans of a trace may come in any order,
    far from each other and from several files, and memory holds those of only one trace.
    """

    def __init__(self) -> None:
        """Create the database; SQLite keeps it in memory as long as it is small."""
        self._database = sqlite3.connect("", isolation_level=None)
        for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KIBIBYTES}"):
            self._database.execute(f"PRAGMA {setting}")
        self._database.execute("CREATE TABLE spans (trace BLOB, start INTEGER, resource INTEGER, body BLOB)")
        self._resources: dict[bytes, int] = {}
        self._loaded: list[dict[str, Any]] = []
        self._last: tuple[Mapping[str, Any] | None, int] = None, 0
        self._is_indexed = False
        self.cut = 0
        """The number of traces with more spans than are read."""

    def add(self, spans: Iterable[Span]) -> int:
        """Keep spans; returns how many."""
        count = 0
        coming = iter(spans)
        while batch := list(islice(coming, _BATCH)):
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO spans VALUES (?, ?, ?, ?)", map(self._dump, batch))
            self._database.execute("COMMIT")
            count += len(batch)
        return count

    def read_traces(self, since: int = 0, until: int | None = None, limit: int | None = None) -> Iterator[list[Span]]:
        """The spans of each trace that began in a window of nanoseconds since 1970, ordered by its beginning.

        With a limit, only the newest traces. Of a trace with more than `MOST_SPANS`, the first are read. Do not add
        spans meanwhile.
        """
        if not self._is_indexed:
            self._database.execute("CREATE INDEX of_trace ON spans (trace, start)")
            self._is_indexed = True
        newest = (
            "SELECT trace, MIN(start) AS begun FROM spans GROUP BY trace "
            "HAVING begun >= ? AND (? IS NULL OR begun < ?) ORDER BY begun DESC, trace DESC LIMIT ?"
        )
        bounds = [_fit(since), *[None if until is None else _fit(until)] * 2, -1 if limit is None else limit]
        chosen = self._database.execute(f"SELECT trace FROM ({newest}) ORDER BY begun, trace", bounds)
        for (trace,) in chosen:
            few = "SELECT resource, body FROM spans WHERE trace = ? ORDER BY start, rowid LIMIT ?"
            spans = [self._load(*row) for row in self._database.execute(few, (trace, MOST_SPANS + 1))]
            self.cut += len(spans) > MOST_SPANS
            yield spans[:MOST_SPANS]

    def close(self) -> None:
        """Delete the database."""
        self._database.close()

    def _dump(self, span: Span) -> tuple[str, int, int, bytes]:
        events, links = [tuple(event) for event in span.events], [tuple(link) for link in span.links]
        kept = (*span[:6], dict(span.attributes), events, links, *span[9:11], span.kind, span.place)
        return span.trace_id, _fit(span.start), self._number(span.resource), marshal.dumps(kept)

    def _number(self, resource: Mapping[str, Any]) -> int:
        """The place of a resource in `_loaded`. Spans of one request come one after another and share theirs."""
        if resource is not self._last[0]:
            number = self._resources.setdefault(marshal.dumps(dict(resource)), len(self._resources))
            if number == len(self._loaded):
                self._loaded.append(dict(resource))
            self._last = resource, number
        return self._last[1]

    def _load(self, resource: int, body: bytes) -> Span:
        trace_id, span_id, parent, name, start, end, *rest = marshal.loads(body)
        attributes, events, links, status, message, kind, place = rest
        return Span(
            trace_id,
            span_id,
            parent,
            name,
            start,
            end,
            attributes,
            tuple(Event(*event) for event in events),
            tuple(Link(*link) for link in links),
            status,
            message,
            self._loaded[resource],
            kind,
            place,
        )


def _fit(nanoseconds: int) -> int:
    """A time as SQLite can hold it: the latest that it can is in the year 2262."""
    return min(nanoseconds, (1 << 63) - 1)
