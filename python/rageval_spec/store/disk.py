"""Writes files completely or not at all, and computes the sha256 of input files.

Unfinished files of killed processes are removed. An input file is read again only if it has changed. SQLite databases
are switched to write-ahead mode, in which readers and one writer do not wait for each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError, RagevalError

if TYPE_CHECKING:
    import sqlite3

ABANDONED_AFTER = 3600.0
"""Seconds after which an unfinished file is assumed to come from a killed process."""

_LOCK = "lock"
CACHE = "RAGEVAL_CACHE"


def find_cache() -> Path:
    """The user's cache folder: `RAGEVAL_CACHE`, else `$XDG_CACHE_HOME/rageval-spec`, else `~/.cache/rageval-spec`."""
    if named := os.environ.get(CACHE):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rageval-spec"


def write_flushed(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def sync(path: Path) -> None:
    """Wait until the content of a file that was written elsewhere is on the disk."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def sweep(unfinished: Iterable[Path]) -> None:
    """Remove the files and folders that killed processes left behind.

    A folder that a process holds stays. Of other files and folders, those younger than `ABANDONED_AFTER` stay, because
    another process could still be writing them.
    """
    for entry in unfinished:
        try:
            if _is_abandoned(entry):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        except OSError:
            continue  # another process swept it first


def _is_abandoned(entry: Path) -> bool:
    if not (entry / _LOCK).is_file():
        return entry.stat().st_mtime < time.time() - ABANDONED_AFTER
    import fcntl

    with (entry / _LOCK).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # raises an OSError while a process holds it
    return True


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Keep a folder from being swept until the block or the process ends; after that, it is swept at once.

    Where files cannot be locked, the folder is swept when it is old.
    """
    if os.name == "nt":
        yield
        return
    import fcntl

    unlocked = folder / f".{_LOCK}"
    with unlocked.open("wb") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unlocked.rename(folder / _LOCK)  # nobody sees the file without its lock
        yield


def write_atomically(
    path: Path, content: bytes, temporary_folder: Path | None = None, confirm: Callable[[], None] = lambda: None
) -> None:
    """Write a file under a temporary name, flush it to the disk and rename it, so that `path` is never half a file.

    `confirm` is called directly before the renaming; if it raises, `path` stays as it is.
    """
    folder = temporary_folder or path.parent
    sweep(folder.glob(f".{path.name}.*.part"))
    temporary = folder / f".{path.name}.{uuid.uuid4().hex}.part"
    try:
        write_flushed(temporary, content)
        confirm()
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def write_or_explain(path: Path, content: bytes, complaint: str, kind: type[RagevalError] = RagevalError) -> Path:
    """Write a file completely or not at all, and the folders above it; returns its path.

    Raises:
        RagevalError: it cannot be written; the error is of this `kind`, and begins with the complaint.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        raise kind(f"{complaint}: {error.strerror or error}") from error
    return path


def flush_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


TEMPORARY_FOLDER = "temporary"


def prepare(store: Path, name: str) -> Path:
    """Create a folder inside the store's folder, with a `.gitignore` that excludes the whole store."""
    folder = store / name
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (store / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder


DIGESTS_FOLDER = "fingerprints"
INDEXES_FOLDER = "indexes"
SETTLED_AFTER = 2.0
"""Seconds that a file must be unchanged before its digest is kept: a change within one clock tick is invisible."""


class FileDigests:
    """The digests of files, kept in a store. A file is read again only if its size, times or inode changed."""

    def __init__(self, store: Path) -> None:
        """`store` is the store's folder; it is created when the first digest is kept."""
        self._store = store

    def digest(self, path: Path) -> str:
        """The sha256 of a file's bytes, in hex."""
        identity = _identify(path)
        name = f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()}.json"
        record = self._store / DIGESTS_FOLDER / name
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(record.read_bytes())
            if kept["identity"] == identity:
                return str(kept["sha256"])
        digest = digest_file(path)
        if identity == _identify(path) and time.time() - max(identity[1:3]) / 1e9 > SETTLED_AFTER:
            content = {"path": str(path), "identity": identity, "sha256": digest}
            with suppress(OSError):  # without the cache, digests take longer but stay correct
                prepare(self._store, DIGESTS_FOLDER)
                write_atomically(record, json.dumps(content).encode(), prepare(self._store, TEMPORARY_FOLDER))
        return digest


def digest_file(path: Path) -> str:
    """The sha256 of a file's bytes, in hex; raises `DataError` if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def digest_path(path: Path, digest: Callable[[Path], str] = digest_file) -> str:
    """The sha256 of a file's content, or of a folder's file names and contents; `digest` reads one file."""
    if not path.is_dir():
        return digest(path)
    whole = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        whole.update(f"{file.relative_to(path).as_posix()}\0{digest(file)}\n".encode())
    return whole.hexdigest()


def _identify(path: Path) -> list[int]:
    try:
        stat = path.stat()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev]


def enable_write_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Switch a database to write-ahead mode, and wait up to `patience` seconds for another process that does the same.

    SQLite's own timeout does not cover this switch.
    """
    import sqlite3

    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # The low byte is the primary error code; the others specify it.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file that a node names.

    Attributes:
        key: the path of YAML keys and indexes inside the node that leads to the file's name.
        hint: what a message adds if the file is missing, such as the files that do exist.
    """

    path: Path
    key: tuple[str | int, ...]
    kind: Literal["file", "folder"] = "file"
    hint: str | None = None


def digest_content(file: InputFile) -> str:
    """The sha256 of a file's content, or of a folder's file names and contents, in hex."""
    if file.kind == "folder":
        return digest_path(file.path)
    with file.path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
