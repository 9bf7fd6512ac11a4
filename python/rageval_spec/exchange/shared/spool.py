"""Rows that come in any order and leave in groups, kept on disk: a tool's pages cut through its traces."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from rageval_spec.errors import RagevalError


class Spool:
    """Rows by group, in a temporary file that is gone after `close`.

    A row with the group and the key of an earlier one replaces it, so that a page that is read twice changes nothing.
    """

    def __init__(self) -> None:
        """Create the file.

        Raises:
            RagevalError: the folder for temporary files cannot be written to.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="rageval-")
        try:
            self._database = sqlite3.connect(Path(self._folder.name) / "rows.sqlite", check_same_thread=False)
            self._database.execute("pragma journal_mode = off")
            self._database.execute("pragma synchronous = off")
            self._database.execute(
                "create table rows (name text, key text, time text, content text, primary key (name, key))"
                " without rowid"
            )
        except sqlite3.Error as error:
            raise self._explain(error) from error
        self._times: dict[str, str] = {}

    def add(self, rows: Iterable[tuple[str, str, str, Mapping[str, Any]]]) -> None:
        """Add rows: the group, the key in it, a time that orders rows and groups, and JSON types.

        Raises:
            RagevalError: the disk is full.
        """
        try:
            self._database.executemany("insert or replace into rows values (?, ?, ?, ?)", map(self._pack, rows))
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._times)

    def groups(self) -> Iterator[list[dict[str, Any]]]:
        """The rows of each group in the order of their times; of all groups, the one with the latest rows first."""
        for name in sorted(self._times, key=lambda name: (self._times[name], name), reverse=True):
            found = self._database.execute("select content from rows where name = ? order by time, key", (name,))
            yield [json.loads(content) for (content,) in found]

    def close(self) -> None:
        """Delete the file."""
        self._database.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        """The spool itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Delete the file."""
        self.close()

    def _pack(self, row: tuple[str, str, str, Mapping[str, Any]]) -> tuple[str, str, str, str]:
        group, key, time, content = row
        name = _encode(group)
        earlier = self._times.get(name)
        if not earlier or (time and time < earlier):
            self._times[name] = time
        return name, _encode(key), time, json.dumps(content)

    def _explain(self, error: sqlite3.Error) -> RagevalError:
        return RagevalError(
            f"{self._folder.name}: cannot keep what was read: {error}; set TMPDIR to a folder with room"
        )


def _encode(text: str) -> str:
    """A text that SQLite can store: half surrogate pairs are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
