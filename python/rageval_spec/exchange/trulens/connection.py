"""TruLens's SQLite file: opened read-only to read, and with a copy and one transaction to write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from rageval_spec.errors import DataError, RagevalError, UsageError

EVENTS, RECORDS, FEEDBACKS = "trulens_events", "trulens_records", "trulens_feedbacks"
DATASETS, TRUTHS = "trulens_dataset", "trulens_ground_truth"
COLUMNS: Mapping[str, Sequence[str]] = {
    EVENTS: (
        "event_id", "record", "record_attributes", "record_type", "resource_attributes", "start_timestamp", "timestamp",
        "trace",
    ),
    RECORDS: ("record_id", "app_id", "input", "output", "tags", "ts", "cost_json", "perf_json"),
    FEEDBACKS: (
        "feedback_result_id", "record_id", "feedback_definition_id", "last_ts", "status", "error", "calls_json",
        "result", "name", "cost_json", "multi_result",
    ),
    DATASETS: ("dataset_id", "dataset_json"),
    TRUTHS: ("ground_truth_id", "dataset_id", "ground_truth_json"),
}  # fmt: skip
"""The columns that are read or written, by table."""
_PATIENCE = 30.0
"""Seconds to wait while another program writes."""
COPY_SUFFIX = ".before-rageval"


@contextmanager
def open_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, which cannot be changed through this connection."""
    with _explain(path), closing(_connect(path, "ro")) as connection:
        yield connection


@contextmanager
def open_to_write(path: Path) -> Iterator[sqlite3.Connection]:
    """The database in a transaction that holds from the beginning, and is undone if the block fails."""
    with _explain(path), closing(_connect(path, "rw")) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


def copy_database(path: Path) -> Path:
    """The path of a copy of the database as it was before this program first wrote to it; the copy is made once."""
    copy = path.with_name(path.name + COPY_SUFFIX)
    if copy.exists():
        return copy
    unfinished = copy.with_name(copy.name + ".part")
    try:
        unfinished.unlink(missing_ok=True)
        with (
            _explain(path),
            closing(_connect(path, "ro")) as connection,
            closing(sqlite3.connect(unfinished)) as target,
        ):
            connection.backup(target)
        unfinished.replace(copy)
    except OSError as error:
        raise RagevalError(f"{copy}: the copy cannot be written: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return copy


def list_tables(connection: sqlite3.Connection, path: Path) -> frozenset[str]:
    """Those of the tables of `COLUMNS` that the database has."""
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    known = frozenset(found & COLUMNS.keys())
    if not known & {EVENTS, RECORDS}:
        raise DataError(f"{path}: not a database of TruLens: it has neither {EVENTS} nor {RECORDS}")
    for table in sorted(known):
        there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if missing := [column for column in COLUMNS[table] if column not in there]:
            raise DataError(
                f"{path}: the table {table} has no column {missing[0]!r}: it is of a version of TruLens that is not "
                "supported; open it with TruLens 2.16, whose migrate_database() brings it up to date"
            )
    return known


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    if path.is_dir():
        raise UsageError(f"{path}: this is a folder; name the SQLite file in it")
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=_PATIENCE)


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            hint = "another program is writing to it; try again when it has finished"
            raise DataError(f"{path}: {hint}") from error
        raise DataError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path}: not a SQLite database, or a damaged one: {error}") from error
