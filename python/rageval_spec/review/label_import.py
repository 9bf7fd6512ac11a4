"""Reads forms that people filled in, checks what they entered, makes labels of it, and adds them to a file of labels.

All that is wrong is found at once. What the file has stays: its columns, its rows, and their order.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rageval_spec.data.labels import Label, digest_answer, join_probabilities, list_draws
from rageval_spec.dataclass import dataclass, field
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.formats.delimited import delimited_objects, header_of, separator_of
from rageval_spec.reading.formats.text_files import format_of
from rageval_spec.reading.formats.workbooks import read_workbook_rows
from rageval_spec.reading.label_files import (
    LABEL_COLUMNS,
    flatten_review,
    flatten_tasks,
    is_review_file,
    is_task,
    read_label_file,
    write_field,
)
from rageval_spec.reading.rows import read_rows
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.review.criteria import VERDICTS, ReviewCriterion, make_criterion
from rageval_spec.review.forms import (
    ANNOTATOR,
    COMMENT,
    CONTROLS,
    JUDGE,
    ROW,
    SHEET,
    SHOWN,
    SHOWS_JUDGE,
    FormToken,
    decode_token,
    digest_shown,
    read_column,
)
from rageval_spec.review.tasks import KEY
from rageval_spec.wording import neutralize

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


_SEPARATORS = (",", ";")


@dataclass(frozen=True, slots=True)
class FormEntry:
    """One field of a form, filled in or not (`value` is None); texts that are not given are "".

    The `token` says what it is about, if the row has one. The entry `is_edited` if the texts of the row are not those
    that were written. `criterion` is None if its scale is not known. `saw_judge` says whether the form showed what the
    judge says, or the person looked at it.
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
    if kind in ("xlsx", "xlsm"):
        return _read_table(path, _read_workbook(path))
    if kind == "csv":
        return _read_table(path, [*_read_csv(path)])
    if kind == "json":
        return _read_json(path)
    raise DataError(f"{path}: a filled-in form is a .csv, .xlsx or .json file; save it as one of these")


