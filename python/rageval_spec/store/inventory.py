"""Lists the content of a store on the disk, with size and last use, and removes what is no longer needed.

Other processes can use the store at the same time. A run is renamed before it is removed, so that no process reads
half of it; a process that needs it retrieves it again. Replies are removed in one transaction for each model or
system. Entries that were used after they were listed stay.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import RagevalError
from rageval_spec.store import replies
from rageval_spec.store.disk import ABANDONED_AFTER, DIGESTS_FOLDER, INDEXES_FOLDER, TEMPORARY_FOLDER
from rageval_spec.store.store import MANIFEST, TABLES_FOLDER, remove_table
from rageval_spec.store.vectors import VECTORS_FOLDER, count_vectors

Kind = Literal["run", "index", "replies", "vectors", "answers", "digests", "unfinished", "damaged"]
KINDS: dict[Kind, str] = {
    "run": "runs of retrievers",
    "index": "BM25 indexes of corpora",
    "replies": "replies and vectors of models",
    "vectors": "vectors of corpora",
    "answers": "answers of systems",
    "digests": "digests of input files",
    "unfinished": "unfinished files of killed processes",
    "damaged": "damaged files that were set aside",
}


_REPLIES: tuple[Kind, ...] = ("replies", "answers")
"""The kinds that are kept in the file of replies."""


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One part of a store that can be removed on its own.

    Attributes:
        key: the key of an index, of the step that made a run, or of the model or system that replied; for vectors the
            model's key and their form, `<key>-int8`; otherwise a file name.
        used: the time of its last use, in seconds since 1970.
        count: the number of runs, replies, vectors or files.
        title: a description for people, for example `bm25 on golden`; can be empty.
    """

    kind: Kind
    key: str
    size: int
    used: float
    count: int = 1
    title: str = ""


def list_entries(store: Path) -> list[StoreEntry]:
    """All entries of a store by kind, the last used first; an empty list if there is no store."""
    found = [*_list_runs(store), *_list_replies(store), *_list_vectors(store), *_list_files(store)]
    return sorted(found, key=lambda entry: (list(KINDS).index(entry.kind), -entry.used, entry.key))


def _list_runs(store: Path) -> Iterator[StoreEntry]:
    for folder in _children(store / TABLES_FOLDER):
        manifest = folder / MANIFEST
        with suppress(OSError):
            yield StoreEntry(
                "run", folder.name, _measure([folder]), manifest.stat().st_mtime, title=_read_title(manifest)
            )


def _read_title(manifest: Path) -> str:
    try:
        timing = json.loads(manifest.read_bytes())["record"]["timing"]
        return f"{timing['system']} on {timing['dataset']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _list_replies(store: Path) -> Iterator[StoreEntry]:
    """An entry for each model or system that replied. A file that cannot be read is a single "damaged" entry."""
    path = store / replies.REPLIES_FOLDER / replies.REPLIES_FILE
    if not path.is_file():
        return
    size = "sum(length(question) + length(answer))"
    count = f"sum(substr(question, 1, {len(replies.WHEN)}) <> x'{replies.WHEN.hex()}')"
    query = f"SELECT key, {count}, {size}, count(*) FROM models JOIN answers ON model = id GROUP BY id"
    try:
        with closing(sqlite3.connect(path, timeout=replies.PATIENCE)) as connection:
            rows = connection.execute(query).fetchall()
    except sqlite3.Error:
        yield StoreEntry("damaged", path.name, path.stat().st_size, path.stat().st_mtime)
        return
    for key, count, size, entries in rows:
        # Only an answer of a system is stored with the time when it was asked.
        kind: Kind = "answers" if count < entries or key.startswith(replies.UNFINISHED_PREFIX) else "replies"
        yield StoreEntry(kind, key, size, replies.last_use(path, key), count)


def _list_vectors(store: Path) -> Iterator[StoreEntry]:
    for folder in _children(store / VECTORS_FOLDER):
        used = max((_read_time(path) for path in _children(folder)), default=0.0)
        yield StoreEntry("vectors", folder.name, _measure([folder]), used, count_vectors(folder))


def _list_files(store: Path) -> Iterator[StoreEntry]:
    """Indexes, digests, and files that are no longer used."""
    for path in _children(store / INDEXES_FOLDER):
        yield StoreEntry("index", path.name, _measure([path]), _read_time(path))
    if files := _children(store / DIGESTS_FOLDER):
        yield StoreEntry("digests", "", _measure(files), max(map(_read_time, files)), len(files))
    for path in _children(store / TEMPORARY_FOLDER):
        yield StoreEntry("unfinished", path.name, _measure([path]), _read_time(path))
    for path in _children(store / replies.REPLIES_FOLDER):
        if path.name.startswith(f"{replies.REPLIES_FILE}.damaged-"):
            yield StoreEntry("damaged", path.name, _measure([path]), _read_time(path))


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
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


