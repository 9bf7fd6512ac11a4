"""The history in a SQLite file with a write-ahead log, which several processes can use at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rageval_spec.history.database import HistoryError
from rageval_spec.store.write_ahead import enable_write_ahead

PATIENCE = 30.0
"""Seconds to wait while another process writes."""
_IGNORED = "history.db*\n"


class SqliteConnection:
    """A connection to a SQLite file."""

    bytes_type = "BLOB"

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """Open the file, and create it with its folder if `create` says so.

        Raises:
            HistoryError: the file cannot be opened, or is not a database.
        """
        self.name = str(path)
        try:
            if create and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                _keep_out_of_git(path.parent)
            mode = "rwc" if create else "rw"
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            self._connection = sqlite3.connect(uri, timeout=PATIENCE, isolation_level=None, uri=True)
        except (OSError, sqlite3.Error, ValueError) as error:
            raise self._explain(error) from error
        try:
            enable_write_ahead(self._connection, PATIENCE)
            self._connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error as error:
            self._connection.close()
            raise self._explain(error) from error

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """Execute a statement and return its rows, if it has any."""
        try:
            return self._connection.execute(statement, [_clean(value) for value in parameters]).fetchall()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each row of parameters."""
        try:
            self._connection.executemany(statement, [[_clean(value) for value in row] for row in rows])
        except sqlite3.Error as error:
            raise self._explain(error) from error

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction that writes; it waits for other writers first."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has rolled back itself, for example if the disk is full
                self._connection.execute("ROLLBACK")
            raise

    def find_version(self) -> int:
        """The version of the schema; 0 if there are no tables yet."""
        if not self.execute("SELECT 1 FROM sqlite_master WHERE name = 'rageval_schema'"):
            return 0
        return int(self.execute("SELECT version FROM rageval_schema")[0][0])

    def lock(self) -> None:
        """Do nothing: a file has one writer at a time."""

    def compact(self) -> None:
        """Shrink the file, unless other processes use it."""
        with suppress(sqlite3.OperationalError):
            self._connection.execute("VACUUM")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _explain(self, error: Exception) -> HistoryError:
        hint = " (is the disk full?)" if _is_input_output(error) else ""
        return HistoryError(f"the history {self.name} cannot be used: {error}{hint}")


def _is_input_output(error: Exception) -> bool:
    """Whether SQLite could not read or write; its message does not say why. The code's low byte is its kind."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR


def _clean(value: Any) -> Any:
    """Text without lone surrogates, which UTF-8 cannot hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and not value.isascii() else value


def _keep_out_of_git(folder: Path) -> None:
    """Make git ignore the database, which changes with every evaluation. Labels saved as folders can be committed."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text(_IGNORED, encoding="utf-8")
