"""A store in PostgreSQL, for commands that share no disk: tables, replies and claims are in the database.

`RAGEVAL_STORE_URL` names it. Vectors, indexes and digests of files, which can be made again, stay in the store's folder
on each machine. A claim on a question is an advisory lock of the session, which the server frees when the process
ends for any reason. What was sent is kept when the server has answered. If the connection is lost, it is opened again.

- `rageval_replies`: the replies of models and the answers of systems, by model and digest of the question.
- `rageval_tables`: the partitions of tables, as Parquet, and `rageval_manifests`, whose JSON is as in a folder's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from rageval_spec.errors import RagevalError, UsageError, describe_fault, hide_password
from rageval_spec.libraries import pl
from rageval_spec.store.replies import place_claim

if TYPE_CHECKING:
    from rageval_spec.store.vectors import VectorFile, VectorForm

R = TypeVar("R")

PATIENCE = 60.0
"""Seconds to wait for a server that was there and is gone."""
_CONNECT_TIMEOUT = 5
_PAUSE = 0.5
_KEPT_ALIVE: dict[str, Any] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""A connection that a firewall has dropped is noticed within a minute."""
_LOCK = 0x72616773746F7265
"""The key of the lock under which one process at a time creates tables: "ragstore" in ASCII."""
_TABLES = """
CREATE TABLE IF NOT EXISTS rageval_replies (
    model TEXT NOT NULL, question BYTEA NOT NULL, answer BYTEA NOT NULL, made TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (model, question)
);
CREATE TABLE IF NOT EXISTS rageval_manifests (
    key TEXT PRIMARY KEY, manifest TEXT NOT NULL, made TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS rageval_tables (
    key TEXT NOT NULL REFERENCES rageval_manifests ON DELETE CASCADE, part INTEGER NOT NULL, content BYTEA NOT NULL,
    PRIMARY KEY (key, part)
)
"""
_KEEP = """
INSERT INTO rageval_replies (model, question, answer)
SELECT %s::text, question, answer FROM unnest(%s::bytea[], %s::bytea[]) AS new (question, answer) ORDER BY question
ON CONFLICT (model, question) DO UPDATE SET answer = EXCLUDED.answer
"""


class PostgresTables:
    """Tables in a database, as a store keeps them."""

    def __init__(self, database: Database) -> None:
        """Use a connection that is shared."""
        self._database = database

    def load(self, key: str) -> pl.DataFrame | None:
        rows = self._database.ask("SELECT content FROM rageval_tables WHERE key = %s ORDER BY part", key)
        parts = [pl.read_parquet(BytesIO(content)) for (content,) in rows]
        return pl.concat(parts) if parts else None

    def find_manifest(self, key: str) -> Mapping[str, Any] | None:
        """The manifest of a table; None if there is no such table."""
        found = self._database.ask("SELECT manifest FROM rageval_manifests WHERE key = %s", key)
        return json.loads(found[0][0]) if found else None

    def save(self, key: str, partitions: Sequence[bytes], manifest: Mapping[str, Any]) -> None:
        def write(connection: Any) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                new = "INSERT INTO rageval_manifests (key, manifest) VALUES (%s, %s) ON CONFLICT DO NOTHING"
                if cursor.execute(new, (key, json.dumps(manifest))).rowcount:
                    rows = [(key, part, content) for part, content in enumerate(partitions)]
                    cursor.executemany("INSERT INTO rageval_tables VALUES (%s, %s, %s)", rows)

        self._database.use(write)

    def forget(self, key: str) -> None:
        self._database.ask("DELETE FROM rageval_manifests WHERE key = %s", key)


