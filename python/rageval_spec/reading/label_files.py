"""Reads labels that people gave, from tables, Label Studio and review pages.

A table (CSV, TSV, JSON, Parquet, Excel) has a row for each judgement. Label Studio's JSON export has tasks with the
annotations that people made. The file that a review page saves has the labels of one person on one sheet.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rageval_spec.data.labels import Label
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.formats.workbooks import read_workbook_rows
from rageval_spec.reading.missing_columns import guess_names
from rageval_spec.reading.rows import read_rows, row_format_of
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.wording import list_choices

Form: TypeAlias = Literal["csv", "json", "xlsx", "label_studio"]
Rows: TypeAlias = list[tuple[str, dict[str, Any]]]

LABEL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "id", "qid", "question_id", "item", "sample", "query-id"),
    "value": ("value", "label", "rating", "score", "grade", "verdict", "relevance"),
    "annotator": ("annotator", "rater", "reviewer", "labeler", "labeller", "worker", "user"),
    "metric": ("metric", "criterion", "aspect"),
    "dataset": ("dataset",),
    "system": ("system", "model"),
    "answer": ("answer_digest",),
    "claim": ("claim",),
    "document": ("doc_id", "document_id", "corpus-id", "docid"),
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
_NEEDED_FOR_LABELS = ("query_id", "value")
_YES_NO: Mapping[str, float] = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


def read_columns(columns: Sequence[str]) -> dict[str, str]:
    """The columns that a command line names as `part=name`. Raises UsageError: there is no such part, or no name."""
    named: dict[str, str] = {}
    for column in columns:
        part, equals, name = column.partition("=")
        if not equals or not name:
            raise UsageError(f"--column {column}: write PART=NAME, such as value=rating")
        if part not in LABEL_COLUMNS:
            hint = suggest(part, [*LABEL_COLUMNS]) or f"write one of {', '.join(LABEL_COLUMNS)}"
            raise UsageError(f"--column {column}: a label has no '{part}'; {hint}")
        named[part] = name
    return named


def read_labels(paths: Sequence[Path], columns: Mapping[str, str] | None = None) -> list[Label]:
    """The labels of all files, in their order. Rows without a value are skipped: nobody judged them yet.

    `columns` names a file's column for a part of a label, where it is not among `LABEL_COLUMNS`. Raises DataError: a
    file cannot be read or has no labels; a column is missing; a person judged one item twice.
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
    """The labels of one file, in its order; a JSON file may be an export of Label Studio, or what a review page saved.

    `columns` names the file's column for a part of a label, where it is not among `LABEL_COLUMNS`; `setting`, with the
    fields `part` and `name`, is how a message shows such a column. Raises DataError: the file cannot be read or has no
    labels; a column is missing.
    """
    return make_labels(read_label_rows(path, form, sheet, separator), path, columns, setting)


def make_labels(rows: Rows, path: Path, columns: Mapping[str, str] | None, setting: str) -> list[Label]:
    """The labels of rows with their places. Raises DataError: no row has a value; a column is missing."""
    names = _find_label_columns(path, [*dict.fromkeys(name for _, row in rows for name in row)], columns or {}, setting)
    values = ((row, place, _read_value(row.get(names["value"]), place)) for place, row in rows)
    labels = [_make(row, names, value, place) for row, place, value in values if value is not None]
    if not labels:
        raise DataError(f"{path}: no row has a value, so there are no labels")
    return labels


def read_label_rows(
    path: Path, form: Form | None = None, sheet: str | None = None, separator: str | None = None
) -> Rows:
    """The rows of a file of labels with their places; a task of Label Studio or of a review page has several."""
    if (form or row_format_of(path)) == "xlsx":
        return read_workbook_rows(path, sheet, is_first=True).rows
    rows = [*read_rows(path, "json" if form == "label_studio" else form, separator)]
    if form == "label_studio" or (form is None and rows and is_task(rows[0][1])):
        return [*flatten_tasks(rows)]
    if form in (None, "json") and rows and is_review_file(rows[0][1]):
        return [*flatten_review(rows)]
    return rows


