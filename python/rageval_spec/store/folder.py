"""Where what was costly is kept between evaluations: tables, replies and the digests of input files."""

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


class FolderStore(Tables):
    """A store on the disk."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made when something is first kept."""
        super().__init__(folder)
        self.folder = folder
        self._digests = FileDigests(folder)
        self._answers: FileAnswers | None = None

    @property
    def answers(self) -> Answers:
        """The file of answers in the folder."""
        if self._answers is None:
            from rageval_spec.store.replies import FOLDER, FileAnswers

            self._answers = FileAnswers(self.folder / FOLDER, lambda: prepare(self.folder, FOLDER))
        return self._answers

    def fingerprint(self, file: InputFile) -> str:
        """As `Store.fingerprint`; a file is read again only after its size, times or inode changed."""
        return digest_path(file.path, self._digests.digest)

    def close(self) -> None:
        """Close the file of answers; it is opened again when it is needed."""
        if self._answers is not None:
            self._answers.close()


def open_store(folder: Path | None) -> Store:
    """A store in a folder, or one in memory where it is None."""
    return MemoryStore() if folder is None else FolderStore(folder)
