"""Keeps tables that were costly to compute.

A table is a folder of Parquet partitions, `tables/<key>/`, named by the key of the step that made it. It is written
under a temporary name, flushed to the disk and renamed, so it exists completely or not at all, even if the process is
killed. The manifest in the folder holds the sha256 of each partition; a damaged table is detected and computed again.
Several processes can use one store: the first to rename its table wins, and equal keys mean equal tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.errors import RagevalError, StoreWarning
from rageval_spec.store.disk import flush_folder, prepare, sweep, write_flushed

if TYPE_CHECKING:
    import polars as pl

    Record = Mapping[str, Any]

FOLDER = "tables"
MANIFEST = "manifest.json"
PARTITION_ROWS = 1_000_000


class Tables:
    """The tables of a store on the disk, each with a record that describes it."""

    def __init__(self, store: Path) -> None:
        """`store` is the store's folder; it is created when the first table is saved."""
        self._store = store

    def has(self, key: str) -> bool:
        """Whether the store has the table."""
        return self._manifest(key).is_file()

    def load(self, key: str) -> pl.DataFrame | None:
        """The table, or None if it is absent or damaged. A damaged table is removed with a `StoreWarning`."""
        if not self.has(key):
            return None
        try:
            table = _read_partitions(self._table(key))
        except Exception as error:
            if self.has(key):
                message = f"store: {self._table(key)} is damaged and will be computed again: {error}"
                warnings.warn(message, StoreWarning, 2)
                self._discard(self._table(key))
            return None
        with suppress(OSError):
            os.utime(self._manifest(key))  # records when the table was last used
        return table

    def record(self, key: str) -> Record:
        """The record of a table; empty if the table is absent or damaged."""
        try:
            found = json.loads(self._manifest(key).read_bytes()).get("record")
        except (OSError, ValueError, AttributeError):
            return {}
        return found if isinstance(found, dict) else {}

    def save(self, key: str, table: pl.DataFrame, record: Record | None = None) -> None:
        """Write the table completely, or not at all.

        Raises:
            RagevalError: the folder cannot be written.
        """
        try:
            temporary = self._temporary(key)
            _write_partitions(temporary, table, record or {})
            self._publish(temporary, self._table(key))
        except OSError as error:
            raise RagevalError(
                f"store: cannot write to {self._store}: {error}; choose another folder with --store, or use --no-store"
            ) from error

    def forget(self, key: str) -> None:
        """Remove a table, if it can be removed."""
        if self._table(key).is_dir():
            self._discard(self._table(key))

    def _table(self, key: str) -> Path:
        return self._store / FOLDER / key

    def _manifest(self, key: str) -> Path:
        return self._table(key) / MANIFEST

    def _temporary(self, name: str) -> Path:
        folder = prepare(self._store, "temporary")
        sweep(folder.iterdir())
        temporary = folder / f"{name}.{uuid.uuid4().hex}"
        temporary.mkdir()
        return temporary

    def _publish(self, temporary: Path, table: Path) -> None:
        prepare(self._store, FOLDER)
        try:
            temporary.rename(table)
        except OSError:
            if not (table / MANIFEST).is_file():
                raise
            shutil.rmtree(temporary, ignore_errors=True)  # another process was first, with the same table
        flush_folder(table.parent)

    def _discard(self, table: Path) -> None:
        try:
            aside = prepare(self._store, "temporary") / f"{table.name}.{uuid.uuid4().hex}"
            table.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
        except OSError:
            return  # another process was first, or the store is read-only


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
    write_flushed(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    flush_folder(folder)


def _read_partitions(folder: Path) -> pl.DataFrame:
    import polars as pl

    entries: Sequence[dict[str, str]] = json.loads((folder / MANIFEST).read_bytes())["partitions"]
    return pl.concat([_read_partition(folder / entry["file"], entry["sha256"]) for entry in entries])


def _read_partition(path: Path, sha256: str) -> pl.DataFrame:
    import polars as pl

    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path.name} has changed since it was written")
    return pl.read_parquet(BytesIO(content))
