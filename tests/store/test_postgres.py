"""A store in PostgreSQL; `test_store.py` and `test_replies.py` test what all stores have."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import polars as pl
import pytest

from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import Answers
from rageval_spec.runner import Options, run
from rageval_spec.store import store as store_module
from rageval_spec.store.store import STORE_URL, FolderStore, PostgresStore, Store, open_store
from tests.endpoints.api_server import ApiServer, Asked
from tests.history.servers import start_server, stop_server
from tests.models.endpoint import Answer
from tests.tiny import write_spec

MODEL, KEY = "a" * 64, "ab" * 32


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[PostgresStore]:
    opened = PostgresStore(tmp_path / "store", database)
    yield opened
    opened.close()


@pytest.fixture
def other(database: str, tmp_path: Path) -> Iterator[PostgresStore]:
    """The store of a machine that shares only the database."""
    opened = PostgresStore(tmp_path / "other", database)
    yield opened
    opened.close()


def test_machines_share_tables_and_replies(store: Store, other: Store) -> None:
    table = pl.DataFrame({"query_id": ["q1"], "score": [1.5]})
    store.answers.keep(MODEL, {b"q": b"\0"})
    store.save(KEY, table, {"notes": ["é"]})
    assert other.answers.find(MODEL, [b"q"]) == {b"q": b"\0"}
    found = other.load(KEY)
    assert found is not None
    assert found.equals(table)
    assert other.record(KEY) == {"notes": ["é"]}
    other.forget(KEY)
    assert store.load(KEY) is None


def test_large_tables_are_several_partitions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "PARTITION_ROWS", 3)
    table = pl.DataFrame({"row": range(25)})
    store.save(KEY, table)
    found = store.load(KEY)
    assert found is not None
    assert found.equals(table)


def test_threads_and_machines_may_save_the_same_table(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "PARTITION_ROWS", 2)
    table, together = pl.DataFrame({"row": range(9)}), Barrier(6)

    def save(one: Store) -> None:
        together.wait()
        one.save(KEY, table)

    threads = [Thread(target=save, args=(one,)) for one in (store, other) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = other.load(KEY)
    assert found is not None
    assert found.equals(table)


def test_a_claim_excludes_other_machines_only(store: Store, other: Store) -> None:
    assert store.answers.claim(MODEL, b"why?")
    assert not other.answers.claim(MODEL, b"why?")
    assert other.answers.claim(MODEL, b"how?")
    store.answers.release(MODEL, b"why?")
    assert other.answers.claim(MODEL, b"why?")


HOLDER = """
import os, sys
from pathlib import Path
from rageval_spec.store.store import PostgresStore
answers = PostgresStore(Path(sys.argv[1]), sys.argv[2]).answers
answers.claim("a" * 64, b"why?")
answers.keep("a" * 64, {b"kept": b"yes"})
print("ready", flush=True)
sys.stdin.readline()
"""


def test_a_killed_process_holds_no_claim_and_loses_no_reply(store: Store, database: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path), database]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        assert not store.answers.claim(MODEL, b"why?")
        holder.send_signal(signal.SIGKILL)
    while not store.answers.claim(MODEL, b"why?"):
        pass  # the server notices that the connection has ended
    assert store.answers.find(MODEL, [b"kept"]) == {b"kept": b"yes"}


def keep_while_down(answers: Answers, folder: Path) -> None:
    stop_server(folder)
    starting = Thread(target=start_server, args=(folder, ""))
    starting.start()
    answers.keep(MODEL, {b"later": b"two"})
    starting.join()


def test_a_server_that_restarts_loses_nothing(store: Store, server: tuple[str, Path]) -> None:
    store.answers.keep(MODEL, {b"early": b"one"})
    keep_while_down(store.answers, server[1])
    assert store.answers.find(MODEL, [b"early", b"later"]) == {b"early": b"one", b"later": b"two"}


def test_why_a_database_cannot_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv(STORE_URL, "postgresql://me:pass-word@127.0.0.1:9/base")
    with pytest.raises(RagevalError, match=r"^store: postgresql://me:\*\*\*@127.0.0.1:9/base cannot be used") as raised:
        open_store(tmp_path)
    assert "pass-word" not in str(raised.value)
    monkeypatch.setenv(STORE_URL, "s3://bucket/store")
    with pytest.raises(UsageError, match="RAGEVAL_STORE_URL names no PostgreSQL database; write postgresql://"):
        open_store(tmp_path)
    with pytest.raises(UsageError, match=r"--store names a folder; .* by RAGEVAL_STORE_URL=postgresql://"):
        open_store(Path("postgresql://host/base"))
    monkeypatch.setenv(STORE_URL, "")
    assert type(open_store(tmp_path)) is FolderStore


def test_without_psycopg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"needs psycopg; install it with: pip install 'rageval-spec\[postgres\]'"):
        PostgresStore(tmp_path, "postgresql://host/base")


def test_an_evaluation_on_another_machine_pays_nothing_again(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(asked: Asked) -> Answer:
        return Answer({"answer": asked.content["question"], "contexts": ["red"]})

    app = ApiServer(reply)
    spec = write_spec(
        tmp_path,
        systems={"bot": {"use": "http", "url": app.url, "retries": 0}, "bm25": {"use": "bm25"}},
        metrics=["rr", "error_rate"],
        limits={"max_calls": {"systems": 2}},
        history="none",
    )
    monkeypatch.setenv(STORE_URL, database)
    assert not run(spec, Options(store=tmp_path / "one", output=tmp_path / "out")).is_finished
    paid = len(app.asked)
    assert paid == 2
    finished = run(
        spec, Options(store=tmp_path / "two", output=tmp_path / "out", overrides=("limits.max_calls.systems=100",))
    )
    assert finished.is_finished
    questions = [asked.content["question"] for asked in app.asked]
    assert len({*questions}) == len(questions) > paid
    assert [timing.stored for timing in finished.timings] == [True]
    assert not (tmp_path / "two" / "answers" / "answers.sqlite").exists()
    app.close()


def test_claims_outlive_a_lost_connection(store: PostgresStore, other: PostgresStore) -> None:
    assert store.answers.claim(MODEL, b"q")
    assert store.answers.claim(MODEL, b"released")
    store.answers.release(MODEL, b"released")
    end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    end += " WHERE pid <> pg_backend_pid() AND datname = current_database()"
    other._database.ask(end)
    store.answers.find(MODEL, [b"q"])
    assert not other.answers.claim(MODEL, b"q")
    assert other.answers.claim(MODEL, b"released")


def test_machines_that_write_the_same_replies_in_other_orders_lose_none(
    store: PostgresStore, other: PostgresStore
) -> None:
    replies = {f"q{number}".encode(): b"reply" * 50 for number in range(2000)}
    failures: list[BaseException] = []

    def write(one: PostgresStore, these: dict[bytes, bytes]) -> None:
        try:
            for _ in range(10):
                one.answers.keep(MODEL, these)
                one.answers.drop(MODEL, [*these][:1000])
        except RagevalError as failure:
            failures.append(failure)

    orders = (replies, dict(reversed(replies.items())))
    threads = [Thread(target=write, args=pair) for pair in zip((store, other), orders, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    store.answers.keep(MODEL, replies)
    assert other.answers.find(MODEL, [*replies]) == replies
