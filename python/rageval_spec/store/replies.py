"""Keeps the replies of models and the answers of systems, so that nothing is computed or paid twice.

Each is kept as it arrives, in a SQLite file in write-ahead mode. Several processes can use it, and a killed process
loses nothing for which `keep` has returned. An answer is bytes; its name is the key of the model and the digest of
the question.

Processes that share a store wait for each other's calls, so that each question is asked once. A claim on a question
is a lock on one byte of a file that stays empty; the position of the byte is a hash of the question. The operating
system frees the locks of a process when it ends for any reason, so a killed process blocks no other one and claims
need not expire.

What the store remembers of the chat models that were asked (how often replies could be read, and how long they took)
is in a small SQLite file of its own. It describes the model and decides nothing, so a file that cannot be read or
written is ignored.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from rageval_spec.data.chat import AskedModel, ReplyCounts
from rageval_spec.errors import RagevalError, StoreWarning
from rageval_spec.store.disk import enable_write_ahead, prepare

if TYPE_CHECKING:
    from rageval_spec.store.vectors import VectorFile, VectorForm

R = TypeVar("R")
S = TypeVar("S", "_Kept", "_Wanted")
_Identity = tuple[int, int]

REPLIES_FOLDER = "answers"
REPLIES_FILE = "answers.sqlite"
PATIENCE = 60.0
"""Seconds to wait while another process writes."""
WHEN = b"when:"
"""Before a digest: an entry that says when the question was asked. It is not a reply of its own."""
UNFINISHED_PREFIX = "unfinished:"
"""Before the key of a system: its answers in an evaluation that has not reached its outcome."""
_MOST_PARAMETERS = 4096
_PAUSE = 0.05
"""Seconds between tries to write vectors while another process does."""
_DAMAGES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Errors of a damaged file, as opposed to a full disk, a locked file or missing permission."""
_TABLES = """
CREATE TABLE IF NOT EXISTS models (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS answers (
    model INTEGER NOT NULL, question BLOB NOT NULL, answer BLOB NOT NULL, PRIMARY KEY (model, question)
);
"""


_NUMBER = "SELECT id FROM models WHERE key = ?"
_FIND_ONE = f"SELECT question, answer FROM answers WHERE model = ({_NUMBER}) AND question = ?"
_KEEP_ONE = "INSERT OR REPLACE INTO answers (model, question, answer) SELECT id, ?, ? FROM models WHERE key = ?"


