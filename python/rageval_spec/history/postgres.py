"""The history in PostgreSQL, by psycopg 3 (the extra `postgres`), for many machines that write at once."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rageval_spec.errors import UsageError
from rageval_spec.history.database import HistoryError

PATIENCE = 20.0
"""Seconds to wait while the server has no free connection, or starts."""
_CONNECT_TIMEOUT = 5
_LOCK = 0x7261676576616C
"""The key of the lock under which one process at a time migrates: "rageval" in ASCII."""
_BUSY_CODES = ("53300", "57P03")
_BUSY_WORDS = ("too many clients", "remaining connection slots", "the database system is starting up")
_PASSWORD = re.compile(r"(?<=://)([^/@\s]*:)[^@\s]*(?=@)")


class PostgresConnection:
    """A connection to a PostgreSQL server."""

    bytes_type = "BYTEA"

    def __init__(self, url: str) -> None:
        """Connect to the server. A server that is busy or starts is asked again for `PATIENCE` seconds.

        Raises:
            UsageError: psycopg is not installed.
            HistoryError: the server cannot be reached.
        """
        try:
            import psycopg
        except ImportError as error:
            message = "a history in PostgreSQL needs psycopg; install it with: pip install 'rageval-spec[postgres]'"
            raise UsageError(message) from error
        self.name = hide_password(url)
        self._errors: type[Exception] = psycopg.Error
        until = time.monotonic() + PATIENCE
        while True:
            try:
                # No prepared statements: PgBouncer can give each transaction another connection to the server.
                self._connection: Any = psycopg.connect(
                    url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT, prepare_threshold=None
                )
                return
            except psycopg.Error as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise self._explain(error) from None  # the cause's text can hold the password
                time.sleep(random.uniform(0.05, 0.5))

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """Execute a statement and return its rows, if it has any."""
        try:
            cursor = self._connection.execute(_translate(statement), [_clean(value) for value in parameters])
            return cursor.fetchall() if cursor.description else ()
        except self._errors as error:
            raise self._explain(error) from error

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each row of parameters."""
        try:
            with self._connection.cursor() as cursor:
                cursor.executemany(_translate(statement), [[_clean(value) for value in row] for row in rows])
        except self._errors as error:
            raise self._explain(error) from error

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction that writes."""
        try:
            with self._connection.transaction():
                yield
        except self._errors as error:
            raise self._explain(error) from error

    def find_version(self) -> int:
        """The version of the schema; 0 if there are no tables yet."""
        # not to_regclass: after waiting for the lock, it can answer from a cache that has not seen the new tables
        statement = "SELECT 1 FROM pg_tables WHERE tablename = ? AND schemaname = ANY (current_schemas(false))"
        if not self.execute(statement, ("rageval_schema",)):
            return 0
        return int(self.execute("SELECT version FROM rageval_schema")[0][0])

    def lock(self) -> None:
        """Within a transaction that writes: let no other process migrate until its end."""
        self.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))

    def compact(self) -> None:
        """Do nothing: the server does that itself."""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _explain(self, error: Exception) -> HistoryError:
        message = hide_password(" ".join(str(error).split()))
        return HistoryError(f"the history {self.name} cannot be used: {message}")


def hide_password(text: str) -> str:
    """The text with `***` in place of the passwords in URLs."""
    return _PASSWORD.sub(r"\1***", text)


def _is_busy(error: Any) -> bool:
    """Whether the server has no free connection, or starts. An error of connecting has no code, only words."""
    return error.sqlstate in _BUSY_CODES or any(words in str(error) for words in _BUSY_WORDS)


def _translate(statement: str) -> str:
    return statement.replace("?", "%s")


def _clean(value: Any) -> Any:
    """Text without null characters, which PostgreSQL cannot hold, and without lone surrogates."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
