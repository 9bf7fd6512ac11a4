"""`history label`, `history import` and `history prune`: the commands that change the history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rageval_spec.commands.history.choosing import find_id, read_moment
from rageval_spec.commands.history.listing import SHOWN_ID
from rageval_spec.errors import UsageError
from rageval_spec.history import folder as saved
from rageval_spec.history import pending
from rageval_spec.history.commit import Checkout
from rageval_spec.history.database import History, StoredRecord
from rageval_spec.history.recording import Circumstances, build_record
from rageval_spec.wording import count_noun

_DIRTY = "-dirty"


def label_record(history: History, record: str, label: str) -> str:
    """Give a record a label, and say so."""
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
    """Add results folders, folders of labels, and records that could not be sent; say how many are new.

    Raises:
        UsageError: a path is neither of these.
        DataError: a file cannot be read.
    """
    records = [_read(path) for path in paths]
    known = {entry.id for entry in history.entries()}
    history.add(records)
    added = {str(record.row["id"]) for record in records} - known
    there = len({str(record.row["id"]) for record in records}) - len(added)
    rest = f"; {there} {'was' if there == 1 else 'were'} there already" if there else ""
    return f"imported {count_noun(len(added), 'record')}{rest}\n"


def _read(path: Path) -> StoredRecord:
    if path.is_file() and path.suffix == ".json" and path.name != saved.RESULTS:
        return pending.read(path)
    folder = path.parent if path.is_file() else path
    if not saved.holds_results(folder):
        raise UsageError(f"{path} is neither a results folder nor a record that could not be sent")
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
