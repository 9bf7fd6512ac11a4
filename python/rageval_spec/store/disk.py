"""Files that are on the disk whole or not at all, and what killed processes left of those that were not finished."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

ABANDONED_AFTER = 3600.0
"""Seconds after which something unfinished is taken for what a killed process left behind."""


def write_flushed(path: Path, content: bytes) -> None:
    """Write a file; when it returns, the content is on the disk."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def sweep(unfinished: Iterable[Path]) -> None:
    """Remove files and folders that killed processes left behind; younger ones may be another process's work."""
    oldest = time.time() - ABANDONED_AFTER
    for entry in unfinished:
        try:
            if entry.stat().st_mtime >= oldest:
                continue
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        except OSError:
            continue  # another process swept it first
