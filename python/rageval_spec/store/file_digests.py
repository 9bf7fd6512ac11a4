"""Computes the sha256 of input files, and reads a file again only if it has changed."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from rageval_spec.errors import DataError
from rageval_spec.store.disk import prepare, write_atomically

FOLDER = "fingerprints"
SETTLED_AFTER = 2.0
"""Seconds that a file must be unchanged before its digest is kept: a change within one clock tick is invisible."""


class FileDigests:
    """The digests of files, kept in a store. A file is read again only if its size, times or inode changed."""

    def __init__(self, store: Path) -> None:
        """`store` is the store's folder; it is created when the first digest is kept."""
        self._store = store

    def digest(self, path: Path) -> str:
        """The sha256 of a file's bytes, in hex.

        Raises:
            DataError: the file cannot be read.
        """
        identity = _identity(path)
        name = f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()}.json"
        record = self._store / FOLDER / name
        try:
            kept = json.loads(record.read_bytes())
            if kept["identity"] == identity:
                return str(kept["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        digest = digest_file(path)
        if identity == _identity(path) and _is_settled(path):
            self._keep(record, {"path": str(path), "identity": identity, "sha256": digest})
        return digest

    def _keep(self, record: Path, content: dict[str, object]) -> None:
        try:
            prepare(self._store, FOLDER)
            write_atomically(record, json.dumps(content).encode(), prepare(self._store, "temporary"))
        except OSError:
            return  # without the cache, digests take longer but stay correct


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


def digest_path(path: Path, digest: Callable[[Path], str] = digest_file) -> str:
    """The sha256 of a file's content, or of a folder's file names and contents; `digest` reads one file."""
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
