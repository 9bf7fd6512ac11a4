"""The store: keeps tables, replies and digests of input files between evaluations, on disk or in memory.

A table that was costly to compute is a folder of Parquet partitions, `tables/<key>/`, named by the key of the step
that made it. It is written under a temporary name, flushed to the disk and renamed, so it exists completely or not at
all, even if the process is killed. The manifest in the folder holds the sha256 of each partition; a damaged table is
detected and computed again. Several processes can use one store: the first to rename its table wins, and equal keys
mean equal tables. The vectors of corpora are in `vectors/` (`store/vectors.py`).

A store in memory is for one process.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Protocol
from weakref import finalize

from rageval_spec.errors import RagevalError, StoreWarning, UsageError
from rageval_spec.libraries import pl
from rageval_spec.store.disk import (
    TEMPORARY_FOLDER,
    FileDigests,
    InputFile,
    digest_path,
    flush_folder,
    prepare,
    sweep,
    write_flushed,
)

if TYPE_CHECKING:
    from rageval_spec.store.replies import FileAnswers
    from rageval_spec.store.vectors import VectorFile, VectorForm

    Record = Mapping[str, Any]


class Answers(Protocol):
    """Earlier answers of models, stored the moment they arrive; keys are digests of a question's content."""

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """The stored answers to a model's questions, by digest; questions without one are missing."""

    def has_any(self, model: str) -> bool:
        """Whether any answer of a model is stored."""

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Store answers, which then outlive the process. Raises `RagevalError` if they cannot be written."""

    def drop(self, model: str, questions: Sequence[bytes]) -> None:
        """Remove the answers to a model's questions, as far as there are any."""

    def claim(self, model: str, question: bytes) -> bool:
        """Whether this process may ask a question now; False while another process with the same store is asking it."""

    def release(self, model: str, question: bytes) -> None:
        """End a claim, because the question was answered or failed."""

    def open_vectors(self, model: str, form: VectorForm) -> VectorFile:
        """The file of a model's vectors in that form; it ends with the process if answers do."""


class MemoryAnswers:
    """Answers in memory, which end with the process. No other process shares them, so every claim is granted."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[bytes, bytes]] = {}
        self._vectors: dict[tuple[str, VectorForm], VectorFile] = {}

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        kept = self._answers.get(model, {})
        return {question: kept[question] for question in questions if question in kept}

    def has_any(self, model: str) -> bool:
        return bool(self._answers.get(model))

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        self._answers.setdefault(model, {}).update(answers)

    def drop(self, model: str, questions: Sequence[bytes]) -> None:
        kept = self._answers.get(model, {})
        for question in questions:
            kept.pop(question, None)

    def claim(self, model: str, question: bytes) -> bool:  # noqa: ARG002
        return True

    def release(self, model: str, question: bytes) -> None:
        """Do nothing: claims are not recorded."""

    def open_vectors(self, model: str, form: VectorForm) -> VectorFile:
        """A file in a temporary folder, because vectors can be larger than memory."""
        from rageval_spec.store.vectors import VectorFile

        if (model, form) not in self._vectors:
            folder = Path(mkdtemp(prefix="rageval-"))
            finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._vectors[model, form] = VectorFile(folder / "vectors", form, nullcontext)
        return self._vectors[model, form]


class NoAnswers(MemoryAnswers):
    """An `Answers` that stores no answers and lets every question be asked."""

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Drop the answers."""


class Store(Protocol):
    """Keeps tables, the replies of models and the digests of files between evaluations."""

    @property
    def folder(self) -> Path | None:
        """The store's folder; None for a store in memory."""

    @property
    def answers(self) -> Answers:
        """The replies of models and the answers of systems."""

    def has(self, key: str) -> bool:
        """Whether the store has the table. It can still turn out to be damaged when it is loaded."""

    def load(self, key: str) -> pl.DataFrame | None:
        """The table, or None if it is absent or damaged."""

    def save(self, key: str, table: pl.DataFrame, record: Record | None = None) -> None:
        """Keep a table under its key, with a record (JSON types) that describes it.

        If the store already has a table under this key, it stays, with its record.
        """

    def record(self, key: str) -> Record:
        """The record that was saved with a table; empty if there is none."""

    def forget(self, key: str) -> None:
        """Remove a table, so that another one can be saved under its key."""

    def fingerprint(self, file: InputFile) -> str:
        """The sha256 of a file's content, or of a folder's file names and contents."""

    def close(self) -> None:
        """Close all open files. They are opened again when they are needed."""


