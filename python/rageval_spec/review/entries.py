"""Entries: what people wrote into the fields of a form, as they wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.formats.delimited import delimited_objects, header_of
from rageval_spec.reading.formats.text_files import format_of
from rageval_spec.reading.formats.workbooks import SUFFIXES, read_sheet
from rageval_spec.reading.label_files import flatten_review, flatten_tasks, is_review_file, is_task, write_field
from rageval_spec.reading.rows import read_rows
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.review.criteria import ReviewCriterion, make_criterion
from rageval_spec.review.form_files import CONTROLS, SHEET, SHOWS_JUDGE
from rageval_spec.review.form_rows import (
    ANNOTATOR,
    COMMENT,
    JUDGE,
    ROW,
    SHOWN,
    FormToken,
    decode_token,
    digest_shown,
    read_column,
)

_SEPARATORS = (",", ";")


@dataclass(frozen=True, slots=True)
class FormEntry:
    """One field of a form, filled in or not.

    Attributes:
        place, column: where it stands: `review.csv:12` and `faithfulness [yes/no]`.
        token: what it is about; None if the row does not say.
        is_edited: whether the texts of the row are not those that were written.
        metric: the criterion's name; `criterion` is None if its scale is not known.
        value: as it was entered; None if the field is empty.
        annotator, comment, time: "" if they are not given.
        is_adjudicated: whether the value settles what others disagree on.
        saw_judge: whether the form showed what the judge says, or the person looked at it.
    """

    place: str
    column: str
    token: FormToken | None
    is_edited: bool
    metric: str
    criterion: ReviewCriterion | None
    value: object
    annotator: str = ""
    comment: str = ""
    time: str = ""
    is_adjudicated: bool = False
    saw_judge: bool = False


@dataclass(frozen=True)
class FilledForm:
    """A form that came back: its entries, and the comments of rows without a value, each with its place."""

    entries: tuple[FormEntry, ...]
    remarks: tuple[tuple[str, str], ...] = field(default=())


def read_form(path: Path) -> FilledForm:
    """Read a form that people filled in. Raises DataError: the file cannot be read, or it is not a form."""
    kind = format_of(path)
    if kind in SUFFIXES:
        return _read_table(path, [*_read_workbook(path)])
    if kind == "csv":
        return _read_table(path, [*_read_csv(path)])
    if kind == "json":
        return _read_json(path)
    raise DataError(f"{path}: a filled-in form is a .csv, .xlsx or .json file; save it as one of these")


def _read_workbook(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        rows = [*read_sheet(path, SHEET)]
    except DataError as error:
        if f"no sheet '{SHEET}'" not in str(error):
            raise
        rows = [*read_sheet(path)]
    yield from rows


def _read_csv(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        rows = delimited_objects(path, _find_separator(path))
        yield from ((f"{path}:{line}", dict(row)) for line, row in rows)
    except DataError as error:
        if "not UTF-8" in str(error):
            raise DataError(f"{error}: save the form as 'CSV UTF-8', or fill in the .xlsx form instead") from error
        raise


def _find_separator(path: Path) -> str:
    """What separates the fields. In countries with a decimal comma, spreadsheets write semicolons."""
    for separator in _SEPARATORS:
        with suppress(DataError):
            if ROW in header_of(path, separator):
                return separator
    return _SEPARATORS[0]


def _read_table(path: Path, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> FilledForm:
    header = [*dict.fromkeys(name for _, row in rows for name in row)]
    if ROW not in header:
        raise DataError(
            f"{path}: there is no column '{ROW}', so this is not a form of 'review select', or the column was removed; "
            f"the columns are {list_keys(header)}. Labels in a table of your own need no import"
        )
    columns = {name: asked for name in header if (asked := read_column(name.strip().lstrip("'"))) is not None}
    if not columns:
        raise DataError(
            f"{path}: no column is to be filled in, such as 'faithfulness [yes/no]'; the columns are "
            f"{list_keys(header)}. Keep the headers as they were"
        )
    entries: list[FormEntry] = []
    remarks: list[tuple[str, str]] = []
    for place, row in rows:
        found = [*_read_row(place, row, columns)]
        entries += found
        comment = write_field(row.get(COMMENT))
        if comment and all(entry.value is None for entry in found):
            remarks.append((place, comment))
    return FilledForm(tuple(entries), tuple(remarks))


def _read_row(place: str, row: Mapping[str, Any], columns: Mapping[str, ReviewCriterion]) -> Iterator[FormEntry]:
    token = decode_token(write_field(row.get(ROW)))
    is_edited = token is not None and digest_shown([write_field(row.get(name)) for name in SHOWN]) != token.shown
    for name, criterion in columns.items():
        value = _empty_to_none(row.get(name))
        if (
            value is None
            and token is not None
            and (criterion.name if criterion.kind == "claims" else "") != token.metric
        ):
            continue
        yield FormEntry(
            place, name, token, is_edited, criterion.name, criterion, value,
            annotator=write_field(row.get(ANNOTATOR)).lstrip("'"), comment=write_field(row.get(COMMENT)),
            saw_judge=any(header.startswith(JUDGE) for header in row),
        )  # fmt: skip


def _read_json(path: Path) -> FilledForm:
    rows = [*read_rows(path)]
    place, first = rows[0]
    if is_review_file(first):
        return _read_saved(place, first)
    if is_task(first):
        return FilledForm(tuple(_read_task(place, row) for place, row in flatten_tasks(rows)))
    raise DataError(
        f"{path}: this is neither what a review page saved nor an export of Label Studio in the format JSON; save the "
        "labels on the page, or export the project as JSON"
    )


def _read_task(place: str, row: Mapping[str, Any]) -> FormEntry:
    """The entry of an annotation in Label Studio."""
    token = decode_token(write_field(row.get(ROW)))
    shown = [write_field(row.get(name)) for name in ("question", "answer", "claim_text")]
    header = (row.get(CONTROLS) or {}).get(row["metric"]) if isinstance(row.get(CONTROLS), dict) else None
    criterion = read_column(str(header)) if header is not None else None
    if token is not None and token.metric:
        criterion = make_criterion(token.metric, "claims")
    return FormEntry(
        place, str(row["metric"]), token, token is not None and digest_shown(shown) != token.shown,
        criterion.name if criterion else str(row["metric"]), criterion, _empty_to_none(row["value"]),
        annotator=write_field(row["annotator"]), comment=write_field(row["comment"]), time=write_field(row["time"]),
        is_adjudicated=bool(row["adjudicated"]), saw_judge=bool(row.get(SHOWS_JUDGE)),
    )  # fmt: skip


def _read_saved(place: str, saved: Mapping[str, Any]) -> FilledForm:
    """The entries of the file that a review page saved. Its labels name their answers themselves."""
    criteria = {one.name: one for one in _list_criteria(saved)}
    entries = []
    for where, label in flatten_review([(place, saved)]):
        metric = write_field(label.get("metric"))
        entries.append(
            FormEntry(
                where, metric, _name_answer(label), False, metric, criteria.get(metric),
                _empty_to_none(label.get("value")), annotator=write_field(label.get("annotator")),
                comment=write_field(label.get("comment")), time=write_field(label.get("time")),
                saw_judge=label.get("saw_judge") is True,
            )
        )  # fmt: skip
    skipped = saved.get("skipped")
    remarks = [
        (f"{place}: skipped {number}", write_field(one.get("comment")))
        for number, one in enumerate(skipped if isinstance(skipped, list) else (), 1)
        if isinstance(one, dict) and write_field(one.get("comment"))
    ]
    return FilledForm(tuple(entries), tuple(remarks))


def _list_criteria(saved: Mapping[str, Any]) -> Iterator[ReviewCriterion]:
    found = saved.get("criteria")
    for one in found if isinstance(found, list) else ():
        with suppress(UsageError):
            if isinstance(one, dict):
                yield make_criterion(str(one.get("name")), str(one.get("scale")))


def _name_answer(label: Mapping[str, Any]) -> FormToken | None:
    claim, probability = label.get("claim"), label.get("probability")
    names = [label.get(name) for name in ("dataset", "system", "query_id", "answer_digest")]
    is_whole = all(isinstance(name, str) for name in (*names, label.get("metric") or None)) and (
        claim is None or (type(claim) is int and claim >= 0)
    )
    if not is_whole or not (probability is None or (isinstance(probability, int | float) and 0 < probability <= 1)):
        return None
    dataset, system, query_id, digest = map(str, names)
    metric = "" if claim is None else write_field(label.get("metric"))
    reason = write_field(label.get("reason"))
    return FormToken(dataset, system, query_id, metric, claim, digest, reason, probability, "")


def _empty_to_none(found: object) -> object:
    return None if found is None or (isinstance(found, str) and not found.strip()) else found