def _find_label_columns(path: Path, present: Sequence[str], columns: Mapping[str, str], setting: str) -> dict[str, str]:
    for part, name in columns.items():
        if name not in present:
            raise DataError(f"{path}: there is no column '{name}' for {part}; the columns are {list_keys(present)}")
    known = {
        part: next(name for name in names if name in present)
        for part, names in LABEL_COLUMNS.items()
        if any(name in present for name in names)
    }
    absent = next((part for part in _NEEDED_FOR_LABELS if part not in known and part not in columns), None)
    if absent is not None:
        raise DataError(_explain_absence(path, absent, present, setting))
    return {**known, **columns}


def _explain_absence(path: Path, part: str, present: Sequence[str], setting: str) -> str:
    if "row" in present and any(name.endswith("]") for name in present):
        return (
            f"{path}: this is a form of 'review select', not a file of labels; import it first: rageval-spec review "
            f"import {shlex.quote(str(path))} -o labels.csv"
        )
    taken = {name for names in LABEL_COLUMNS.values() for name in names}
    free = [name for name in present if name not in taken]
    guess = guess_names([part], free).get(part, free[0] if free else "COLUMN")
    known = " or ".join(f"'{name}'" for name in LABEL_COLUMNS[part][:2])
    return (
        f"{path}: no column has the {part.replace('_', ' ')} (it is read from {known}, among others); the columns are "
        f"{list_keys(present)}. Name it: {setting.format(part=part, name=guess)}"
    )


def _make(row: Mapping[str, Any], names: Mapping[str, str], value: float | str, place: str) -> Label:
    def text(part: str) -> str:
        return write_field(row.get(names[part])) if part in names else ""

    query_id, claim = text("query_id"), text("claim")
    if not query_id:
        raise DataError(f"{place}: the label has a value and no {names['query_id']}")
    if claim and not claim.isdecimal():
        raise DataError(f"{place}: {names['claim']} is '{claim}'; a claim is a number from 0")
    found = row.get(names["value"])
    parts = ("metric", "annotator", "dataset", "system", "answer", "time", "comment", "reason", "document")
    return Label(
        query_id=query_id,
        value=value,
        claim=int(claim) if claim else None,
        probability=_read_probability(text("probability"), place),
        place=place,
        adjudicated=_read_mark(text("adjudicated"), names.get("adjudicated", ""), place),
        saw_judge=_read_mark(text("saw_judge"), names.get("saw_judge", ""), place),
        is_yes_no=isinstance(found, bool) or (isinstance(found, str) and found.strip().casefold() in _YES_NO),
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
            f"{place}: the probability is '{text}'; it must be above 0 and at most 1. It is the probability that "
            "the answer was chosen for labelling; rename the column if it means something else"
        )
    return found


def write_field(found: object) -> str:
    """A field as text, "" for None. Workbooks hold whole numbers as floats, and an id of 12 must not become `12.0`."""
    if found is None:
        return ""
    return str(int(found) if isinstance(found, float) and found.is_integer() else found).strip()


def _read_mark(text: str, name: str, place: str) -> bool:
    mark = {"": 0.0, "0": 0.0, "1": 1.0, **_YES_NO}.get(text.casefold())
    if mark is None:
        raise DataError(f"{place}: {name} is '{text}'; write yes or no")
    return bool(mark)


def _read_value(found: object, place: str) -> float | str | None:
    """A number (`80%` is 0.8), a class, or None for an empty field."""
    if isinstance(found, bool):
        return float(found)
    if found is None or (isinstance(found, str) and not found.strip()):
        return None
    if not isinstance(found, str | int | float):
        raise DataError(f"{place}: the value is {type(found).__name__}; it must be a number or a text")
    text = str(found).strip()
    try:
        number = _YES_NO.get(text.casefold(), None)
        if number is None:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return text
    if not math.isfinite(number):
        raise DataError(f"{place}: the value is {text}; it must be a finite number or the name of a class")
    return number


def refuse_duplicates(labels: Sequence[Label]) -> None:
    """Raise DataError for an item that a person judged twice on a criterion, or that was adjudicated twice."""
    first: dict[tuple[object, ...], Label] = {}
    for label in labels:
        who = None if label.adjudicated else label.annotator
        known = first.setdefault((label.item, label.metric, who), label)
        if known is not label:
            what = " on ".join(filter(None, (label.query_id, label.document, label.metric)))
            said = f"'{who}' judged {what}" if who else f"the same annotator judged {what}"
            said = f"{what} was adjudicated" if label.adjudicated else said
            raise DataError(f"{label.place}: {said} already at {known.place}; keep one of the two")


