"""Keeps tables that were costly to make, and the fingerprints of input files.

A table is the folder `tables/<key>/` of Parquet partitions, named by the key of the step that made it. It is written
under a temporary name, flushed to the disk and renamed: a table is there whole or not at all, whatever is killed when.
The manifest inside holds the sha256 of each partition, so that a damaged file is noticed and computed again. Several
processes may use one store: whoever renames first wins, and equal keys mean equal tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rageval_spec.errors import DataError, RagevalError, StoreWarning
from rageval_spec.store.disk import sweep, write_flushed

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.plugin import Answers, InputFile
    from rageval_spec.store.replies import FileAnswers

    Record = Mapping[str, Any]

PARTITION_ROWS = 1_000_000
SETTLED_AFTER = 2.0
"""Seconds that a file must be unchanged before its fingerprint is kept: within a clock tick, a change is invisible."""


class Store(Protocol):
    """Where tables, models' answers and fingerprints are kept between evaluations."""

    @property
    def folder(self) -> Path | None:
        """Where it lies; None for one that ends with the process."""

    @property
    def answers(self) -> Answers:
        """Where models keep what they answer."""

    def has(self, key: str) -> bool:
        """Whether a table is there; `load` may still find it damaged."""

    def load(self, key: str) -> pl.DataFrame | None:
        """The table, or None where it is absent or damaged."""

    def save(self, key: str, table: pl.DataFrame, record: Record | None = None) -> None:
        """Keep a table under its key, and with it what is to be known of it, in JSON's types.

        A table that is there already stays, with its record.
        """

    def record(self, key: str) -> Record:
        """What is known of a table that is there; empty where nothing is."""

    def forget(self, key: str) -> None:
        """Let a table go, so that another can be kept in its place."""

    def fingerprint(self, file: InputFile) -> str:
        """The sha256 of a file's content, or of a folder's file names and contents."""

    def close(self) -> None:
        """Let go of open files; the store can be used again."""


class MemoryStore:
    """A store that ends with the process, and writes nothing."""

    def __init__(self) -> None:
        """Start empty."""
        self.folder: Path | None = None
        self._tables: dict[str, pl.DataFrame] = {}
        self._records: dict[str, Record] = {}
        self._answers: Answers | None = None
        self._fingerprints: dict[Path, str] = {}

    @property
    def answers(self) -> Answers:
        """Answers that end with the process."""
        if self._answers is None:
            from rageval_spec.store.replies import MemoryAnswers

            self._answers = MemoryAnswers()
        return self._answers

    def has(self, key: str) -> bool:
        """Whether a table is there."""
        return key in self._tables

    def load(self, key: str) -> pl.DataFrame | None:
        """The table, or None where it is absent."""
        return self._tables.get(key)

    def save(self, key: str, table: pl.DataFrame, record: Record | None = None) -> None:
        """Keep a table under its key, with its record."""
        if key not in self._tables:
            self._tables[key], self._records[key] = table, record or {}

    def record(self, key: str) -> Record:
        """What is known of a table."""
        return self._records.get(key, {})

    def forget(self, key: str) -> None:
        """Let a table go."""
        self._tables.pop(key, None)
        self._records.pop(key, None)

    def fingerprint(self, file: InputFile) -> str:
        """The sha256 of a file's content, or of a folder's file names and contents; read once a process."""
        if file.path not in self._fingerprints:
            self._fingerprints[file.path] = _fingerprint(file.path, digest_file)
        return self._fingerprints[file.path]

    def close(self) -> None:
        """Nothing is open."""