def _read_workbook(path: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        return read_workbook_rows(path, SHEET).rows
    except DataError as error:
        if f"no sheet '{SHEET}'" not in str(error):
            raise
    return read_workbook_rows(path, is_first=True).rows


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


_YES_NO: Mapping[str, str] = {
    "yes": "yes", "y": "yes", "true": "yes", "1": "yes", "no": "no", "n": "no", "false": "no", "0": "no",
}  # fmt: skip
_MOST_SHOWN = 40
_Identity: TypeAlias = tuple[object, str, str | None]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a field: where it stands, and what to write instead."""

    place: str
    column: str
    message: str

    def __str__(self) -> str:
        """The place, the column and the message in a line."""
        return f"{self.place}, column '{self.column}': {self.message}"


@dataclass(frozen=True)
class CheckedEntries:
    """What the entries of forms come to: each label once, in their order, with its value as it is `written` into a
    file.

    `empty` fields were filled in by nobody, and `repeated` labels were there several times.
    """

    labels: tuple[Label, ...]
    written: tuple[str, ...]
    problems: tuple[Problem, ...]
    empty: int
    repeated: int


def check_entries(
    entries: Iterable[FormEntry], annotator: str = "", evaluation: Evaluation | None = None
) -> CheckedEntries:
    """Make labels of entries, by `annotator` if they do not name one; all must be in the evaluation, if given."""
    known = None if evaluation is None else _Known(evaluation)
    labels: dict[_Identity, tuple[Label, str]] = {}
    problems: list[Problem] = []
    empty = repeated = 0
    for entry in entries:
        if entry.value is None:
            empty += 1
            continue
        value, wrong = _check(entry, annotator, known)
        if wrong or entry.token is None or value is None:
            problems += wrong
            continue
        label = _make(entry, entry.token, value, annotator)
        identity = identify(label)
        first = labels.setdefault(identity, (label, value))[0]
        if first is not label:
            repeated += 1
            if first.value != label.value:
                message = f"'{label.annotator}' judged the same thing differently at {first.place}; keep one of the two"
                problems.append(Problem(entry.place, entry.column, message))
    return CheckedEntries(
        tuple(label for label, _ in labels.values()),
        tuple(value for _, value in labels.values()),
        tuple(dict.fromkeys(problems)),
        empty,
        repeated,
    )


def identify(label: Label) -> _Identity:
    """What a label is the only one of: an item, a metric and an annotator; adjudicated labels have no annotator."""
    return (label.item, label.metric, None if label.adjudicated else label.annotator)


def _check(entry: FormEntry, annotator: str, known: _Known | None) -> tuple[str | None, list[Problem]]:
    """The value as it is written into a file, and what is wrong with the entry."""
    wrong: list[Problem] = []
    value = _read_value(entry)
    if entry.token is None:
        wrong.append(Problem(entry.place, ROW, _LOST))
    elif entry.is_edited:
        wrong.append(Problem(entry.place, ROW, _EDITED))
    elif (problem := _find_place(entry, entry.token, known)) is not None:
        wrong.append(problem)
    if value is None:
        wrong.append(Problem(entry.place, entry.column, f"'{_cut(entry.value)}' is not on the scale; {_offer(entry)}"))
    if not (entry.annotator or annotator):
        wrong.append(Problem(entry.place, ANNOTATOR, "write who judged, or name one for all rows: --annotator NAME"))
    return value, wrong


_LOST = (
    "it is not known what this row is about, because its token is missing or damaged; copy the cell from the form as "
    "it was sent"
)
_EDITED = (
    "the question, the answer or the claim in this row was changed, and a label belongs to the text that was judged; "
    "restore the texts, and judge them again if they were changed before"
)


def _find_place(entry: FormEntry, token: FormToken, known: _Known | None) -> Problem | None:
    """What is wrong with where an entry belongs."""
    if token.metric and entry.criterion is not None and (token.metric != entry.metric or not _is_of_claims(entry)):
        return Problem(
            entry.place, entry.column, f"this row asks about a claim for {token.metric}; leave the cell empty"
        )
    if not token.metric and _is_of_claims(entry):
        return Problem(entry.place, entry.column, "this row asks about the whole answer; leave the cell empty")
    message = None if known is None else known.explain(entry, token)
    return None if message is None else Problem(entry.place, entry.column, message)


def _is_of_claims(entry: FormEntry) -> bool:
    return entry.criterion is not None and entry.criterion.kind == "claims"


def _read_value(entry: FormEntry) -> str | None:
    """The value as the criterion names it; None if it is not on the scale."""
    value = entry.value
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().casefold()
    kinds = [entry.criterion] if entry.criterion is not None else _ANY_SCALE
    return next((found for kind in kinds if (found := _match(text, kind)) is not None), None)


def _match(text: str, criterion: ReviewCriterion) -> str | None:
    if criterion.kind == "yes_no":
        return _YES_NO.get(text)
    if criterion.kind == "claims":
        text = text.replace(" ", "_").replace("-", "_")
    elif text.removesuffix(".0").removesuffix(",0") in criterion.choices:
        text = text.removesuffix(".0").removesuffix(",0")
    return text if text in criterion.choices else None


_ANY_SCALE = (
    ReviewCriterion("", "claims", ""), ReviewCriterion("", "rating", "", low=-999, high=999),
    ReviewCriterion("", "yes_no", ""),
)  # fmt: skip
"""What a value can be if its scale is not known."""


def _offer(entry: FormEntry) -> str:
    choices = (*VERDICTS, "yes", "no", "a grade") if entry.criterion is None else entry.criterion.choices
    return f"write one of {', '.join(choices)}, or leave the cell empty"


def _cut(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _make(entry: FormEntry, token: FormToken, value: str, annotator: str) -> Label:
    numbers = {"yes": 1.0, "no": 0.0}
    return Label(
        query_id=token.query_id,
        metric=entry.metric,
        value=value if value in VERDICTS else numbers[value] if value in numbers else float(value),
        annotator=_clean(entry.annotator or annotator),
        dataset=token.dataset,
        system=token.system,
        answer=token.answer_digest,
        claim=token.claim,
        time=entry.time,
        comment=_clean(entry.comment),
        reason=token.reason,
        probability=token.probability,
        place=entry.place,
        adjudicated=entry.is_adjudicated,
        saw_judge=entry.saw_judge,
        is_yes_no=value in numbers,
    )


def _clean(text: str) -> str:
    """What a person wrote, made visible, and not a formula for a spreadsheet."""
    return neutralize(make_visible(text, keep="\n\t"))


class _Known:
    """The answers and claims of an evaluation."""

    def __init__(self, evaluation: Evaluation) -> None:
        rows = evaluation.select_samples(*KEY, "answer").iter_rows()
        self._answers = {tuple(key): digest_answer(answer or "") for *key, answer in rows}
        self._evaluation = evaluation

    def explain(self, entry: FormEntry, token: FormToken) -> str | None:
        """Why an entry does not belong to the evaluation; None if it does."""
        key = (token.dataset, token.system, token.query_id)
        digest = self._answers.get(key)
        if digest is None:
            return f"the results have no answer of {token.system} to {token.query_id}; name those that were judged"
        if digest != token.answer_digest:
            return (
                f"the answer of {token.system} to {token.query_id} has changed since; name the results that were judged"
            )
        if token.claim is not None and (*key, entry.metric, token.claim) not in self._claims:
            return f"the results have no claim {token.claim} of {entry.metric} for {token.query_id}"
        return None

    @cached_property
    def _claims(self) -> set[tuple[object, ...]]:
        columns = (*KEY, "metric", "claim")
        return {row for block in self._evaluation.iterate_findings() for row in block.select(columns).iter_rows()}


COLUMNS = (
    "dataset", "system", "query_id", "metric", "claim", "value", "annotator", "comment", "time", "answer", "reason",
    "probability",
)  # fmt: skip
"""The parts of a label, in the order of a new file; `adjudicated` and `saw_judge` only if a label is so."""
_GRADE_COLUMNS = ("query_id", "doc_id", "relevance", "annotator", "probability", "comment", "time")
_GRADE_PARTS = ("query_id", "document", "value", "annotator", "probability", "comment", "time")
"""The columns of a new file of people's grades of documents, and the parts of labels in them."""


@dataclass(frozen=True)
class Merged:
    """A file of labels with others added, as CSV in UTF-8, and its number of labels: some `added`, some `replaced`.

    `problems` are of labels that the file has with another value, and that were not to be replaced; `rechosen` is how
    many of those that the file has were chosen by another selection now.
    """

    content: bytes
    labels: int
    added: int
    replaced: int
    problems: tuple[Problem, ...]
    rechosen: int = 0


def merge_labels(
    labels: Sequence[Label], written: Sequence[str], path: Path | None = None, *, replace: bool = False
) -> Merged:
    """Add labels, each once, with their values as files show them, to those of a CSV or TSV file; None for a new one.

    A label that the file has with the same value is not added again; its comment is, if it is another. With another
    value, it takes the other's place if `replace`. If another selection chose its answer now, it gets the reasons of
    both, and the probability that one of the two chose it.

    Raises DataError: the file is not CSV or TSV, or not a file of labels.
    """
    of_documents = any(label.document for label in labels)
    old = _Old(_GRADE_COLUMNS if of_documents else ()) if path is None else _read_old(path)
    parts = _GRADE_PARTS if of_documents else COLUMNS
    known = {identify(label): (label, row) for label, row in old.labels}
    problems, added, replaced, rechosen = [], 0, 0, 0
    for label, value in zip(labels, written, strict=True):
        found = known.get(identify(label))
        if found is None:
            old.add(label, value, parts)
            added += 1
            continue
        before, row = found
        if before.value != label.value:
            if not replace:
                problems.append(_explain(label, before))
                continue
            row[old.name("value")] = value
            row[old.name("time")] = label.time
            replaced += 1
        row[old.name("comment")] = _join(row.get(old.name("comment"), ""), label.comment)
        if (draw := _join_draws(before, label)) is not None:
            row[old.name("reason")], row[old.name("probability")] = draw
            rechosen += 1
    return Merged(old.write(), len(old.labels) + added, added, replaced, tuple(problems), rechosen)


def set_label(label: Label, written: str | None, path: Path | None = None) -> tuple[Label | None, bytes]:
    """A CSV or TSV file with one label added, or in the place of the same person's on the same thing.

    Args:
        label: the label; of one that is removed, only what it is about and who gave it count.
        written: its value as files show it; None to remove it.
        path: the file; None for a new one.

    Returns:
        The label that the file has now, or None, and the file's new content.

    Raises:
        DataError: the file is not CSV or TSV, or not a file of labels.
    """
    old = _Old() if path is None else _read_old(path)
    before, row = next(((one, row) for one, row in old.labels if identify(one) == identify(label)), (None, None))
    if row is None and written is not None:
        old.add(label, written)
    elif row is not None and written is None:
        old.remove(row)
    elif row is not None and written is not None:
        texts = {"value": written, "time": label.time, "comment": label.comment}
        row.update({old.name(part): text for part, text in texts.items()})
        if label.saw_judge:
            row[old.name("saw_judge")] = "yes"
    return before, old.write()


def _join_draws(before: Label, label: Label) -> tuple[str, str] | None:
    """The reasons and the probability of two selections of one answer; None if the second adds nothing."""
    draws = list_draws([before, label])
    if len(draws) < 2:
        return None
    reasons = dict.fromkeys((*before.reasons, *label.reasons))
    return "+".join(reasons), repr(join_probabilities([probability for _, probability in draws]))


def _explain(label: Label, before: Label) -> Problem:
    return Problem(
        label.place,
        label.metric,
        f"'{label.annotator}' judged the same thing differently at {before.place}; keep one of the two, or write "
        "the new value over the old: --replace",
    )


def _join(first: str, second: str) -> str:
    """Two comments as one; the second only if the first does not have it."""
    return "\n".join(filter(None, [first, second if second not in first else ""]))


class _Old:
    """A file of labels: its header, its rows, and the labels with their rows."""

    def __init__(
        self,
        header: Sequence[str] = (),
        rows: Sequence[dict[str, str]] = (),
        labels: Sequence[tuple[Label, dict[str, str]]] = (),
        separator: str = ",",
    ) -> None:
        self.labels = labels
        self._separator = separator
        self._rows = [*rows]
        self._names = {
            part: next((name for name in names if name in header), names[0]) for part, names in LABEL_COLUMNS.items()
        }
        self._header = [*header]

    def name(self, part: str) -> str:
        """The column of a part; it is added to the header if it is new."""
        name = self._names[part]
        if name not in self._header:
            self._header.append(name)
        return name

    def add(self, label: Label, value: str, parts: Sequence[str] = COLUMNS) -> None:
        """Add a row for a label, with these parts of it."""
        texts = {part: _write(getattr(label, part)) for part in parts} | {"value": value}
        marks = {"adjudicated": label.adjudicated, "saw_judge": label.saw_judge}
        more = {part: "yes" for part, is_marked in marks.items() if is_marked}
        self._rows.append({self.name(part): text for part, text in {**texts, **more}.items()})

    def remove(self, row: dict[str, str]) -> None:
        """Remove a row."""
        self._rows = [one for one in self._rows if one is not row]

    def write(self) -> bytes:
        """The file."""
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=self._separator, lineterminator="\n")
        writer.writerow(self._header)
        writer.writerows([row.get(name, "") for name in self._header] for row in self._rows)
        return stream.getvalue().encode("utf-8", "backslashreplace")


def _write(value: object) -> str:
    """A part of a label as its file has it."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _read_old(path: Path) -> _Old:
    if path.suffix.lower() != ".csv":
        raise DataError(f"{path}: labels are added to a .csv file; name one, or write a new file: -o labels.csv")
    separator = separator_of(path)
    rows = {f"{path}:{line}": row for line, row in delimited_objects(path, separator)}
    labels = [(label, rows[label.place]) for label in read_label_file(path)]
    return _Old(header_of(path, separator), [*rows.values()], labels, separator)
