"""How the tool is reached."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.exchange.trulens import source as database
from rageval_spec.exchange.trulens.source import copy_database, list_tables, open_to_read, open_to_write
from tests.exchange.trulens.database import make_database, query


def test_a_connection_to_read_cannot_write(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    with pytest.raises(DataError, match="readonly"), open_to_read(path) as connection:
        connection.execute("DELETE FROM trulens_events")


def test_a_failure_undoes_everything(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    with pytest.raises(KeyboardInterrupt), open_to_write(path) as connection:
        connection.execute("DELETE FROM trulens_events")
        raise KeyboardInterrupt
    assert query(path, "SELECT count(*) FROM trulens_events") == [(10,)]


def test_a_database_that_is_in_use_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0.0)
    path = make_database(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DataError, match="another program is writing to it"), open_to_write(path):
            pass


def test_the_copy_is_made_once_and_keeps_the_first_state(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    copy = copy_database(path)
    assert copy.name == "t.sqlite.before-rageval"
    with open_to_write(path) as connection:
        connection.execute("DELETE FROM trulens_events")
    assert copy_database(path) == copy
    assert query(copy, "SELECT count(*) FROM trulens_events") == [(10,)]


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE things (id)")
    with pytest.raises(DataError, match=r"other\.sqlite: not a database of TruLens"), open_to_read(path) as connection:
        list_tables(connection, path)


def test_a_table_of_another_version_is_refused(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE trulens_feedbacks RENAME COLUMN multi_result TO other")
    message = "the table trulens_feedbacks has no column 'multi_result': .*migrate_database"
    with pytest.raises(DataError, match=message), open_to_read(path) as connection:
        list_tables(connection, path)
