"""Stores with content, and a way to make their files older."""

from __future__ import annotations

import os
import time
from pathlib import Path

import polars as pl

from rageval_spec.store.store import FolderStore

DAY = 86_400.0
OLD_RUN, RUN = "a1" * 32, "b2" * 32
OLD_MODEL, MODEL = "c3" * 32, "d4" * 32


def fill_store(folder: Path) -> FolderStore:
    """A store with two runs and the replies of two models, one of each last used ten days ago."""
    store = FolderStore(folder)
    for key, system in ((OLD_RUN, "old"), (RUN, "bm25")):
        table = pl.DataFrame({"query_id": ["q1"] * 100, "doc_id": "d1", "score": 1.0})
        store.save(key, table, {"timing": {"system": system, "dataset": "golden"}})
    for key in (OLD_MODEL, MODEL):
        store.answers.keep(key, {bytes([number]) * 16: b"x" * 1000 for number in range(5)})
        store.answers.find(key, [b"?"])
    store.close()
    age(folder / "tables" / OLD_RUN / "manifest.json", 10)
    age(folder / "answers" / "used" / OLD_MODEL, 10)
    return store


def age(path: Path, days: float) -> None:
    """Set a file's time to this many days ago."""
    os.utime(path, (time.time() - days * DAY,) * 2)
