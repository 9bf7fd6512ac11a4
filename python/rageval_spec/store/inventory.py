"""Lists the content of a store on the disk, with its size and the time of its last use."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rageval_spec.store import file_digests, replies, tables

Kind = Literal["run", "replies", "digests", "unfinished", "damaged"]
KINDS: dict[Kind, str] = {
    "run": "runs of retrievers",
    "replies": "replies and vectors of models, answers of systems",
    "digests": "digests of input files",
    "unfinished": "unfinished files of killed processes",
    "damaged": "damaged files that were set aside",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One part of a store that can be removed on its own.

    Attributes:
        key: the key of the step that made a run, or of the model or system that replied; otherwise a file name.
        size: the size in bytes.
        used: the time of its last use, in seconds since 1970.
        count: the number of runs, replies or files.
        title: a description for people, for example `bm25 on golden`; can be empty.
    """

    kind: Kind
    key: str
    size: int
    used: float
    count: int = 1
    title: str = ""


def list_entries(store: Path) -> list[Entry]:
    """All entries of a store by kind, the last used first; an empty list if there is no store."""
    found = [*_list_runs(store), *_list_replies(store), *_list_digests(store), *_list_rest(store)]
    return sorted(found, key=lambda entry: (list(KINDS).index(entry.kind), -entry.used, entry.key))


def _list_runs(store: Path) -> Iterator[Entry]:
    for folder in _children(store / tables.FOLDER):
        manifest = folder / tables.MANIFEST
        with suppress(OSError):
            yield Entry("run", folder.name, _measure([folder]), manifest.stat().st_mtime, title=_read_title(manifest))


def _read_title(manifest: Path) -> str:
    try:
        timing = json.loads(manifest.read_bytes())["record"]["timing"]
        return f"{timing['system']} on {timing['dataset']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _list_replies(store: Path) -> Iterator[Entry]:
    """An entry for each model or system that replied. A file that cannot be read is a single "damaged" entry."""
    path = store / replies.FOLDER / replies.FILE
    if not path.is_file():
        return
    size = "sum(length(question) + length(answer))"
    count = f"sum(substr(question, 1, {len(replies.WHEN)}) <> x'{replies.WHEN.hex()}')"
    query = f"SELECT key, {count}, {size} FROM models JOIN answers ON model = id GROUP BY id"
    try:
        with closing(sqlite3.connect(path, timeout=replies.PATIENCE)) as connection:
            rows = connection.execute(query).fetchall()
    except sqlite3.Error:
        yield Entry("damaged", path.name, path.stat().st_size, path.stat().st_mtime)
        return
    for key, count, size in rows:
        yield Entry("replies", key, size, replies.last_use(path, key), count)


def _list_digests(store: Path) -> Iterator[Entry]:
    files = _children(store / file_digests.FOLDER)
    if files:
        yield Entry("digests", "", _measure(files), max(map(_read_time, files)), len(files))


def _list_rest(store: Path) -> Iterator[Entry]:
    for path in _children(store / "temporary"):
        yield Entry("unfinished", path.name, _measure([path]), _read_time(path))
    for path in _children(store / replies.FOLDER):
        if path.name.startswith(f"{replies.FILE}.damaged-"):
            yield Entry("damaged", path.name, _measure([path]), _read_time(path))


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _measure(paths: Iterable[Path]) -> int:
    """The total size of files and folders, in bytes. Files that another process removes meanwhile count as 0."""
    size = 0
    for path in paths:
        for file in path.rglob("*") if path.is_dir() else (path,):
            with suppress(OSError):
                size += file.stat().st_size if file.is_file() else 0
    return size


def _read_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
