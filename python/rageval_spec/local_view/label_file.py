"""A file of labels to which labels are added one by one, each on the disk before it counts as saved.

The file is replaced as a whole: it is flushed under a temporary name and renamed, so that a process that is killed
leaves the file as it was or with the label, never half of it. Other processes that write it this way wait meanwhile;
what a program that knows of no lock writes into it, such as a spreadsheet, is read again before the renaming.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from rageval_spec.data.labels import Label
from rageval_spec.endpoints.http_server import Refusal
from rageval_spec.errors import DataError, describe_os_error
from rageval_spec.reading.label_files import read_label_file
from rageval_spec.review.label_import import set_label
from rageval_spec.store.disk import write_atomically

_TRIES = 5


class _ChangedError(Exception):
    """Another program wrote the file after it was read."""


class ConflictError(Refusal):
    """The file has another value than the page thinks; `current` is the label that it has, or None."""

    def __init__(self, current: Label | None) -> None:
        """With the label that the file has."""
        super().__init__(409, "This was labelled elsewhere meanwhile, so nothing was changed.")
        self.current = current


class LabelFile:
    """A CSV file of labels; it need not exist yet."""

    def __init__(self, path: Path) -> None:
        """The labels of a file, which is read anew each time, because others may change it."""
        self.path = path
        self._turn = Lock()

    def read(self) -> list[Label]:
        """All labels, in their order. Raises `DataError`: the file is not one of labels."""
        if not self.path.exists() or not self.path.stat().st_size:
            return []
        return list(read_label_file(self.path))

    def save(self, label: Label, written: str | None, expected: float | str | None) -> None:
        """Write a label, or remove it if `written` is None, and return when it is on the disk.

        Args:
            label, written: as `set_label` takes them.
            expected: the value that the file should have of the same person on the same thing; None for no label.

        Raises:
            ConflictError: the file has another one.
            DataError: the file cannot be read or written.
        """
        try:
            with self._turn, self._locked():
                for _ in range(_TRIES):
                    with suppress(_ChangedError):
                        return self._replace(label, written, expected)
        except OSError as error:
            raise DataError(f"the label was not saved: {describe_os_error(error)}") from error
        raise DataError(f"the label was not saved: another program keeps writing {self.path}; close it, and save again")

    def _replace(self, label: Label, written: str | None, expected: float | str | None) -> None:
        seen = self._take()
        before, content = set_label(label, written, self.path if seen else None)
        if (None if before is None else before.value) != expected:
            raise ConflictError(before)

        def confirm() -> None:
            if self._take() != seen:
                raise _ChangedError

        write_atomically(self.path, content, confirm=confirm)

    def _take(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait for other processes that write the same file."""
        if os.name == "nt":
            yield
            return
        import fcntl

        with self.path.with_name(f".{self.path.name}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