_VALUES: Mapping[str, str] = {"choices": "choices", "rating": "rating", "number": "number"}
"""The types of results that hold a value, and the key of the value."""
_TEXT = "textarea"
_OTHER_TYPES = "labels of answers come from Choices, Rating and Number, and comments from TextArea"
_CRITERIA = ("metric", "criterion", "aspect")


def is_task(row: Mapping[str, Any]) -> bool:
    """Whether an object is a task of an export."""
    return isinstance(row.get("annotations"), list) and isinstance(row.get("data"), dict)


def flatten_tasks(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a place and a row for each value that a person gave: the task's `data`, and the parts of a label.

    The criterion is the task's own (`metric`) if an annotation has one value, else the `name` of the control. Text
    boxes are the comment on all values of their annotation. An annotation that is marked as ground truth is
    adjudicated. Skipped tasks, drafts and predictions are left out.

    Raises DataError: an object is not a task, a result is of a type that holds no label, or several choices were made.
    """
    for place, task in rows:
        if not is_task(task):
            raise DataError(
                f"{place}: this is not a task of Label Studio with 'data' and 'annotations'; export the project as JSON"
            )
        where = f"{place}: task {task['id']}" if "id" in task else place
        for annotation in task["annotations"]:
            if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
                yield from _flatten(where, task["data"], annotation)


def _flatten(
    place: str, data: Mapping[str, Any], annotation: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    found = annotation.get("result")
    results = [one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict)]
    results = [{**one, "type": str(one.get("type"))} for one in results]
    values = {
        str(one.get("from_name")): _read_studio_value(place, one) for one in results if one.get("type") in _VALUES
    }
    other = next((one for one in results if one.get("type") not in (*_VALUES, _TEXT)), None)
    if other is not None:
        raise DataError(f"{place}: '{other.get('from_name')}' is of the type {other.get('type')}; {_OTHER_TYPES}")
    own = next((data[name] for name in _CRITERIA if data.get(name)), None) if len(values) == 1 else None
    for name, value in values.items():
        yield (
            place,
            {
                **data,
                "value": value,
                "metric": name if own is None else own,
                "annotator": _name_person(annotation.get("completed_by")),
                "time": annotation.get("created_at"),
                "comment": "\n".join(_list_texts(results)),
                "adjudicated": bool(annotation.get("ground_truth")),
            },
        )


def _read_studio_value(place: str, result: Mapping[str, Any]) -> Any:
    held = result.get("value")
    found = held.get(_VALUES[str(result["type"])]) if isinstance(held, dict) else None
    if not isinstance(found, list):
        return found
    if len(found) > 1:
        raise DataError(
            f"{place}: '{result.get('from_name')}' has the choices {list_choices([*map(str, found)])}; "
            'a label is one: write choice="single" in the labelling configuration'
        )
    return found[0] if found else None


def _list_texts(results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for result in results:
        held = result.get("value")
        if result.get("type") == _TEXT and isinstance(held, dict):
            texts = held.get("text")
            yield from map(str, texts if isinstance(texts, list) else [texts or ""])


def _name_person(person: Any) -> str:
    """Who annotated: an id, or an object with an e-mail address."""
    if isinstance(person, dict):
        person = person.get("email") or person.get("id")
    return "" if person is None else str(person)


FORMAT = "rageval-labels"
VERSION = 1


def is_review_file(row: Mapping[str, Any]) -> bool:
    """Whether an object is what a review page saved."""
    return row.get("format") == FORMAT


def flatten_review(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a place (`ann.json:1: label 3`) and a row for each label. Raises DataError: there are none."""
    for place, saved in rows:
        if not is_review_file(saved):
            raise DataError(f"{place}: this is not a file that a review page saved")
        if saved.get("version") != VERSION:
            raise DataError(
                f"{place}: the file has version {saved.get('version')}, and this version of rageval-spec reads "
                f"version {VERSION}; update rageval-spec"
            )
        labels = saved.get("labels")
        if not isinstance(labels, list):
            raise DataError(f"{place}: the file has no list 'labels'")
        if not labels:
            raise DataError(f"{place}: the file has no labels yet")
        for number, label in enumerate(labels, 1):
            if not isinstance(label, dict):
                raise DataError(f"{place}: label {number} is not an object")
            own = {"annotator": saved.get("annotator"), "sheet": saved.get("sheet")}
            yield f"{place}: label {number}", {**label, **own}
