"""`history export`: one line for each record, with its numbers as columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any

from rageval_spec.wording import protect_cell

if TYPE_CHECKING:
    from rageval_spec.history.database import Chosen, Entry, History


_ENDS = ("low", "high")


def export_records(history: History, chosen: Chosen, form: str) -> bytes:
    """The records, oldest first, as CSV, Parquet or JSON lines.

    Each number has three columns: `dataset/system/metric`, and the ends of its interval, `dataset/system/metric low`
    and `... high`. A slice is added in brackets: `dataset/system/metric [difficulty=hard]`. A record that lacks a
    number has an empty cell there; JSON lines leave the key out.
    """
    entries = list(reversed(history.entries(chosen)))
    columns: dict[str, None] = {}
    numbers: dict[str, dict[str, float]] = {entry.id: {} for entry in entries}
    for one in history.numbers(None, chosen):
        if one.record_id not in numbers:
            continue
        name = f"{one.dataset}/{one.system}/{one.metric}{f' [{one.slice}]' if one.slice else ''}"
        for column, number in ((name, one.mean), *((f"{name} {end}", getattr(one, end)) for end in _ENDS)):
            columns[column] = None
            if number is not None:
                numbers[one.record_id][column] = number
    rows = [{**_describe(entry), **numbers[entry.id]} for entry in entries]
    if form == "jsonl":
        lines = (json.dumps({key: cell for key, cell in row.items() if cell is not None}) for row in rows)
        return "".join(f"{line}\n" for line in lines).encode()
    head = [*_COLUMNS, *sorted(columns)]
    return _write_parquet(head, rows) if form == "parquet" else _write_csv(head, rows)


_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("id", "time", "name", "labels", "commit", "branch"), "text"),
    "is_dirty": "boolean",
    **dict.fromkeys(("ci_system", "ci_run", "ci_url", "outcome", "spec_digest"), "text"),
    **dict.fromkeys(("cost", "seconds"), "number"),
}


def _describe(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "time": entry.time.isoformat(timespec="seconds"),
        "name": entry.name,
        "labels": ", ".join(entry.labels) or None,
        "commit": entry.commit,
        "branch": entry.branch,
        "is_dirty": entry.is_dirty,
        **{f"ci_{key}": entry.ci.get(key) for key in ("system", "run", "url")},
        "outcome": entry.outcome,
        "spec_digest": entry.spec_digest,
        "cost": entry.cost,
        "seconds": entry.seconds,
    }


def _write_csv(head: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(protect_cell(name) for name in head)
    for row in rows:
        cells = (row.get(name) for name in head)
        writer.writerow(protect_cell(cell) if isinstance(cell, str) else cell for cell in cells)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _write_parquet(head: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    import polars as pl

    kinds = {"text": pl.String, "boolean": pl.Boolean, "number": pl.Float64}
    columns = {
        name: pl.Series(name, [row.get(name) for row in rows], dtype=kinds[_COLUMNS.get(name, "number")])
        for name in head
    }
    buffer = BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()
