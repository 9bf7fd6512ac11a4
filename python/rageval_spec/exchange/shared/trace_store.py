"""Keeps the parts of traces, such as spans or rows, on the disk until all have come.

Tools and collectors write the parts of a trace in any order, far from each other and in several files or pages.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from rageval_spec.errors import RagevalError

_BATCH = 2000
_CACHE_KIBIBYTES = 32_768
_LATEST = (1 << 63) - 1
"""The latest time that SQLite can hold, in the year 2262."""
Part = tuple[str, str | None, int | None, Any]
"""The trace, the part's name in it if it has one, its time in nanoseconds since 1970 if known, and what it holds."""


class TraceStore:
    """The parts by trace, in a temporary database that vanishes when it is closed. Memory holds those of one trace.

    A part with the trace and the name of an earlier one replaces it, so that a page that is read twice changes nothing.
    """

    def __init__(self) -> None:
        """SQLite keeps the database in memory as long as it is small."""
        import sqlite3

        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KIBIBYTES}"):
            self._database.execute(f"PRAGMA {setting}")
        self._database.execute("CREATE TABLE parts (trace BLOB, name BLOB, time INTEGER, content BLOB)")
        self._is_indexed = self._is_named = False

    def add(self, parts: Iterable[Part]) -> int:
        """Keep parts; returns how many."""
        count = 0
        coming = iter(parts)
        while batch := list(islice(coming, _BATCH)):
            with _explain():
                self._database.execute("BEGIN")
                self._database.executemany("INSERT INTO parts VALUES (?, ?, ?, ?)", map(self._pack, batch))
                self._database.execute("COMMIT")
            count += len(batch)
        return count

    def list_traces(
        self, since: int = 0, until: int | None = None, limit: int | None = None, *, newest_first: bool = True
    ) -> Iterator[Any]:
        """The newest traces that began in a window of times, at most `limit`; do not add parts meanwhile."""
        if not self._is_indexed:
            with _explain():
                self._database.execute("CREATE INDEX of_trace ON parts (trace, time)")
            self._is_indexed = True
        newest = (
            "SELECT trace, MIN(time) AS begun FROM parts GROUP BY trace "
            "HAVING COALESCE(begun, 0) >= ? AND (? IS NULL OR begun < ?) ORDER BY begun DESC, trace DESC LIMIT ?"
        )
        bounds = [min(since, _LATEST), *[None if until is None else min(until, _LATEST)] * 2]
        order = "DESC" if newest_first else "ASC"
        statement = f"SELECT trace FROM ({newest}) ORDER BY begun {order}, trace {order}"
        for (trace,) in self._database.execute(statement, [*bounds, -1 if limit is None else limit]):
            yield trace

    def read(self, trace: Any, most: int = -1) -> list[Any]:
        """What the parts of a trace hold, in the order of their times."""
        few = "SELECT content FROM parts WHERE trace = ? ORDER BY time, rowid LIMIT ?"
        if self._is_named:
            few = (
                "SELECT content, MAX(rowid) FROM parts WHERE trace = ? GROUP BY COALESCE(name, rowid) "
                "ORDER BY time, name LIMIT ?"
            )
        return [marshal.loads(row[0]) for row in self._database.execute(few, (trace, most))]

    def close(self) -> None:
        self._database.close()

    def _pack(self, part: Part) -> tuple[str, str | None, int | None, bytes]:
        trace, name, time, content = part
        self._is_named = self._is_named or name is not None
        named = None if name is None else _encode(name)
        return _encode(trace), named, None if time is None else min(time, _LATEST), marshal.dumps(content)


def _encode(text: str) -> str:
    """A text that SQLite can store: half surrogate pairs are escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


@contextmanager
def _explain() -> Iterator[None]:
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise RagevalError(f"cannot keep what was read: {error}; set TMPDIR to a folder with room") from error
