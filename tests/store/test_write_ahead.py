from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Timer

import pytest

from rageval_spec.store.write_ahead import enable_write_ahead


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def test_it_waits_for_another_writer(tmp_path: Path) -> None:
    other, connection = connect(tmp_path / "a.db"), connect(tmp_path / "a.db")
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    Timer(0.1, other.execute, ["COMMIT"]).start()
    enable_write_ahead(connection, patience=30)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    other.close()
    connection.close()


def test_it_gives_up_in_the_end(tmp_path: Path) -> None:
    other, connection = connect(tmp_path / "a.db"), connect(tmp_path / "a.db")
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        enable_write_ahead(connection, patience=0.05)
    other.close()
    connection.close()