_PATIENCE = 5.0
"""Seconds to wait for other processes before the file of replies is compacted."""


@dataclass(frozen=True)
class Rules:
    """The rules for removal. An entry is removed if any of them applies; None turns a rule off.

    Attributes:
        older_than: remove entries that were not used for this many seconds.
        max_size: remove the least recently used entries until the rest takes at most this many bytes.
        needed: remove runs, indexes, vectors, replies and answers whose keys are not in this collection.
        answers: remove all answers of systems.
    """

    older_than: float | None = None
    max_size: int | None = None
    needed: Collection[str] | None = None
    answers: bool = False


def choose(entries: Sequence[StoreEntry], rules: Rules, now: float | None = None) -> list[StoreEntry]:
    """The entries to remove under these rules, in the order given.

    Unfinished files of killed processes are chosen after an hour, whatever the rules are.
    """
    now = time.time() if now is None else now
    chosen = {id(entry) for entry in entries if _is_unwanted(entry, rules, now)}
    if rules.max_size is not None:
        rest = sum(entry.size for entry in entries if id(entry) not in chosen)
        for entry in sorted(entries, key=lambda entry: entry.used):
            if rest <= rules.max_size:
                break
            if id(entry) not in chosen and _is_removable(entry, now):
                chosen.add(id(entry))
                rest -= entry.size
    return [entry for entry in entries if id(entry) in chosen]


def _is_unwanted(entry: StoreEntry, rules: Rules, now: float) -> bool:
    if not _is_removable(entry, now):
        return False
    key = entry.key.rpartition(":")[2]  # a prefix tells the kinds of a system's answers apart
    if entry.kind == "vectors":
        key = key.rpartition("-")[0]
    kinds = ("run", "index", "vectors", *_REPLIES)
    is_unneeded = rules.needed is not None and entry.kind in kinds and key not in rules.needed
    is_old = rules.older_than is not None and now - entry.used > rules.older_than
    return entry.kind == "unfinished" or is_unneeded or is_old or (rules.answers and entry.kind == "answers")


def _is_removable(entry: StoreEntry, now: float) -> bool:
    """False for a recent unfinished file, because another process could still be writing it."""
    return entry.kind != "unfinished" or now - entry.used > ABANDONED_AFTER


def remove(store: Path, entries: Iterable[StoreEntry]) -> list[StoreEntry]:
    """Remove entries of a store that were not used since they were listed, and return those that were removed."""
    current = {(entry.kind, entry.key): entry.used for entry in list_entries(store)}
    unused = [entry for entry in entries if current.get((entry.kind, entry.key)) == entry.used]
    try:
        for entry in unused:
            if entry.kind in ("run", "vectors"):
                with suppress(FileNotFoundError):  # another process was first
                    remove_table(store, entry.key, TABLES_FOLDER if entry.kind == "run" else VECTORS_FOLDER)
            for path in _find_files(store, entry):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
        _remove_replies(
            store / replies.REPLIES_FOLDER / replies.REPLIES_FILE, [e.key for e in unused if e.kind in _REPLIES]
        )
    except (OSError, sqlite3.Error) as error:
        raise RagevalError(f"store: cannot remove from {store}: {error}") from error
    return unused


def _find_files(store: Path, entry: StoreEntry) -> Iterator[Path]:
    if entry.kind == "digests":
        yield from (store / DIGESTS_FOLDER).iterdir()
    elif entry.kind == "index":
        yield store / INDEXES_FOLDER / entry.key
    elif entry.kind == "unfinished":
        yield store / TEMPORARY_FOLDER / entry.key
    elif entry.kind == "damaged" and entry.key != replies.REPLIES_FILE:  # that one is set aside when it is opened
        yield store / replies.REPLIES_FOLDER / entry.key


def _remove_replies(path: Path, keys: Sequence[str]) -> None:
    """Remove the replies but not their keys, because another process could be about to add a reply to one of them."""
    if not keys:
        return
    with closing(sqlite3.connect(path, timeout=replies.PATIENCE, isolation_level=None)) as connection:
        for key in keys:
            connection.execute("DELETE FROM answers WHERE model = (SELECT id FROM models WHERE key = ?)", (key,))
        connection.execute(f"PRAGMA busy_timeout = {int(_PATIENCE * 1000)}")
        with suppress(sqlite3.OperationalError):  # other processes read meanwhile: later replies will reuse the space
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
