"""`history label`, `history import` and `history prune`: the commands that change the history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.commands.history.choosing import find_id, read_moment
from rageval_spec.commands.history.listing import SHOWN_ID
from rageval_spec.errors import UsageError
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.history.database import History, StoredRecord


_DIRTY = "-dirty"
_SQLITE = b"SQLite format 3\0"
"""How every SQLite file begins."""


def label_record(history: History, record: str, label: str) -> str:
    """Give a record a label, and say so.

    Raises:
        UsageError: there is no such record, or it cannot be a label.
    """
    from rageval_spec.history.finding import check_label

    check_label(label)
    record_id = find_id(history, record)
    history.set_label(record_id, label)
    return f"{label}: record {record_id[:SHOWN_ID]}\n"


def remove_label(history: History, label: str) -> str:
    """Remove a label, and say so.

    Raises:
        UsageError: there is no such label.
    """
    if not history.remove_label(label):
        raise UsageError(f"the history {history.connection.name} has no label '{label}'")
    return f"removed the label {label}; its record stays\n"


def import_records(history: History, paths: Sequence[Path]) -> str:
    """Add results folders, folders of labels, records that could not be sent, and the records of other histories.

    All of them are added, or none. Says how many are new.

    Raises:
        UsageError: a path is none of these.
        DataError: a file cannot be read.
        HistoryError: another history cannot be read.
    """
    found: set[str] = set()

    def read_all() -> Iterator[StoredRecord]:
        for path in paths:
            for record in _read_history(path) if _is_history(path) else [_read(path)]:
                found.add(str(record.row["id"]))
                yield record

    added = history.add(read_all())
    there = len(found) - added
    rest = f"; {there} {'was' if there == 1 else 'were'} there already" if there else ""
    return f"imported {count_noun(added, 'record')}{rest}\n"


def _is_history(path: Path) -> bool:
    """Whether a path is a SQLite file."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _read_history(path: Path) -> Iterator[StoredRecord]:
    from rageval_spec.history.opening import open_history

    with open_history(path, create=False) as other:
        yield from other.copy()


def _read(path: Path) -> StoredRecord:
    from rageval_spec.history import folder as saved
    from rageval_spec.history import pending
    from rageval_spec.history.commit import Checkout
    from rageval_spec.history.recording import Circumstances, build_record

    if path.is_file() and path.suffix == ".json" and path.name != saved.RESULTS:
        return pending.read(path)
    folder = path.parent if path.is_file() else path
    if not saved.holds_results(folder):
        raise UsageError(f"{path} is neither a results folder, nor a record that could not be sent, nor a history")
    record = saved.load_record(folder)
    written = datetime.fromtimestamp((folder / saved.RESULTS).stat().st_mtime, UTC)
    commit = record.commit or ""
    checkout = Checkout(commit.removesuffix(_DIRTY) or None, None, commit.endswith(_DIRTY) if commit else None)
    labels = () if record.label is None else (record.label,)
    return build_record(record.evaluation, Circumstances(record.id, record.time or written, checkout, labels=labels))


def prune_records(history: History, keep: str, *, dry_run: bool) -> str:
    """Remove the records that are older than `keep`, except those with a label, and list them."""
    removed = history.prune(read_moment(keep, "--keep"), is_dry=dry_run)
    verb = "would remove" if dry_run else "removed"
    lines = [*(f"  {record_id[:SHOWN_ID]}" for record_id in removed), f"{verb} {count_noun(len(removed), 'record')}"]
    return "".join(f"{line}\n" for line in lines)
