"""Keeps the records that could not be written to the history as files beside the results, until they can be sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rageval_spec.errors import DataError, RagevalError
from rageval_spec.history.database import History, StoredRecord
from rageval_spec.history.tables import RECORD_COLUMNS
from rageval_spec.store.disk import write_atomically

_PATTERN = "record-*.pending.json"
_VERSION = 1


def keep(record: StoredRecord, folder: Path) -> Path:
    """Write a record to a file in `folder`, and return its path.

    Raises:
        OSError: the file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"record-{record.row['id']}.pending.json"
    contents = {part: base64.b64encode(content).decode() for part, content in record.contents.items()}
    kept = {
        "version": _VERSION,
        "row": record.row,
        "aggregates": record.aggregates,
        "contents": contents,
        "labels": record.labels,
    }
    write_atomically(path, json.dumps(kept).encode())
    return path


def read(path: Path) -> StoredRecord:
    """Read a file that `keep` wrote.

    Raises:
        DataError: the file cannot be read, or is not such a file.
    """
    try:
        kept: Any = json.loads(path.read_bytes())
        contents = {part: base64.b64decode(content) for part, content in kept["contents"].items()}
        row = {name: kept["row"][name] for name in RECORD_COLUMNS}
        return StoredRecord(row, [tuple(one) for one in kept["aggregates"]], contents, tuple(kept["labels"]))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a record that rageval-spec kept: {error}") from error


class Sent(NamedTuple):
    """What `send` did: the number of records that it sent, and why the others still wait, a sentence for each."""

    records: int
    problems: tuple[str, ...]


def send(history: History, folders: Iterable[Path]) -> Sent:
    """Write the records kept in these folders to the history, and remove their files.

    A file that cannot be read or sent stays, and the others are sent all the same. If the process is killed before a
    file is removed, the record is sent again, and the history keeps one.
    """
    sent, problems = 0, []
    for path in sorted({path for folder in folders for path in folder.glob(_PATTERN)}):
        try:
            history.add([read(path)])
        except RagevalError as error:
            if path.exists():  # otherwise another evaluation sent it meanwhile
                problems.append(f"the record in {path} waits still: {error}")
            continue
        with suppress(OSError):
            path.unlink()
        sent += 1
    return Sent(sent, tuple(problems))