class FolderStore:
    """A store on the disk."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made when something is first kept."""
        self.folder = folder
        self._answers: FileAnswers | None = None

    @property
    def answers(self) -> Answers:
        """The file of answers in the folder."""
        if self._answers is None:
            from rageval_spec.store.replies import FileAnswers

            self._answers = FileAnswers(self.folder / "answers", lambda: self._prepare("answers"))
        return self._answers

    def has(self, key: str) -> bool:
        """Whether a table is there."""
        return self._manifest(key).is_file()

    def load(self, key: str) -> pl.DataFrame | None:
        """The table, or None where it is absent or damaged; damage is a `StoreWarning`, and the table is removed."""
        if not self.has(key):
            return None
        try:
            return _read_partitions(self._table(key))
        except Exception as error:
            if self.has(key):
                warnings.warn(f"store: {self._table(key)} is damaged and is computed again: {error}", StoreWarning, 2)
                self._discard(self._table(key))
            return None

    def record(self, key: str) -> Record:
        """What is known of a table; empty where it is absent or damaged."""
        try:
            found = json.loads(self._manifest(key).read_bytes()).get("record")
        except (OSError, ValueError, AttributeError):
            return {}
        return found if isinstance(found, dict) else {}

    def save(self, key: str, table: pl.DataFrame, record: Record | None = None) -> None:
        """Write the table whole, or not at all.

        Raises:
            RagevalError: the folder cannot be written.
        """
        try:
            temporary = self._temporary(key)
            _write_partitions(temporary, table, record or {})
            self._publish(temporary, self._table(key))
        except OSError as error:
            raise RagevalError(
                f"store: cannot write in {self.folder}: {error}; name another folder with --store, or use --no-store"
            ) from error

    def forget(self, key: str) -> None:
        """Let a table go; one that cannot be removed stays."""
        if self._table(key).is_dir():
            self._discard(self._table(key))

    def fingerprint(self, file: InputFile) -> str:
        """As `Store.fingerprint`; a file is read again only after its size, times or inode changed."""
        return _fingerprint(file.path, self._digest)

    def close(self) -> None:
        """Close the file of answers; it is opened again when it is needed."""
        if self._answers is not None:
            self._answers.close()

    def _digest(self, path: Path) -> str:
        identity = _identity(path)
        record = self.folder / "fingerprints" / f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()}.json"
        try:
            kept = json.loads(record.read_bytes())
            if kept["identity"] == identity:
                return str(kept["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        digest = digest_file(path)
        if identity == _identity(path) and _is_settled(path):
            self._keep_fingerprint(record, {"path": str(path), "identity": identity, "sha256": digest})
        return digest

    def _keep_fingerprint(self, record: Path, content: dict[str, object]) -> None:
        try:
            self._prepare("fingerprints")
            write_atomically(record, json.dumps(content).encode(), self._prepare("temporary"))
        except OSError:
            return  # a cache that cannot be written costs time, not truth

    def _table(self, key: str) -> Path:
        return self.folder / "tables" / key

    def _manifest(self, key: str) -> Path:
        return self._table(key) / "manifest.json"

    def _prepare(self, name: str) -> Path:
        folder = self.folder / name
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")
        return folder

    def _temporary(self, name: str) -> Path:
        folder = self._prepare("temporary")
        sweep(folder.iterdir())
        temporary = folder / f"{name}.{uuid.uuid4().hex}"
        temporary.mkdir()
        return temporary

    def _publish(self, temporary: Path, table: Path) -> None:
        self._prepare("tables")
        try:
            temporary.rename(table)
        except OSError:
            if not (table / "manifest.json").is_file():
                raise
            shutil.rmtree(temporary, ignore_errors=True)  # another process was first, with the same table
        _flush_folder(table.parent)

    def _discard(self, table: Path) -> None:
        try:
            aside = self._prepare("temporary") / f"{table.name}.{uuid.uuid4().hex}"
            table.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
        except OSError:
            return  # another process was first, or the store is read-only


def open_store(folder: Path | None) -> Store:
    """A store in a folder, or one in memory where it is None."""
    return MemoryStore() if folder is None else FolderStore(folder)


def digest_file(path: Path) -> str:
    """The sha256 of a file's bytes, in hex.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def write_atomically(path: Path, content: bytes, temporary_folder: Path | None = None) -> None:
    """Write a file under a temporary name, flush it to the disk and rename it: never half a file under `path`."""
    folder = temporary_folder or path.parent
    sweep(folder.glob(f".{path.name}.*.part"))
    temporary = folder / f".{path.name}.{uuid.uuid4().hex}.part"
    try:
        write_flushed(temporary, content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _fingerprint(path: Path, digest: Callable[[Path], str]) -> str:
    if not path.is_dir():
        return digest(path)
    whole = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        whole.update(f"{file.relative_to(path).as_posix()}\0{digest(file)}\n".encode())
    return whole.hexdigest()


def _identity(path: Path) -> list[int]:
    try:
        stat = path.stat()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev]


def _is_settled(path: Path) -> bool:
    stat = path.stat()
    return time.time() - max(stat.st_mtime, stat.st_ctime) > SETTLED_AFTER


def _write_partitions(folder: Path, table: pl.DataFrame, record: Record) -> None:
    entries = []
    for number, start in enumerate(range(0, max(table.height, 1), PARTITION_ROWS)):
        part = table.slice(start, PARTITION_ROWS)
        buffer = BytesIO()
        part.write_parquet(buffer)
        content = buffer.getvalue()
        name = f"part-{number:05}.parquet"
        write_flushed(folder / name, content)
        entries.append({"file": name, "rows": part.height, "sha256": hashlib.sha256(content).hexdigest()})
    manifest = {"partitions": entries, "record": dict(record)}
    write_flushed(folder / "manifest.json", json.dumps(manifest, indent=1).encode())
    _flush_folder(folder)


def _read_partitions(folder: Path) -> pl.DataFrame:
    import polars as pl

    entries: Sequence[dict[str, str]] = json.loads((folder / "manifest.json").read_bytes())["partitions"]
    return pl.concat([_read_partition(folder / entry["file"], entry["sha256"]) for entry in entries])


def _read_partition(path: Path, sha256: str) -> pl.DataFrame:
    import polars as pl

    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path.name} is not what was written")
    return pl.read_parquet(BytesIO(content))


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
