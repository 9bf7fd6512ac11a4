"""The store: keeps tables, replies and digests of input files between evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rageval_spec.store.disk import prepare
from rageval_spec.store.file_digests import FileDigests, digest_path
from rageval_spec.store.memory import MemoryStore
from rageval_spec.store.tables import Tables

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.plugin import Answers, InputFile
    from rageval_spec.store.replies import FileAnswers

    Record = Mapping[str, Any]


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


class FolderStore(Tables):
    """A store in a folder on the disk, which several processes can use."""

    def __init__(self, folder: Path) -> None:
        """The folder is created when something is first kept."""
        super().__init__(folder)
        self.folder = folder
        self._digests = FileDigests(folder)
        self._answers: FileAnswers | None = None

    @property
    def answers(self) -> Answers:
        """The answers in the SQLite file of the folder."""
        if self._answers is None:
            from rageval_spec.store.replies import FOLDER, FileAnswers

            self._answers = FileAnswers(self.folder / FOLDER, lambda: prepare(self.folder, FOLDER))
        return self._answers

    def fingerprint(self, file: InputFile) -> str:
        """As `Store.fingerprint`; a file is read again only if its size, times or inode changed."""
        return digest_path(file.path, self._digests.digest)

    def close(self) -> None:
        """Close the file of answers. It is opened again when it is needed."""
        if self._answers is not None:
            self._answers.close()


def open_store(folder: Path | None) -> Store:
    """Open the store in a folder; None gives a store in memory."""
    return MemoryStore() if folder is None else FolderStore(folder)
