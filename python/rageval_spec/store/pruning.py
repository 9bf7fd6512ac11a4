"""Removes what is no longer needed from a store. Other processes can use the store at the same time.

A run is renamed before it is removed, so that no process reads half of it; a process that needs it retrieves it again.
Replies are removed in one transaction for each model or system. Entries that were used after they were listed stay.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from rageval_spec.errors import RagevalError
from rageval_spec.store import file_digests, replies, tables
from rageval_spec.store.disk import ABANDONED_AFTER, prepare
from rageval_spec.store.inventory import Entry, list_entries

_PATIENCE = 5.0
"""Seconds to wait for other processes before the file of replies is compacted."""


@dataclass(frozen=True)
class Rules:
    """The rules for removal. An entry is removed if any of them applies; None turns a rule off.

    Attributes:
        older_than: remove entries that were not used for this many seconds.
        max_size: remove the least recently used entries until the rest takes at most this many bytes.
        needed: remove runs and replies whose keys are not in this collection.
    """

    older_than: float | None = None
    max_size: int | None = None
    needed: Collection[str] | None = None


def choose(entries: Sequence[Entry], rules: Rules, now: float | None = None) -> list[Entry]:
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


def _is_unwanted(entry: Entry, rules: Rules, now: float) -> bool:
    if not _is_removable(entry, now):
        return False
    key = entry.key.rpartition(":")[2]  # a prefix tells the kinds of a system's answers apart
    is_unneeded = rules.needed is not None and entry.kind in ("run", "replies") and key not in rules.needed
    is_old = rules.older_than is not None and now - entry.used > rules.older_than
    return entry.kind == "unfinished" or is_unneeded or is_old


def _is_removable(entry: Entry, now: float) -> bool:
    """False for a recent unfinished file, because another process could still be writing it."""
    return entry.kind != "unfinished" or now - entry.used > ABANDONED_AFTER


def remove(store: Path, entries: Iterable[Entry]) -> list[Entry]:
    """Remove entries of a store, and return those that were removed.

    Raises:
        RagevalError: the store cannot be written.
    """
    current = {(entry.kind, entry.key): entry.used for entry in list_entries(store)}
    unused = [entry for entry in entries if current.get((entry.kind, entry.key)) == entry.used]
    try:
        for entry in unused:
            if entry.kind == "run":
                _remove_run(store, entry.key)
            elif entry.kind != "replies":
                _remove_files(_find_files(store, entry))
        _remove_replies(store / replies.FOLDER / replies.FILE, [e.key for e in unused if e.kind == "replies"])
    except (OSError, sqlite3.Error) as error:
        raise RagevalError(f"store: cannot remove from {store}: {error}") from error
    return unused


def _remove_run(store: Path, key: str) -> None:
    aside = prepare(store, "temporary") / f"{key}.{uuid.uuid4().hex}"
    with suppress(FileNotFoundError):  # another process was first
        (store / tables.FOLDER / key).rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _find_files(store: Path, entry: Entry) -> Iterator[Path]:
    if entry.kind == "digests":
        yield from (store / file_digests.FOLDER).iterdir()
    elif entry.kind == "unfinished":
        yield store / "temporary" / entry.key
    elif entry.key != replies.FILE:  # the next process that opens a damaged file of replies sets it aside
        yield store / replies.FOLDER / entry.key


def _remove_files(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


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
