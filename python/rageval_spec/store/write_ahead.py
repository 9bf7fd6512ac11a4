"""Switches SQLite databases to write-ahead mode, in which readers and one writer do not wait for each other."""

from __future__ import annotations

import sqlite3
import time

_PAUSE = 0.01


def enable_write_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Switch a database to write-ahead mode, and wait up to `patience` seconds for another process that does the same.

    SQLite's own timeout does not cover this switch.

    Raises:
        sqlite3.OperationalError: the database was busy for too long, or cannot be written.
    """
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # The low byte is the primary error code; the others specify it.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(_PAUSE)