class _Kept:
    """Answers to keep."""

    def __init__(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        self.model = model
        self.answers = answers
        self.is_done = False


class _Wanted:
    """Questions to look up, and the answers that were found."""

    def __init__(self, model: str, questions: Sequence[bytes]) -> None:
        self.model = model
        self.questions = questions
        self.found: Mapping[bytes, bytes] = {}
        self.is_done = False


class FileAnswers:
    """Answers in a file, which is created when the first answer is kept. Safe to use from several threads.

    The thread whose turn it is to use the file does for the threads that wait what they wait for, in one statement or
    transaction: each statement lets go of the interpreter and waits for it again while the others wait for the file.
    """

    def __init__(self, folder: Path, prepare: Callable[[], object]) -> None:
        """`prepare` creates the folder; it is called before the file is first opened."""
        self._path = folder / REPLIES_FILE
        self._prepare = prepare
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: _Identity | None = None
        self._kept: list[_Kept] = []
        self._wanted: list[_Wanted] = []
        self._claims = Claims(folder, prepare)
        self._marked: set[str] = set()

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """A damaged file is set aside with a `StoreWarning`, here as in the other methods."""
        if self._connection is None and not self._path.exists():
            return {}
        self._mark(model)
        wanted = _Wanted(model, questions)
        self._share(wanted, self._wanted, self._find_wanted)
        return wanted.found

    def has_any(self, model: str) -> bool:
        if self._connection is None and not self._path.exists():
            return False
        return self._use(lambda connection: _has_any(connection, model))

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Returns when the answers are in the file."""
        self._share(_Kept(model, answers), self._kept, self._write_kept)

    def drop(self, model: str, questions: Sequence[bytes]) -> None:
        self._use(lambda connection: _drop(connection, model, questions))
        if not self.has_any(model):
            with suppress(OSError):
                _find_mark(self._path, model).unlink()

    def claim(self, model: str, question: bytes) -> bool:
        return self._claims.claim(model, question)

    def release(self, model: str, question: bytes) -> None:
        self._claims.release(model, question)

    def open_vectors(self, model: str, form: VectorForm) -> VectorFile:
        from rageval_spec.store.vectors import VECTORS_FOLDER, VectorFile

        name = f"{_name_file(model)}-{form.replace('binary', 'int8')}"

        @contextmanager
        def claim() -> Iterator[None]:
            while not self.claim(VECTORS_FOLDER, name.encode()):
                time.sleep(_PAUSE)
            try:
                yield
            finally:
                self.release(VECTORS_FOLDER, name.encode())

        return VectorFile(self._path.parent.parent / VECTORS_FOLDER / name, form, claim)

    def close(self) -> None:
        with self._lock:
            self._close()
        self._claims.close()

    def _share(self, one: S, waiting: list[S], work: Callable[[sqlite3.Connection], None]) -> None:
        """Have `work`, which does everything in `waiting`, called by this thread or by one that waits before it."""
        waiting.append(one)
        try:
            with self._lock:
                if not one.is_done:
                    self._work_and_mend(work)
        finally:
            if not one.is_done:
                with self._lock, suppress(ValueError):  # another thread may have done it meanwhile
                    waiting.remove(one)

    def _write_kept(self, connection: sqlite3.Connection) -> None:
        kept = self._kept[:]
        _keep(connection, kept)
        _take_off(kept, self._kept)

    def _find_wanted(self, connection: sqlite3.Connection) -> None:
        wanted = self._wanted[:]
        for model in dict.fromkeys(one.model for one in wanted):
            alike = [one for one in wanted if one.model == model]
            found = _find(connection, model, [question for one in alike for question in one.questions])
            for one in alike:
                one.found = {question: found[question] for question in one.questions if question in found}
        _take_off(wanted, self._wanted)

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
            return self._work_and_mend(work)

    def _work_and_mend(self, work: Callable[[sqlite3.Connection], R]) -> R:
        try:
            return self._work(work)
        except sqlite3.DatabaseError as error:
            self._close()
            if not self._is_replaced():
                if getattr(error, "sqlite_errorcode", None) not in _DAMAGES:
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
    return path.parent / "used" / _name_file(model)


def _name_file(model: str) -> str:
    return model if model.isalnum() else hashlib.sha256(model.encode()).hexdigest()


def _take_off(done: list[S], waiting: list[S]) -> None:
    """Take what was done off the front of what waits; other threads add to its end."""
    for one in done:
        one.is_done = True
    del waiting[: len(done)]


def _identify(path: Path) -> _Identity | None:
    """The file's device and inode, which tell it from another file of the same name; None if there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - before each use of the file; the path's own method takes twice as long
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _find(connection: sqlite3.Connection, model: str, questions: Sequence[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    if len(questions) == 1:
        return dict(connection.execute(_FIND_ONE, (model, *questions)))
    for start in range(0, len(questions), _MOST_PARAMETERS):
        some = questions[start : start + _MOST_PARAMETERS]
        marks = ",".join("?" * len(some))
        query = f"SELECT question, answer FROM answers WHERE model = ({_NUMBER}) AND question IN ({marks})"
        found.update(connection.execute(query, (model, *some)))
    return found


def _has_any(connection: sqlite3.Connection, model: str) -> bool:
    query = f"SELECT 1 FROM answers WHERE model = ({_NUMBER}) LIMIT 1"
    return connection.execute(query, (model,)).fetchone() is not None


def _keep(connection: sqlite3.Connection, waiting: Sequence[_Kept]) -> None:
    rows = [(question, answer, one.model) for one in waiting for question, answer in one.answers.items()]
    with closing(connection.cursor()) as cursor:
        # One statement is a transaction of its own. It writes nothing if the model is not known yet.
        if len(rows) == 1 and cursor.execute(_KEEP_ONE, rows[0]).rowcount:
            return
        cursor.execute("BEGIN IMMEDIATE")
        try:
            cursor.executemany("INSERT OR IGNORE INTO models (key) VALUES (?)", {(one.model,) for one in waiting})
            cursor.executemany(_KEEP_ONE, rows)
            cursor.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                cursor.execute("ROLLBACK")
            raise


def _drop(connection: sqlite3.Connection, model: str, questions: Sequence[bytes]) -> None:
    for start in range(0, len(questions), _MOST_PARAMETERS):
        some = questions[start : start + _MOST_PARAMETERS]
        marks = ",".join("?" * len(some))
        query = f"DELETE FROM answers WHERE model = ({_NUMBER}) AND question IN ({marks})"
        connection.execute(query, (model, *some))


CLAIMS_FILE = "calls.lock"
_TAKEN = (errno.EACCES, errno.EAGAIN)


class Claims:
    """The claims of this process. If the file cannot be locked, every claim is granted.

    Claims do not exclude the threads of one process from each other; those share their questions in memory.
    """

    def __init__(self, folder: Path, prepare: Callable[[], object]) -> None:
        """`prepare` creates the folder; it is called at the first claim."""
        self._path = folder / CLAIMS_FILE
        self._prepare = prepare
        self._file: int | None = None
        self._lock = Lock()

    def claim(self, model: str, question: bytes) -> bool:
        """Whether this process can ask a question now; False while another process is asking it."""
        try:
            import fcntl

            file = self._open() if self._file is None else self._file
        except (ImportError, OSError):  # a store that cannot be written says so when something is kept
            return True
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place_claim(model, question))
        except OSError as error:
            return error.errno not in _TAKEN
        return True

    def release(self, model: str, question: bytes) -> None:
        """Let other processes ask the question, which was answered or failed."""
        if self._file is None:
            return
        import fcntl

        with suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place_claim(model, question))

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _open(self) -> int:
        with self._lock:
            if self._file is None:
                self._prepare()
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            return self._file


@lru_cache(1024)
def place_claim(model: str, question: bytes) -> int:
    """The number of a claim, below 2**62. Two questions can have the same one; then one waits for the other."""
    return (int.from_bytes(hashlib.sha256(question).digest()[:8], "big") ^ _hash_model(model)) >> 2


@cache
def _hash_model(model: str) -> int:
    return int.from_bytes(hashlib.sha256(model.encode()).digest()[:8], "big")


CHAT_MODELS_FILE = "chat_models.sqlite"
_COUNTS = ("calls", "seconds", "first", "later", "never", "repeats")
_TABLE = """
CREATE TABLE IF NOT EXISTS asked (
    model TEXT NOT NULL, url TEXT NOT NULL, calls INTEGER NOT NULL, seconds REAL NOT NULL, first INTEGER NOT NULL,
    later INTEGER NOT NULL, never INTEGER NOT NULL, repeats INTEGER NOT NULL, PRIMARY KEY (model, url)
)
"""
_ADD = f"""
INSERT INTO asked (model, url, {", ".join(_COUNTS)}) VALUES (?, ?, {", ".join("?" for _ in _COUNTS)})
ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)}
"""


def add_asked(store: Path, models: Iterable[AskedModel]) -> bool:
    """Add to what the store remembers; returns False if the file cannot be written."""
    rows = [
        (one.model, one.url, one.calls, one.seconds, *(getattr(one.replies, name) for name in _COUNTS[2:]))
        for one in models
    ]
    if not rows:
        return True
    try:
        path = prepare(store, REPLIES_FOLDER) / CHAT_MODELS_FILE
        with closing(sqlite3.connect(path, timeout=PATIENCE)) as connection, connection:
            connection.execute(_TABLE)
            connection.executemany(_ADD, rows)
    except (OSError, sqlite3.Error):
        return False
    return True


def list_asked(store: Path) -> list[AskedModel]:
    """The chat models that the store remembers, by name; an empty list if there are none or the file is damaged."""
    path = store / REPLIES_FOLDER / CHAT_MODELS_FILE
    if not path.is_file():
        return []
    query = f"SELECT model, url, {', '.join(_COUNTS)} FROM asked ORDER BY model, url"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=PATIENCE)) as connection:
            rows = connection.execute(query).fetchall()
    except sqlite3.Error:
        return []
    return [
        AskedModel(model, url, calls, seconds, ReplyCounts(*counts)) for model, url, calls, seconds, *counts in rows
    ]