class MemoryStore:
    """A store in memory, which writes no files and ends with the process."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.answers: Answers = MemoryAnswers()
        self._tables: dict[str, pl.DataFrame] = {}
        self._records: dict[str, Record] = {}
        self._fingerprints: dict[Path, str] = {}

    def has(self, key: str) -> bool:
        return key in self._tables

    def load(self, key: str) -> pl.DataFrame | None:
        return self._tables.get(key)

    def save(self, key: str, table: pl.DataFrame, record: Record | None = None) -> None:
        if key not in self._tables:
            self._tables[key], self._records[key] = table, record or {}

    def record(self, key: str) -> Record:
        return self._records.get(key, {})

    def forget(self, key: str) -> None:
        self._tables.pop(key, None)
        self._records.pop(key, None)

    def fingerprint(self, file: InputFile) -> str:
        if file.path not in self._fingerprints:
            self._fingerprints[file.path] = digest_path(file.path)
        return self._fingerprints[file.path]

    def close(self) -> None:
        """Do nothing: no file is open."""


def hold_tables(store: Store) -> MemoryStore:
    """A store with the answers of another one, whose tables are in memory: nothing that is saved in it stays."""
    held = MemoryStore()
    held.folder, held.answers = store.folder, store.answers
    return held


STORE_URL = "RAGEVAL_STORE_URL"
TABLES_FOLDER = "tables"
MANIFEST = "manifest.json"
PARTITION_ROWS = 1_000_000


class FolderStore:
    """A store in a folder on the disk, which several processes can use. It is created when something is first kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._digests = FileDigests(folder)
        self._answers: FileAnswers | None = None

    @property
    def answers(self) -> Answers:
        if self._answers is None:
            from rageval_spec.store.replies import REPLIES_FOLDER, FileAnswers

            self._answers = FileAnswers(self.folder / REPLIES_FOLDER, lambda: prepare(self.folder, REPLIES_FOLDER))
        return self._answers

    def fingerprint(self, file: InputFile) -> str:
        return digest_path(file.path, self._digests.digest)

    def close(self) -> None:
        if self._answers is not None:
            self._answers.close()

    def has(self, key: str) -> bool:
        return self._manifest(key).is_file()

    def load(self, key: str) -> pl.DataFrame | None:
        """A damaged table is removed with a `StoreWarning`."""
        if not self.has(key):
            return None
        try:
            table = _read_partitions(self._table(key))
        except Exception as error:
            if self.has(key):
                message = f"store: {self._table(key)} is damaged and will be computed again: {error}"
                warnings.warn(message, StoreWarning, 2)
                self.forget(key)
            return None
        with suppress(OSError):
            os.utime(self._manifest(key))  # records when the table was last used
        return table

    def record(self, key: str) -> Record:
        try:
            found = json.loads(self._manifest(key).read_bytes()).get("record")
        except (OSError, ValueError, AttributeError):
            return {}
        return found if isinstance(found, dict) else {}

    def save(self, key: str, table: pl.DataFrame, record: Record | None = None) -> None:
        try:
            folder = prepare(self.folder, TEMPORARY_FOLDER)
            sweep(folder.iterdir())
            temporary = folder / f"{key}.{uuid.uuid4().hex}"
            temporary.mkdir()
            _write_partitions(temporary, table, record or {})
            self._publish(temporary, self._table(key))
        except OSError as error:
            raise RagevalError(
                f"store: cannot write to {self.folder}: {error}; choose another folder with --store, or use --no-store"
            ) from error

    def forget(self, key: str) -> None:
        if self._table(key).is_dir():
            with suppress(OSError):  # another process was first, or the store is read-only
                remove_table(self.folder, key)

    def _table(self, key: str) -> Path:
        return self.folder / TABLES_FOLDER / key

    def _manifest(self, key: str) -> Path:
        return self._table(key) / MANIFEST

    def _publish(self, temporary: Path, table: Path) -> None:
        prepare(self.folder, TABLES_FOLDER)
        try:
            temporary.rename(table)
        except OSError:
            if not (table / MANIFEST).is_file():
                raise
            shutil.rmtree(temporary, ignore_errors=True)  # another process was first, with the same table
        flush_folder(table.parent)


def make_partitions(table: pl.DataFrame) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The partitions of a table: an entry of the manifest and the Parquet of each."""
    for number, start in enumerate(range(0, max(table.height, 1), PARTITION_ROWS)):
        part = table.slice(start, PARTITION_ROWS)
        buffer = BytesIO()
        part.write_parquet(buffer)
        content = buffer.getvalue()
        digest = hashlib.sha256(content).hexdigest()
        yield {"file": f"part-{number:05}.parquet", "rows": part.height, "sha256": digest}, content


def _write_partitions(folder: Path, table: pl.DataFrame, record: Record) -> None:
    entries = []
    for entry, content in make_partitions(table):
        write_flushed(folder / entry["file"], content)
        entries.append(entry)
    manifest = {"partitions": entries, "record": dict(record)}
    write_flushed(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    flush_folder(folder)


def _read_partitions(folder: Path) -> pl.DataFrame:
    parts = []
    for entry in json.loads((folder / MANIFEST).read_bytes())["partitions"]:
        content = (folder / entry["file"]).read_bytes()
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise ValueError(f"{entry['file']} has changed since it was written")
        parts.append(pl.read_parquet(BytesIO(content)))
    return pl.concat(parts)


def remove_table(store: Path, key: str, folder: str = TABLES_FOLDER) -> None:
    """Remove a table of a store, or vectors; renamed first, so that no process reads half of it. Raises `OSError`."""
    aside = prepare(store, TEMPORARY_FOLDER) / f"{key}.{uuid.uuid4().hex}"
    (store / folder / key).rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def open_store(folder: Path | None) -> Store:
    """Open the store in a folder; None gives a store in memory.

    If `RAGEVAL_STORE_URL` names a database, tables and replies are there. Raises `UsageError` if it is no database.
    """
    if folder is None:
        return MemoryStore()
    if str(folder).startswith(("postgresql:", "postgres:", "s3:")):
        told = "--store names a folder; a store in PostgreSQL is named by RAGEVAL_STORE_URL"
        raise UsageError(f"{told}=postgresql://user@host/database")
    url = os.environ.get(STORE_URL, "")
    if not url:
        return FolderStore(folder)
    if not url.startswith(("postgresql://", "postgres://")):
        raise UsageError(f"{STORE_URL} names no PostgreSQL database; write postgresql://user@host/database")
    from rageval_spec.store.postgres import PostgresStore

    return PostgresStore(folder, url)
