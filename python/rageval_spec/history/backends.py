"""Opens the history that a spec or a command names: in a SQLite file, or in PostgreSQL.

The SQLite file has a write-ahead log, and several processes can use it at once. PostgreSQL, by psycopg 3 (the extra
`postgres`), is for many machines that write at once.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.errors import UsageError, expand_home
from rageval_spec.history.database import FILE, Connection, History, HistoryError
from rageval_spec.store.disk import enable_write_ahead

if TYPE_CHECKING:
    from rageval_spec.spec.blocks.spec_node import HistoryNode


SQLITE_PATIENCE = 30.0
"""Seconds to wait while another process writes."""
_IGNORED = "history.db*\n"


class SqliteConnection(Connection):
    """A connection to a SQLite file."""

    bytes_type = "BLOB"

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """Open the file, and create it with its folder if `create` says so.

        Raises:
            HistoryError: the file cannot be opened, or is not a database.
        """
        import sqlite3

        self.name, self._errors = str(path), sqlite3.Error
        try:
            if create and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                _keep_out_of_git(path.parent)
            mode = "rwc" if create else "rw"
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            self._connection = sqlite3.connect(uri, timeout=SQLITE_PATIENCE, isolation_level=None, uri=True)
        except (OSError, sqlite3.Error, ValueError) as error:
            raise self._explain(error) from error
        try:
            with self._explained():
                enable_write_ahead(self._connection, SQLITE_PATIENCE)
                self._connection.execute("PRAGMA foreign_keys = ON")
        except HistoryError:
            self.close()
            raise

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction that writes; it waits for other writers first."""
        import sqlite3

        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has rolled back itself, for example if the disk is full
                self._connection.execute("ROLLBACK")
            raise

    def compact(self) -> None:
        """Shrink the file, unless other processes use it."""
        import sqlite3

        with suppress(sqlite3.OperationalError):
            self._connection.execute("VACUUM")

    def _explain(self, error: Exception) -> HistoryError:
        hint = " (is the disk full?)" if _is_input_output(error) else ""
        return HistoryError(f"the history {self.name} cannot be used: {error}{hint}")


def _is_input_output(error: Exception) -> bool:
    """Whether SQLite could not read or write; its message does not say why. The code's low byte is its kind."""
    import sqlite3

    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR


def _keep_out_of_git(folder: Path) -> None:
    """Make git ignore the database, which changes with every evaluation. Labels saved as folders can be committed."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text(_IGNORED, encoding="utf-8")


POSTGRES_PATIENCE = 20.0
"""Seconds to wait while the server has no free connection, or starts."""
_CONNECT_TIMEOUT = 5
_LOCK = 0x7261676576616C
"""The key of the lock under which one process at a time migrates: "rageval" in ASCII."""
_BUSY_CODES = ("53300", "57P03")
_BUSY_WORDS = ("too many clients", "remaining connection slots", "the database system is starting up")
_PASSWORD = re.compile(r"(?<=://)([^/@\s]*:)[^@\s]*(?=@)")


class PostgresConnection(Connection):
    """A connection to a PostgreSQL server."""

    bytes_type = "BYTEA"
    # not to_regclass: after waiting for the lock, it can answer from a cache that has not seen the new tables
    of_table = "SELECT 1 FROM pg_tables WHERE tablename = ? AND schemaname = ANY (current_schemas(false))"

    def __init__(self, url: str) -> None:
        """Connect to the server. A server that is busy or starts is asked again for `POSTGRES_PATIENCE` seconds.

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
        self._errors = psycopg.Error
        until = time.monotonic() + POSTGRES_PATIENCE
        while True:
            try:
                # No prepared statements: PgBouncer can give each transaction another connection to the server.
                self._connection = psycopg.connect(
                    url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT, prepare_threshold=None
                )
                return
            except psycopg.Error as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise self._explain(error) from None  # the cause's text can hold the password
                time.sleep(random.uniform(0.05, 0.5))

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction that writes."""
        with self._explained(), self._connection.transaction():
            yield

    def lock(self) -> None:
        """Within a transaction that writes: let no other process migrate until its end."""
        self.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))

    def _explain(self, error: Exception) -> HistoryError:
        message = hide_password(" ".join(str(error).split()))
        return HistoryError(f"the history {self.name} cannot be used: {message}")

    def _translate(self, statement: str) -> str:
        return statement.replace("?", "%s")

    def _clean(self, value: Any) -> Any:
        """Text without null characters, which PostgreSQL cannot hold, and without lone surrogates."""
        return super()._clean(value.replace("\0", "\ufffd")) if isinstance(value, str) else value


def hide_password(text: str) -> str:
    """The text with `***` in place of the passwords in URLs."""
    return _PASSWORD.sub(r"\1***", text)


def _is_busy(error: Any) -> bool:
    """Whether the server has no free connection, or starts. An error of connecting has no code, only words."""
    return error.sqlstate in _BUSY_CODES or any(words in str(error) for words in _BUSY_WORDS)


SCHEMES = ("postgresql://", "postgres://")


def locate(node: HistoryNode, folder: Path) -> str | Path | None:
    """The address or the file of a spec's history; None if it has none. Relative paths start at `folder`."""
    if node.use == "none":
        return None
    if node.url is not None:
        return node.url.reveal()
    return folder / (FILE if node.path is None else expand_home(node.path))


def open_history(place: str | Path, *, create: bool = True) -> History:
    """Open a history, with its tables up to date.

    Args:
        place: the file of a SQLite database, or the address of a PostgreSQL database.
        create: whether to create the file if it is absent.

    Raises:
        UsageError: there is no such file, or a library is missing.
        HistoryError: the history cannot be reached.
    """
    if str(place).startswith(SCHEMES):
        return _migrate(History(PostgresConnection(str(place))))
    path = Path(place)
    if not create and not path.exists():
        raise UsageError(f"there is no history at {path}; {_suggest_place(path)}")

    return _migrate(History(SqliteConnection(path, create=create)))


def _suggest_place(path: Path) -> str:
    """Where a history is instead: it lies beside its spec, which can be in a folder below."""
    nearby = sorted(Path().glob(f"*/.rageval/{path.name}"))
    if nearby:
        return f"it is next to its spec: add --history {nearby[0]}"
    return "rageval-spec run records evaluations"


def exists(place: str | Path | None) -> bool:
    """Whether a history can be read: its file is there, or it is on a server."""
    return place is not None and (str(place).startswith(SCHEMES) or Path(place).exists())


def _migrate(history: History) -> History:
    try:
        history.migrate()
    except BaseException:
        history.connection.close()
        raise
    return history