class PostgresAnswers:
    """Answers in a database. Safe to use from several threads, which share one connection."""

    def __init__(self, database: Database, open_vectors: Callable[[str, VectorForm], VectorFile]) -> None:
        """`open_vectors` opens the files of vectors of this machine."""
        self._database = database
        self._open_vectors = open_vectors
        self._held: set[int] = set()
        database.on_connect = self._claim_again

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        query = "SELECT question, answer FROM rageval_replies WHERE model = %s AND question = ANY(%s::bytea[])"
        return dict(self._database.ask(query, model, list(questions)))

    def has_any(self, model: str) -> bool:
        return bool(self._database.ask("SELECT 1 FROM rageval_replies WHERE model = %s LIMIT 1", model))

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Returns when the server has the answers on its disk."""
        self._database.ask(_KEEP, model, list(answers), list(answers.values()))

    def drop(self, model: str, questions: Sequence[bytes]) -> None:
        query = "DELETE FROM rageval_replies WHERE model = %s AND question = ANY(%s::bytea[])"
        self._database.ask(query, model, list(questions))

    def claim(self, model: str, question: bytes) -> bool:
        place = place_claim(model, question)
        is_mine = bool(self._database.ask("SELECT pg_try_advisory_lock(%s)", place)[0][0])
        if is_mine:
            self._held.add(place)
        return is_mine

    def release(self, model: str, question: bytes) -> None:
        place = place_claim(model, question)
        self._held.discard(place)
        self._database.ask("SELECT pg_advisory_unlock(%s)", place)

    def _claim_again(self, connection: Any) -> None:
        """Claim in a new session what the lost one held: calls are under way for it."""
        connection.execute("SELECT pg_try_advisory_lock(place) FROM unnest(%s::bigint[]) AS place", (list(self._held),))

    def open_vectors(self, model: str, form: VectorForm) -> VectorFile:
        return self._open_vectors(model, form)


class Database:
    """A connection that is opened again when it is lost. Every statement is a transaction of its own."""

    def __init__(self, url: str) -> None:
        """Connect. Raises `RagevalError` if the server cannot be reached, and `UsageError` without psycopg."""
        try:
            import psycopg
        except ImportError as error:
            message = "a store in PostgreSQL needs psycopg; install it with: pip install 'rageval-spec[postgres]'"
            raise UsageError(message) from error
        self._url = url
        self._errors = psycopg.Error
        self._lost = (psycopg.OperationalError, psycopg.InterfaceError)
        self._disturbed = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
        self.on_connect: Callable[[Any], None] = lambda _: None
        self._lock = Lock()
        self._connection: Any = None
        self.use(_create_tables)

    def ask(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        def execute(connection: Any) -> Sequence[tuple[Any, ...]]:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else ()

        return self.use(execute)

    def use(self, work: Callable[[Any], R]) -> R:
        """Do something that can be repeated, in a connection. Raises `RagevalError` if the server refuses it."""
        with self._lock:
            until = None if self._connection is not None else 0.0
            while True:
                try:
                    if self._connection is None:
                        self._connection = self._connect()
                        self.on_connect(self._connection)
                    return work(self._connection)
                except self._errors as error:
                    until = time.monotonic() + PATIENCE if until is None else until
                    is_open = self._connection is not None and not self._connection.closed
                    can_be_repeated = isinstance(error, self._disturbed if is_open else self._lost)
                    if not can_be_repeated or time.monotonic() >= until:
                        raise self._complain(error) from None  # the cause's text can hold the password
                    self._connection = self._connection if is_open else None
                    time.sleep(_PAUSE)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connect(self) -> Any:
        import psycopg

        # No prepared statements: they hinder proxies, and claims need one session of the server in any case.
        return psycopg.connect(
            self._url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT, prepare_threshold=None, **_KEPT_ALIVE
        )

    def _complain(self, error: Exception) -> RagevalError:
        told = f"{hide_password(self._url)} cannot be used: {describe_fault(self._url, error)}"
        return RagevalError(f"store: {told}; check RAGEVAL_STORE_URL, or use --no-store")


def _create_tables(connection: Any) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(_TABLES)
