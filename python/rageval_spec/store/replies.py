"""Keeps the replies of models and the answers of systems as they arrive, so that nothing is computed or paid twice.

They are in a SQLite file in write-ahead mode. Several processes can use it, and a killed process loses nothing for
which `keep` has returned. An answer is bytes; its name is the key of the model and the digest of the question.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar

from rageval_spec.errors import RagevalError, StoreWarning
from rageval_spec.store.claims import Claims
from rageval_spec.store.write_ahead import enable_write_ahead

R = TypeVar("R")
_Identity = tuple[int, int]

FOLDER = "answers"
FILE = "answers.sqlite"
PATIENCE = 60.0
"""Seconds to wait while another process writes."""
WHEN = b"when:"
"""Before a digest: an entry that says when the question was asked. It is not a reply of its own."""
_MOST_PARAMETERS = 4096
_TABLES = """
CREATE TABLE IF NOT EXISTS models (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS answers (
    model INTEGER NOT NULL, question BLOB NOT NULL, answer BLOB NOT NULL, PRIMARY KEY (model, question)
);
"""


_NUMBER = "SELECT id FROM models WHERE key = ?"
_KEEP_ONE = "INSERT OR REPLACE INTO answers (model, question, answer) SELECT id, ?, ? FROM models WHERE key = ?"


class MemoryAnswers:
    """Answers in memory, which end with the process."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[bytes, bytes]] = {}

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """The stored answers to these questions, for one model; questions without an answer are absent."""
        kept = self._answers.get(model, {})
        return {question: kept[question] for question in questions if question in kept}

    def has_any(self, model: str) -> bool:
        """Whether any answer of a model is stored."""
        return bool(self._answers.get(model))

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        self._answers.setdefault(model, {}).update(answers)

    def claim(self, model: str, question: bytes) -> bool:  # noqa: ARG002 - no other process is there
        """Return True, because no other process uses these answers."""
        return True

    def release(self, model: str, question: bytes) -> None:
        """Do nothing, because claims are not recorded."""


class FileAnswers:
    """Answers in a file, which is created when the first answer is kept. Safe to use from several threads."""

    def __init__(self, folder: Path, prepare: Callable[[], object]) -> None:
        """`prepare` creates the folder; it is called before the file is first opened."""
        self._path = folder / FILE
        self._prepare = prepare
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: _Identity | None = None
        self._claims = Claims(folder, prepare)
        self._marked: set[str] = set()

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """The stored answers to these questions, for one model. A damaged file is set aside with a `StoreWarning`."""
        if self._connection is None and not self._path.exists():
            return {}
        self._mark(model)
        return self._use(lambda connection: _find(connection, model, questions))

    def has_any(self, model: str) -> bool:
        """Whether any answer of a model is stored. A damaged file is set aside with a `StoreWarning`."""
        if self._connection is None and not self._path.exists():
            return False
        return self._use(lambda connection: _has_any(connection, model))

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Keep answers. When this returns, they survive the process.

        Raises:
            RagevalError: the file cannot be written.
        """
        self._use(lambda connection: _keep(connection, model, answers))

    def claim(self, model: str, question: bytes) -> bool:
        """Whether this process can ask a question now; False while another, living process is asking it."""
        return self._claims.claim(model, question)

    def release(self, model: str, question: bytes) -> None:
        """End a claim, because the question was answered or failed."""
        self._claims.release(model, question)

    def close(self) -> None:
        """Close the file. It is opened again when it is needed."""
        with self._lock:
            self._close()
        self._claims.close()

    def _mark(self, model: str) -> None:
        """Record, once a process, that the replies of a model are in use."""
        if model not in self._marked:
            self._marked.add(model)
            with suppress(OSError):  # reading works without write permission
                mark = _find_mark(self._path, model)
                mark.parent.mkdir(exist_ok=True)
                mark.touch()

    def _use(self, work: Callable[[sqlite3.Connection], R]) -> R:
        with self._lock:
            try:
                return self._work(work)
            except sqlite3.DatabaseError as error:
                self._close()
                if not self._is_replaced():
                    if not _is_damage(error):
                        raise self._complain(error) from error
                    self._set_aside(error)
            try:
                return self._work(work)
            except sqlite3.Error as error:
                raise self._complain(error) from error

    def _work(self, work: Callable[[sqlite3.Connection], R]) -> R:
        if self._is_replaced():
            self._close()
        if self._connection is None:
            self._connection = self._open()
        return work(self._connection)

    def _open(self) -> sqlite3.Connection:
        try:
            self._prepare()
        except OSError as error:
            raise self._complain(error) from error
        self._opened = _identify(self._path)
        connection = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        if self._opened is None:
            self._opened = _identify(self._path)
        try:
            enable_write_ahead(connection, PATIENCE)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_TABLES)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _is_replaced(self) -> bool:
        """Whether the open file was replaced, because another process found it damaged and set it aside."""
        return _identify(self._path) != self._opened

    def _set_aside(self, error: Exception) -> None:
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        message = f"store: {self._path} is damaged ({error}); it was renamed to {aside.name}, and a new file is used"
        warnings.warn(message, StoreWarning, 2)
        try:
            self._path.rename(aside)
            for suffix in ("-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        except OSError as reason:
            raise self._complain(reason) from reason

    def _complain(self, error: Exception) -> RagevalError:
        return RagevalError(
            f"store: {self._path} cannot be used: {error}; choose another folder with --store, or use --no-store"
        )


def last_use(path: Path, model: str) -> float:
    """When the replies of a model were last read or written, in seconds since 1970; `path` is the file of replies.

    Earlier versions did not record this; for their replies it is the time when the file was last written.
    """
    for place in (_find_mark(path, model), path):
        with suppress(OSError):
            return place.stat().st_mtime
    return 0.0


def _find_mark(path: Path, model: str) -> Path:
    name = model if model.isalnum() else hashlib.sha256(model.encode()).hexdigest()
    return path.parent / "used" / name


def _identify(path: Path) -> _Identity | None:
    """The file's device and inode, which tell it from another file of the same name; None if there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - before each use of the file; the path's own method takes twice as long
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _find(connection: sqlite3.Connection, model: str, questions: Sequence[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(questions), _MOST_PARAMETERS):
        some = questions[start : start + _MOST_PARAMETERS]
        marks = ",".join("?" * len(some))
        query = f"SELECT question, answer FROM answers WHERE model = ({_NUMBER}) AND question IN ({marks})"
        found.update(connection.execute(query, (model, *some)))
    return found


def _has_any(connection: sqlite3.Connection, model: str) -> bool:
    query = f"SELECT 1 FROM answers WHERE model = ({_NUMBER}) LIMIT 1"
    return connection.execute(query, (model,)).fetchone() is not None


def _keep(connection: sqlite3.Connection, model: str, answers: Mapping[bytes, bytes]) -> None:
    with closing(connection.cursor()) as cursor:
        if len(answers) == 1:
            ((question, answer),) = answers.items()
            # One statement is a transaction of its own. It writes nothing if the model is not known yet.
            if cursor.execute(_KEEP_ONE, (question, answer, model)).rowcount:
                return
        cursor.execute("BEGIN IMMEDIATE")
        try:
            cursor.execute("INSERT OR IGNORE INTO models (key) VALUES (?)", (model,))
            (number,) = cursor.execute(_NUMBER, (model,)).fetchone()
            rows = ((number, question, answer) for question, answer in answers.items())
            cursor.executemany("INSERT OR REPLACE INTO answers (model, question, answer) VALUES (?, ?, ?)", rows)
            cursor.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                cursor.execute("ROLLBACK")
            raise


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file itself is damaged, as opposed to a full disk, a locked file or missing permission."""
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
