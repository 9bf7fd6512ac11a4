"""A history in PostgreSQL: the same records, many writers, and a server that stops."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.history import database
from rageval_spec.history.database import Chosen, History, HistoryError, StoredRecord
from rageval_spec.history.finding import Places, find_record
from rageval_spec.history.opening import open_history
from rageval_spec.history.postgres import PostgresConnection, hide_password
from rageval_spec.history.recording import load_stored
from rageval_spec.history.tables import MIGRATIONS
from rageval_spec.runner import Options, run
from tests.history.records import NOON, make_id, make_marked_evaluation, make_record
from tests.history.servers import run_server, start_server, stop_server
from tests.sample_evaluation import make_hostile_evaluation
from tests.tiny import write_spec

_ROOT = Path(__file__).parents[2]
_SETTINGS = "-c max_connections=4 -c superuser_reserved_connections=0"
_JOBS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from rageval_spec.history.opening import open_history
from tests.history.records import make_record

def record(number):
    with open_history(sys.argv[1]) as history:
        history.add([make_record(number)])

first = int(sys.argv[2])
with ThreadPoolExecutor(5) as jobs:
    list(jobs.map(record, range(first, first + 50)))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Path]]:
    with run_server(_SETTINGS) as started:
        yield started


@pytest.fixture
def url(server: tuple[str, Path]) -> Iterator[str]:
    """The address of a server without tables."""
    import psycopg

    with psycopg.connect(server[0], autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    yield server[0]


def test_records_come_back_as_from_a_file(url: str) -> None:
    hostile = make_record(2, make_hostile_evaluation())
    with open_history(url) as history:
        history.add([make_record(1, None, "main"), hostile, make_record(1)])
        assert [entry.id for entry in history.entries()] == [make_id(2), make_id(1)]
        assert history.entries(Chosen(branch="main", since=NOON + timedelta(hours=2)))[0].id == make_id(2)
        assert history.find("main") == history.find("0001") == make_id(1)
        assert {number.metric for number in history.numbers()} >= {"map", "ndcg@10"}
        found = load_stored(history, make_id(1)).evaluation
        assert found.values.equals(make_marked_evaluation().values)
        assert replace(found, values=None) == replace(make_marked_evaluation(), values=None)  # type: ignore[arg-type]
        history.set_label(make_id(2), "main")
        assert history.find("main") == make_id(2)
        assert history.add(history.copy()) == 0
        assert {one.row["id"]: one.labels for one in history.copy()} == {make_id(1): (), make_id(2): ("main",)}
        assert history.prune(NOON + timedelta(days=9)) == [make_id(1)]
        assert [entry.labels for entry in history.entries()] == [("main",)]


def test_jobs_that_begin_at_once_make_the_tables_once_and_lose_nothing(url: str, server: tuple[str, Path]) -> None:
    """200 jobs, 20 at a time: more than the server has connections, so that some must try again."""
    firsts = range(0, 200, 50)
    processes = [subprocess.Popen([sys.executable, "-c", _JOBS, url, str(first)], cwd=_ROOT) for first in firsts]
    assert [process.wait(120) for process in processes] == [0] * 4
    assert any(words in (server[1] / "log").read_text() for words in ("too many clients", "connection slots"))
    with open_history(url) as history:
        assert sorted(entry.id for entry in history.entries()) == sorted(make_id(number) for number in range(200))
        counts = history.connection.execute("SELECT COUNT(*) FROM rageval_aggregates GROUP BY record_id")
    assert counts == [(15,)] * 200


def test_a_migration_that_fails_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_history(url) as history:
        history.add([make_record(1)])
    monkeypatch.setattr(database, "MIGRATIONS", [*MIGRATIONS, ["DELETE FROM rageval_records", "not SQL"]])
    with pytest.raises(HistoryError):
        open_history(url)
    later = [*MIGRATIONS, ["ALTER TABLE rageval_records ADD COLUMN weather TEXT"]]
    monkeypatch.setattr(database, "MIGRATIONS", later)
    with open_history(url) as history:
        assert len(history.entries()) == 1 and history.connection.find_version() == len(later)


def test_a_server_that_stops_costs_no_evaluation_and_loses_no_record(
    tmp_path: Path, url: str, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HISTORY_URL", url)
    path = write_spec(tmp_path, history={"use": "postgres", "url": "${secret:HISTORY_URL}"})
    options = Options(output=tmp_path / "results", no_store=True)
    assert run(path, options).unrecorded is None
    stop_server(server[1])
    try:
        stopped = run(path, options)
    finally:
        start_server(server[1], _SETTINGS)
    assert stopped.exit_code == 0 and stopped.unrecorded is not None
    assert len(list((tmp_path / "results").glob("*.pending.json"))) == 1
    assert run(path, options).unrecorded is None
    with open_history(url) as history:
        records = history.entries()
    assert len(records) == 3
    assert find_record(records[0].id[:8], Places(tmp_path, url, tmp_path)).id == records[0].id
    assert not (tmp_path / ".rageval").exists()


def test_a_server_that_stops_while_it_writes_gets_the_record_once_when_it_is_back(
    tmp_path: Path, url: str, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HISTORY_URL", url)
    path = write_spec(tmp_path, history={"use": "postgres", "url": "${secret:HISTORY_URL}"})
    options = Options(output=tmp_path / "results", no_store=True)
    run(path, options)
    execute_many = PostgresConnection.execute_many

    def stop_and_execute_many(self: PostgresConnection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        stop_server(server[1])
        execute_many(self, statement, rows)

    monkeypatch.setattr(PostgresConnection, "execute_many", stop_and_execute_many)
    try:
        stopped = run(path, options)
    finally:
        start_server(server[1], _SETTINGS)
    assert stopped.exit_code == 0 and stopped.unrecorded is not None
    with open_history(url) as history:
        assert len(history.entries()) == 1
    monkeypatch.setattr(PostgresConnection, "execute_many", execute_many)
    assert run(path, options).unrecorded is None
    assert not list((tmp_path / "results").glob("*.pending.json"))
    with open_history(url) as history:
        assert len({entry.id for entry in history.entries()}) == len(history.entries()) == 3


def test_a_record_whose_confirmation_is_lost_is_not_there_twice(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HISTORY_URL", url)
    path = write_spec(tmp_path, history={"use": "postgres", "url": "${secret:HISTORY_URL}"})
    options = Options(output=tmp_path / "results", no_store=True)
    add = History.add

    def add_and_break(self: History, records: Sequence[StoredRecord]) -> None:
        add(self, records)
        raise HistoryError("the connection broke before the server confirmed the record")

    monkeypatch.setattr(History, "add", add_and_break)
    assert run(path, options).unrecorded is not None
    monkeypatch.setattr(History, "add", add)
    assert run(path, options).unrecorded is None
    with open_history(url) as history:
        assert len(history.entries()) == 2


def test_passwords_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    url = "postgresql://me:pass-word@localhost:1/base?connect_timeout=1"
    assert hide_password(f"no {url} here") == "no postgresql://me:***@localhost:1/base?connect_timeout=1 here"
    with pytest.raises(HistoryError) as caught:
        PostgresConnection(url)
    assert "pass-word" not in str(caught.value) and "localhost" in str(caught.value)


def test_without_psycopg_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"pip install 'rageval-spec\[postgres\]'"):
        PostgresConnection("postgresql://host/base")
