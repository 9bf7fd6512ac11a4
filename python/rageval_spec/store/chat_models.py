"""What the store remembers of the chat models that were asked: how often replies could be read, and how long they took.

It is kept beside the replies, in a small SQLite file of its own. It describes the model and decides nothing, so a file
that cannot be read or written is ignored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from rageval_spec.data.reply_counts import AskedModel, ReplyCounts
from rageval_spec.store.disk import prepare
from rageval_spec.store.replies import FOLDER, PATIENCE

FILE = "chat_models.sqlite"
_COUNTS = ("calls", "seconds", "first", "later", "never", "repeats")
_TABLE = """
CREATE TABLE IF NOT EXISTS asked (
    model TEXT NOT NULL, url TEXT NOT NULL, calls INTEGER NOT NULL, seconds REAL NOT NULL, first INTEGER NOT NULL,
    later INTEGER NOT NULL, never INTEGER NOT NULL, repeats INTEGER NOT NULL, PRIMARY KEY (model, url)
)
"""
_ADD = f"""
INSERT INTO asked (model, url, {", ".join(_COUNTS)}) VALUES (?, ?, {", ".join("?" for _ in _COUNTS)})
ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)}
"""


def add_asked(store: Path, models: Iterable[AskedModel]) -> bool:
    """Add to what the store remembers; returns False if the file cannot be written."""
    rows = [
        (one.model, one.url, one.calls, one.seconds, *(getattr(one.replies, name) for name in _COUNTS[2:]))
        for one in models
    ]
    if not rows:
        return True
    try:
        path = prepare(store, FOLDER) / FILE
        with closing(sqlite3.connect(path, timeout=PATIENCE)) as connection, connection:
            connection.execute(_TABLE)
            connection.executemany(_ADD, rows)
    except (OSError, sqlite3.Error):
        return False
    return True


def list_asked(store: Path) -> list[AskedModel]:
    """The chat models that the store remembers, by name; an empty list if there are none or the file is damaged."""
    path = store / FOLDER / FILE
    if not path.is_file():
        return []
    query = f"SELECT model, url, {', '.join(_COUNTS)} FROM asked ORDER BY model, url"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=PATIENCE)) as connection:
            rows = connection.execute(query).fetchall()
    except sqlite3.Error:
        return []
    return [
        AskedModel(model, url, calls, seconds, ReplyCounts(*counts)) for model, url, calls, seconds, *counts in rows
    ]
