"""A store in memory, for one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.store.file_digests import digest_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from rageval_spec.plugin import Answers, InputFile

    Record = Mapping[str, Any]


class MemoryStore:
    """A store in memory, which writes no files and ends with the process."""

    def __init__(self) -> None:
        """Create an empty store."""
        self.folder: Path | None = None
        self._tables: dict[str, pl.DataFrame] = {}
        self._records: dict[str, Record] = {}
        self._answers: Answers | None = None
        self._fingerprints: dict[Path, str] = {}

    @property
    def answers(self) -> Answers:
        """The answers that this process has received."""
        if self._answers is None:
            from rageval_spec.store.replies import MemoryAnswers

            self._answers = MemoryAnswers()
        return self._answers

    def has(self, key: str) -> bool:
        """Whether the store has the table."""
        return key in self._tables

    def load(self, key: str) -> pl.DataFrame | None:
        """The table, or None if it is absent."""
        return self._tables.get(key)

    def save(self, key: str, table: pl.DataFrame, record: Record | None = None) -> None:
        """Keep a table under its key, with its record, unless the store already has one."""
        if key not in self._tables:
            self._tables[key], self._records[key] = table, record or {}

    def record(self, key: str) -> Record:
        """The record that was saved with a table; empty if there is none."""
        return self._records.get(key, {})

    def forget(self, key: str) -> None:
        self._tables.pop(key, None)
        self._records.pop(key, None)

    def fingerprint(self, file: InputFile) -> str:
        """The sha256 of a file's content, or of a folder's file names and contents; each is read once a process."""
        if file.path not in self._fingerprints:
            self._fingerprints[file.path] = digest_path(file.path)
        return self._fingerprints[file.path]

    def close(self) -> None:
        """Do nothing: no file is open."""
