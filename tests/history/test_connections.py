"""A history in a file: several processes at once, killed at any moment, on a disk that fills up.

A history in PostgreSQL: the same records, many writers, and a server that stops.

Where the history is, and how it is opened.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import UsageError, describe_fault, hide_password
from rageval_spec.history import database
from rageval_spec.history.database import (
    MIGRATIONS,
    History,
    HistoryError,
    PostgresConnection,
    RecordFilter,
    StoredRecord,
    exists,
    locate,
    open_history,
)
from rageval_spec.history.evaluation_lookup import SearchPlaces, find_record
from rageval_spec.history.evaluation_records import load_stored
from rageval_spec.plugin.secrets import Secret
from rageval_spec.runner import Options, run
from rageval_spec.spec.blocks.spec_node import HistoryNode
from tests.history.records import NOON, make_id, make_marked_evaluation, make_record, opened
from tests.history.servers import run_server, start_server, stop_server
from tests.sample_evaluation import make_hostile_evaluation
from tests.tiny import write_spec

_WRITER = """
import sys
from pathlib import Path
from rageval_spec.history.database import open_history
from tests.history.records import make_record
path, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + count):
    with open_history(path) as history:
        history.add([make_record(number)])
    print(number, flush=True)
"""
_ROOT = Path(__file__).parents[2]


def start_writer(path: Path, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(path), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    writers = [start_writer(path, 100 * index, 10) for index in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    with open_history(path) as history:
        expected = {make_id(100 * index + number) for index in range(4) for number in range(10)}
        assert {entry.id for entry in history.entries()} == expected


def test_killed_processes_leave_whole_records_and_all_that_they_finished(tmp_path: Path) -> None:
    path, dice, told = tmp_path / "history.db", random.Random(7), set()
    for attempt in range(8):
        with start_writer(path, 1000 * attempt, 1000) as writer:
            assert writer.stdout is not None
            told.add(int(writer.stdout.readline()))
            time.sleep(dice.uniform(0, 0.05))
            writer.kill()
            told.update(int(line) for line in writer.stdout.read().split("\n")[:-1])
    with open_history(path) as history:
        found = {entry.id for entry in history.entries()}
        assert found >= {make_id(number) for number in told}
        for record_id in found:
            assert {one[0] for one in history.connection.execute(
                "SELECT part FROM rageval_contents WHERE record_id = ?", (record_id,)
            )} == {"results.json", "values.parquet", "fingerprints.json"}  # fmt: skip
        counts = history.connection.execute("SELECT record_id, COUNT(*) FROM rageval_aggregates GROUP BY record_id")
        assert {record_id for record_id, count in counts if count == 15} == found
        assert history.connection.execute("PRAGMA integrity_check") == [("ok",)]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1)) as history:
        [(pages,)] = history.connection.execute("PRAGMA page_count")
        history.connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(HistoryError, match="full"):
            history.add([make_record(2), make_record(3)])
        assert [entry.id for entry in history.entries()] == [make_id(1)]


def test_a_file_that_is_not_a_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_text("this is text, and long enough to be looked at as the header of a database file")
    with pytest.raises(HistoryError, match=r"history\.db cannot be used: file is not a database"):
        open_history(path)


def test_git_ignores_the_file_but_not_the_labels_beside_it(tmp_path: Path) -> None:
    with open_history(tmp_path / ".rageval" / "history.db"):
        pass
    assert (tmp_path / ".rageval" / ".gitignore").read_text() == "history.db*\n"
    with suppress(OSError):
        (tmp_path / ".rageval" / "history.db").unlink()
    (tmp_path / ".rageval" / ".gitignore").write_text("mine\n")
    with open_history(tmp_path / ".rageval" / "history.db"):
        pass
    assert (tmp_path / ".rageval" / ".gitignore").read_text() == "mine\n"


def test_text_that_utf_8_cannot_hold_is_written_all_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1)) as history:
        history.set_label(make_id(1), "bad\ud800 ä")
        assert list(history.labels()) == ["bad? ä"]


_SETTINGS = "-c max_connections=4 -c superuser_reserved_connections=0"
_JOBS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from rageval_spec.history.database import open_history
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
        assert history.entries(RecordFilter(branch="main", since=NOON + timedelta(hours=2)))[0].id == make_id(2)
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
    assert find_record(records[0].id[:8], SearchPlaces(tmp_path, url, tmp_path)).id == records[0].id
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


def test_the_place_is_that_of_the_spec(tmp_path: Path) -> None:
    assert locate(HistoryNode(use="none"), tmp_path) is None
    assert locate(HistoryNode(use="sqlite"), tmp_path) == tmp_path / ".rageval" / "history.db"
    assert locate(HistoryNode(use="sqlite", path="a.db"), tmp_path) == tmp_path / "a.db"
    url = "postgresql://me:word@host/base"
    assert locate(HistoryNode(use="postgres", url=Secret(url)), tmp_path) == url


def test_reading_does_not_create_a_history(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no history at .*a\.db; rageval-spec run records evaluations"):
        open_history(tmp_path / "a.db", create=False)
    assert not list(tmp_path.iterdir())
    assert not exists(tmp_path / "a.db") and not exists(None) and exists("postgresql://host/base")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:SECRET@localhost/base",
        "postgresql://host/base?user=me&password=SECRET",
        "postgresql://host/base?sslpassword=SECRET&user=me",
        "postgresql://me:x@SECRET@host/base",
        "postgresql://me:x SECRET@host/base",
    ],
)
def test_no_part_of_a_password_is_told(url: str) -> None:
    assert "SECRET" not in hide_password(f"no {url} here, nor {url}")


@pytest.mark.parametrize("url", ["postgresql://me:x@SECRET@host/base", "postgresql://me:x SECRET@host/base"])
def test_a_url_that_cannot_be_read_is_not_repeated_by_the_driver(url: str) -> None:
    told = describe_fault(
        url, ValueError("failed to resolve host 'SECRET@host'; unexpected spaces found in 'x SECRET'")
    )
    assert "SECRET" not in told
    assert "%40" in told
