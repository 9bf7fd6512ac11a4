"""Labels from tables (CSV, TSV, JSON, Parquet, Excel), Label Studio and review pages: a row for each judgement."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError
from rageval_spec.reading.files import format_of
from rageval_spec.reading.label_studio import flatten_tasks, is_task
from rageval_spec.reading.mapping import guess_names, list_names
from rageval_spec.reading.part_columns import read_parts, require_columns
from rageval_spec.reading.review_files import flatten_review, is_review_file
from rageval_spec.reading.rows import read_rows
from rageval_spec.reading.spreadsheet import SUFFIXES, read_sheet

Form: TypeAlias = Literal["csv", "json", "xlsx", "label_studio"]
Rows: TypeAlias = list[tuple[str, dict[str, Any]]]

KNOWN_AS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "id", "qid", "question_id", "item", "sample"),
    "value": ("value", "label", "rating", "score", "grade", "verdict"),
    "annotator": ("annotator", "rater", "reviewer", "labeler", "labeller", "worker", "user"),
    "metric": ("metric", "criterion", "aspect"),
    "dataset": ("dataset",),
    "system": ("system", "model"),
    "answer": ("answer_digest",),
    "claim": ("claim",),
    "time": ("time", "created_at", "timestamp"),
    "comment": ("comment", "note"),
    "reason": ("reason",),
    "probability": ("probability", "selection_probability"),
    "adjudicated": ("adjudicated", "is_adjudicated"),
    "saw_judge": ("saw_judge",),
}
"""The columns that each part of a label is read from: the first that a file has."""
SETTING = "columns: {{{part}: {name}}}"
"""How a message shows a column to be named in a spec; it has the fields `part` and `name`."""
_NEEDED = ("query_id", "value")
_YES_NO: Mapping[str, float] = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


def read_columns(columns: Sequence[str]) -> dict[str, str]:
    """The columns that a command line names as `part=name`.

    Raises:
        UsageError: there is no such part, or no name.
    """
    return read_parts(columns, KNOWN_AS, "a label", "value=rating")


def read_labels(paths: Sequence[Path], columns: Mapping[str, str] | None = None) -> list[Label]:
    """The labels of all files, in their order. Rows without a value are skipped: nobody judged them yet.

    Args:
        paths: CSV, TSV, JSON, JSON lines or Parquet files, plain, `.gz` or `.zst`; Excel workbooks; JSON exports of
            Label Studio.
        columns: the file's column for a part of a label, where it is not among `KNOWN_AS`.

    Raises:
        DataError: a file cannot be read or has no labels; a column is missing; a person judged one item twice.
    """
    labels: list[Label] = []
    for path in paths:
        labels += read_label_file(path, columns)
    refuse_duplicates(labels)
    return labels


def read_label_file(
    path: Path,
    columns: Mapping[str, str] | None = None,
    form: Form | None = None,
    *,
    sheet: str | None = None,
    separator: str | None = None,
    setting: str = "--column {part}={name}",
) -> list[Label]:
    """The labels of one file, in its order.

    Args:
        path: the file.
        columns: the file's column for a part of a label, where it is not among `KNOWN_AS`.
        form: the file's format; by default what its name says. A JSON file may be an export of Label Studio, or
            what a review page saved.
        sheet: the sheet of a workbook; by default the first.
        separator: what separates the fields of a CSV file; by default a comma, or a tab if the name ends in `.tsv`.
        setting: how a message shows a column to be named; it has the fields `part` and `name`.

    Raises:
        DataError: the file cannot be read or has no labels; a column is missing.
    """
    rows = _read_rows(path, form, sheet, separator)
    names = _find_columns(path, [*dict.fromkeys(name for _, row in rows for name in row)], columns or {}, setting)
    values = ((row, place, _read_value(row.get(names["value"]), place)) for place, row in rows)
    labels = [_make(row, names, value, place) for row, place, value in values if value is not None]
    if not labels:
        raise DataError(f"{path}: no row has a value, so there are no labels")
    return labels


def _read_rows(path: Path, form: Form | None, sheet: str | None, separator: str | None) -> Rows:
    form = form or ("xlsx" if format_of(path) in SUFFIXES else None)
    if form == "xlsx":
        return [*read_sheet(path, sheet)]
    rows = [*read_rows(path, "json" if form == "label_studio" else form, separator)]
    if form == "label_studio" or (form is None and rows and is_task(rows[0][1])):
        return [*flatten_tasks(rows)]
    if form in (None, "json") and rows and is_review_file(rows[0][1]):
        return [*flatten_review(rows)]
    return rows


def _find_columns(path: Path, present: Sequence[str], columns: Mapping[str, str], setting: str) -> dict[str, str]:
    require_columns(path, columns, present)
    known = {
        part: next(name for name in names if name in present)
        for part, names in KNOWN_AS.items()
        if any(name in present for name in names)
    }
    absent = next((part for part in _NEEDED if part not in known and part not in columns), None)
    if absent is not None:
        raise DataError(_explain_absence(path, absent, present, setting))
    return {**known, **columns}


def _explain_absence(path: Path, part: str, present: Sequence[str], setting: str) -> str:
    if "row" in present and any(name.endswith("]") for name in present):
        return (
            f"{path}: this is a form of 'review select', not a file of labels; import it first: rageval-spec review "
            f"import {shlex.quote(str(path))} -o labels.csv"
        )
    taken = {name for names in KNOWN_AS.values() for name in names}
    free = [name for name in present if name not in taken]
    guess = guess_names([part], free).get(part, free[0] if free else "COLUMN")
    known = " or ".join(f"'{name}'" for name in KNOWN_AS[part][:2])
    return (
        f"{path}: no column has the {part.replace('_', ' ')} (it is read from {known}, among others); the columns are "
        f"{list_names(present)}. Name it: {setting.format(part=part, name=guess)}"
    )


def _make(row: Mapping[str, Any], names: Mapping[str, str], value: float | str, place: str) -> Label:
    def text(part: str) -> str:
        found = row.get(names[part]) if part in names else None
        return "" if found is None else _write_text(found)

    query_id, claim = text("query_id"), text("claim")
    if not query_id:
        raise DataError(f"{place}: the label has a value and no {names['query_id']}")
    if claim and not claim.isdecimal():
        raise DataError(f"{place}: {names['claim']} is '{claim}'; a claim is a number from 0")
    parts = ("metric", "annotator", "dataset", "system", "answer", "time", "comment", "reason")
    return Label(
        query_id=query_id,
        value=value,
        claim=int(claim) if claim else None,
        probability=_read_probability(text("probability"), place),
        place=place,
        adjudicated=_read_mark(text("adjudicated"), names.get("adjudicated", ""), place),
        saw_judge=_read_mark(text("saw_judge"), names.get("saw_judge", ""), place),
        is_yes_no=_is_yes_no(row.get(names["value"])),
        **{part: text(part) for part in parts},
    )


def _read_probability(text: str, place: str) -> float | None:
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= 1:
        raise DataError(
            f"{place}: the probability is '{text}'; it must be above 0 and at most 1. It says how likely the answer "
            "was to be chosen for labelling; rename the column if it means something else"
        )
    return found


def _write_text(found: object) -> str:
    """A field as text. Workbooks hold whole numbers as floats, and an id of 12 must not become `12.0`."""
    return str(int(found) if isinstance(found, float) and found.is_integer() else found).strip()


def _read_mark(text: str, name: str, place: str) -> bool:
    mark = {"": 0.0, "0": 0.0, "1": 1.0, **_YES_NO}.get(text.casefold())
    if mark is None:
        raise DataError(f"{place}: {name} is '{text}'; write yes or no")
    return bool(mark)


def _is_yes_no(found: object) -> bool:
    return isinstance(found, bool) or (isinstance(found, str) and found.strip().casefold() in _YES_NO)


def _read_value(found: object, place: str) -> float | str | None:
    """A number, a class, or None for an empty field."""
    if isinstance(found, bool):
        return float(found)
    if found is None or (isinstance(found, str) and not found.strip()):
        return None
    if not isinstance(found, str | int | float):
        raise DataError(f"{place}: the value is {type(found).__name__}; it must be a number or a text")
    text = str(found).strip()
    try:
        number = _YES_NO.get(text.casefold(), None)
        number = float(text) if number is None else number
    except ValueError:
        return text
    if not math.isfinite(number):
        raise DataError(f"{place}: the value is {text}; it must be a finite number or the name of a class")
    return number


def refuse_duplicates(labels: Sequence[Label]) -> None:
    """Make sure that each person judged each item once on each criterion, and that it was adjudicated at most once.

    Raises:
        DataError: a label is there twice; the message has both places.
    """
    first: dict[tuple[object, ...], Label] = {}
    for label in labels:
        who = None if label.adjudicated else label.annotator
        known = first.setdefault((label.item, label.metric, who), label)
        if known is not label:
            what = f"{label.query_id} on {label.metric}" if label.metric else label.query_id
            said = f"'{who}' judged {what}" if who else f"the same annotator judged {what}"
            said = f"{what} was adjudicated" if label.adjudicated else said
            raise DataError(f"{label.place}: {said} already at {known.place}; keep one of the two")
