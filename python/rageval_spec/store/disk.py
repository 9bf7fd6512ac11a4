"""Writes files completely or not at all, and removes the unfinished files of killed processes."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

ABANDONED_AFTER = 3600.0
"""Seconds after which an unfinished file is assumed to come from a killed process."""


def write_flushed(path: Path, content: bytes) -> None:
    """Write a file and wait until its content is on the disk."""
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

    Those younger than `ABANDONED_AFTER` stay, because another process could still be writing them.
    """
    oldest = time.time() - ABANDONED_AFTER
    for entry in unfinished:
        try:
            if entry.stat().st_mtime >= oldest:
                continue
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        except OSError:
            continue  # another process swept it first


def write_atomically(path: Path, content: bytes, temporary_folder: Path | None = None) -> None:
    """Write a file under a temporary name, flush it to the disk and rename it, so that `path` is never half a file."""
    folder = temporary_folder or path.parent
    sweep(folder.glob(f".{path.name}.*.part"))
    temporary = folder / f".{path.name}.{uuid.uuid4().hex}.part"
    try:
        write_flushed(temporary, content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Wait until the folder's list of names is on the disk."""
    if os.name == "nt":
        return  # a folder cannot be opened there
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def prepare(store: Path, name: str) -> Path:
    """Create a folder inside the store's folder, with a `.gitignore` that excludes the whole store.

    Raises:
        OSError: the folder cannot be created.
    """
    folder = store / name
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (store / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder
