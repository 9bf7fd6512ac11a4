"""Forms: the rows of a sheet, and the CSV, the Excel workbook or the project of Label Studio that holds them.

A form has a row for each answer, and one for each claim if people judge claim by claim.

| column | |
|---|---|
| `no` | the task's number, from 1 |
| `question`, `answer`, `claim` | what is judged; `claim` only if people judge claim by claim |
| `faithfulness [yes/no]`, ... | one for each criterion, to be filled in; the brackets have the values it can have |
| `comment`, `annotator` | to be filled in |
| `contexts`, `reference` | what it is judged by |
| `judge: faithfulness`, ... | what the judge says, if people may see it |
| `dataset`, `system`, `query_id`, `slices`, `reason`, `probability` | where the answer is from, and why it is here |
| `row` | a token: the hidden field that says what was judged |

Spreadsheets change what they take for numbers or dates: the query `007` becomes 7, `1/2` a day in January. A token is
a text that they leave alone. It also has a digest of the texts that the person saw, so that an edited text is
noticed.

Every spreadsheet and every editor opens the CSV. The workbook has drop-down lists, a frozen header, wrapped texts,
and the guidelines on a second sheet. Only its cells to be filled in can be changed. The library XlsxWriter is the
extra `xlsx` of this package. For Label Studio, there are tasks in JSON and the labelling configuration in XML. Import
the tasks into a new project, and paste the configuration into its settings (Labeling interface, Code).
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from io import BytesIO
from itertools import groupby
from typing import Any, Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from rageval_spec.dataclass import astuple, dataclass
from rageval_spec.diagnostics import dump_visible, make_visible
from rageval_spec.drawing.question_tables import MOST_ROWS, check_installed, fit_cell
from rageval_spec.errors import DataError, UsageError
from rageval_spec.libraries import compile_later
from rageval_spec.review.criteria import VERDICTS, ReviewCriterion, make_criterion
from rageval_spec.review.tasks import ReviewClaim, ReviewSheet, ReviewTask
from rageval_spec.wording import count_noun, neutralize

Use: TypeAlias = Literal["read", "fill", "keep"]
NUMBER, COMMENT, ANNOTATOR, ROW = "no", "comment", "annotator", "row"
SHOWN = ("question", "answer", "claim")
"""The columns whose texts a token has a digest of."""
KEPT = "\n\t"
JUDGE = "judge: "
"""How the headers of the columns begin that have what the judge says."""
_HEADER = compile_later(r"(.+) \[(.+)\]")


@dataclass(frozen=True, slots=True)
class FormColumn:
    """A column of a form: people read it, fill it in, or leave it alone (`keep`)."""

    name: str
    use: Use
    criterion: ReviewCriterion | None = None


@dataclass(frozen=True, slots=True)
class FormRow:
    """A row of a form: the texts by column, and the criteria that it asks about."""

    cells: Mapping[str, str | int | float]
    asked: tuple[str, ...]


def list_columns(sheet: ReviewSheet) -> list[FormColumn]:
    """The columns of a sheet's form, in their order."""
    read = [NUMBER, "question", "answer", *(["claim"] if any(one.kind == "claims" for one in sheet.criteria) else [])]
    judge = [JUDGE + one.name for one in sheet.criteria] if sheet.shows_judge else []
    return [
        *(FormColumn(name, "read") for name in read),
        *(FormColumn(name_column(one), "fill", one) for one in sheet.criteria),
        *(FormColumn(name, "fill") for name in (COMMENT, ANNOTATOR)),
        *(FormColumn(name, "read") for name in ("contexts", "reference", *judge)),
        *(
            FormColumn(name, "keep")
            for name in ("dataset", "system", "query_id", "slices", "reason", "probability", ROW)
        ),
    ]


def name_column(criterion: ReviewCriterion) -> str:
    """The header of a criterion's column: `faithfulness [yes/no]`, `fluency [1..5]`."""
    scale = criterion.scale if criterion.kind == "rating" else "/".join(criterion.choices)
    return f"{criterion.name} [{scale}]"


def read_column(header: str) -> ReviewCriterion | None:
    """The criterion that a header names; None if it names none."""
    found = _HEADER.fullmatch(header.strip())
    if found is None:
        return None
    scale = {"yes/no": "yes_no", "/".join(VERDICTS): "claims"}.get(found[2], found[2])
    try:
        return make_criterion(found[1], scale)
    except ValueError:
        return None


def list_rows(sheet: ReviewSheet) -> Iterator[FormRow]:
    """The rows of a sheet's form: for each task one for the whole answer, if it is asked about, then its claims."""
    for number, task in enumerate(sheet.tasks, 1):
        whole = tuple(one.name for one in sheet.criteria if one.kind != "claims")
        if whole:
            yield FormRow(_fill(sheet, task, number, None), whole)
        for criterion, claim in sheet.questions_of(task):
            if claim is not None:
                yield FormRow(_fill(sheet, task, number, claim), (criterion.name,))


def _fill(sheet: ReviewSheet, task: ReviewTask, number: int, claim: ReviewClaim | None) -> dict[str, str | int | float]:
    shown = [show(task.question), show(task.answer), "" if claim is None else show(claim.text)]
    cells: dict[str, str | int | float] = {
        NUMBER: number,
        **dict(zip(SHOWN, shown, strict=True)),
        COMMENT: "",
        ANNOTATOR: show(sheet.annotator),
        "contexts": show(join_contexts(task)),
        "reference": show("\n".join(task.references)),
        "dataset": show(task.dataset),
        "system": show(task.system),
        "query_id": show(task.query_id),
        "slices": show(", ".join(task.slices)),
        "reason": task.reason,
        "probability": task.probability,
        ROW: FormToken.of(task, claim, shown).encode(),
    }
    for criterion in sheet.criteria if sheet.shows_judge else ():
        cells[JUDGE + criterion.name] = _tell(task, criterion, claim)
    return cells


def _tell(task: ReviewTask, criterion: ReviewCriterion, claim: ReviewClaim | None) -> str | float:
    """What the judge says of an answer, or of a claim."""
    if claim is None:
        value = task.judged.get(criterion.name)
        return "" if value is None or criterion.kind == "claims" else value
    if claim.metric != criterion.name:
        return ""
    return show(claim.verdict or "") or ("" if claim.score is None else claim.score)


def join_contexts(task: ReviewTask) -> str:
    """The contexts in one text, each with its number and its document."""
    parts = (
        f"[{number}]{f' {one.doc_id}' if one.doc_id else ''}\n{one.text}" for number, one in enumerate(task.contexts, 1)
    )
    return "\n\n".join(parts)


def show(text: str) -> str:
    """`text` as a cell holds it: characters that cannot be seen are escaped, and a text that is too long is cut."""
    visible = make_visible(text.replace("\r\n", "\n"), keep=KEPT)
    if len(visible) <= MOST_CHARACTERS:
        return visible
    note = f"… [cut: the text has {count_noun(len(visible), 'character')}]"
    return visible[: MOST_CHARACTERS - len(note)] + note


MOST_CHARACTERS = 32_000
"""The most characters of a cell; spreadsheets hold 32,767 UTF-16 units."""


_PREFIX = "rv1."
_CHECK_LENGTH = 8


@dataclass(frozen=True, slots=True)
class FormToken:
    """What a row of a form is about: an answer, or with a `metric` the claim of this number.

    `shown` is the digest of the texts that the row shows, as `digest_shown` gives it.
    """

    dataset: str
    system: str
    query_id: str
    metric: str
    claim: int | None
    answer_digest: str
    reason: str
    probability: float | None
    shown: str

    @classmethod
    def of(cls, task: ReviewTask, claim: ReviewClaim | None, shown: Sequence[str]) -> FormToken:
        """The token of a task's answer, or of one of its claims, with the texts that the row shows."""
        metric, number = ("", None) if claim is None else (claim.metric, claim.number)
        digest = digest_shown(shown)
        return cls(*task.key, metric, number, task.answer_digest, task.reason, task.probability, digest)

    def encode(self) -> str:
        """The token as a text of letters, digits, `-`, `_` and dots."""
        content = json.dumps(astuple(self), separators=(",", ":")).encode()
        return f"{_PREFIX}{base64.urlsafe_b64encode(content).decode().rstrip('=')}.{_check(content)}"


def decode_token(text: str) -> FormToken | None:
    """The token of a text; None if it is none, or damaged."""
    body, dot, check = text.strip().removeprefix(_PREFIX).rpartition(".")
    if not dot or not text.strip().startswith(_PREFIX):
        return None
    try:
        content = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        if _check(content) != check:
            return None
        return FormToken(*json.loads(content))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        return None


def digest_shown(texts: Sequence[str]) -> str:
    """A digest of the texts of a row. It ignores what spreadsheets change: white space, and a `'` at the beginning."""
    folded = json.dumps([" ".join(text.split()).lstrip("' ") for text in texts])
    return hashlib.sha256(folded.encode()).hexdigest()[:_CHECK_LENGTH]


def _check(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_CHECK_LENGTH]


BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""Without it, Excel takes UTF-8 for the encoding of the machine."""


def write_csv(sheet: ReviewSheet) -> bytes:
    """The form as CSV in UTF-8 with a byte order mark; a `'` precedes what a spreadsheet would take for a formula."""
    stream = io.StringIO(BOM)
    stream.seek(0, io.SEEK_END)
    columns = [column.name for column in list_columns(sheet)]
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([neutralize(name) for name in columns])
    for row in list_rows(sheet):
        cells = (row.cells.get(name, "") for name in columns)
        writer.writerow([neutralize(cell) if isinstance(cell, str) else cell for cell in cells])
    return stream.getvalue().encode("utf-8", "backslashreplace")


SHEET, GUIDELINES = "review", "guidelines"
_LONG_AGO = datetime(2000, 1, 1)
_WIDTHS: Mapping[str, int] = {
    NUMBER: 5, "question": 34, "answer": 60, "claim": 40, COMMENT: 28, ANNOTATOR: 12, "contexts": 90, "reference": 40,
    "query_id": 12,
}  # fmt: skip
_USUAL_WIDTH = 18
_GUIDELINES_WIDTH = 110
_LINE, _TALLEST = 15.0, 400.0
"""The height of a line, and of the tallest row, in points. A spreadsheet allows 409."""
_HEAD = 4 * _LINE
_MOST_HINT = 255
_FROZEN_COLUMNS = 1


def write_xlsx(sheet: ReviewSheet) -> bytes:
    """The form as a workbook. The same sheet gives the same bytes.

    Raises UsageError: XlsxWriter is not installed. Raises DataError: the form has more rows than a workbook can hold.
    """
    check_installed()
    import xlsxwriter

    stream, rows = BytesIO(), [*list_rows(sheet)]
    if len(rows) >= MOST_ROWS:
        raise DataError(f"the form has {len(rows)} rows, more than a workbook can hold; choose fewer answers")
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(stream, {**options, "in_memory": True}) as workbook:
        workbook.set_properties({"created": _LONG_AGO})
        styles = _Styles(workbook)
        _write_form(workbook.add_worksheet(SHEET), list_columns(sheet), rows, styles)
        _write_guidelines(workbook.add_worksheet(GUIDELINES), sheet, styles)
    return stream.getvalue()


class _Styles:
    """The formats of cells."""

    def __init__(self, workbook: Any) -> None:
        shared = {"text_wrap": True, "valign": "top"}
        line = {"border": 1, "border_color": "#BFBFBF"}
        self.head = workbook.add_format({**shared, **line, "bold": True, "bg_color": "#E7E6E6"})
        self.asked = workbook.add_format({**shared, **line, "bold": True, "bg_color": "#FFE699"})
        self.read = workbook.add_format({**shared, **line})
        self.fill = workbook.add_format({**shared, **line, "locked": False, "bg_color": "#FFF9E5"})
        self.closed = workbook.add_format({**shared, **line, "bg_color": "#D9D9D9"})
        self.title = workbook.add_format({"bold": True, "font_size": 14})
        self.plain = workbook.add_format(shared)
        self.name = workbook.add_format({**shared, "bold": True})


def _write_form(sheet: Any, columns: Sequence[FormColumn], rows: Sequence[FormRow], styles: _Styles) -> None:
    sheet.freeze_panes(1, _FROZEN_COLUMNS)
    for at, column in enumerate(columns):
        hidden = {"hidden": True} if column.use == "keep" and column.name != "query_id" else {}
        sheet.set_column(at, at, _find_width(column), None, hidden)
        sheet.write_string(0, at, fit_cell(column.name), styles.asked if column.use == "fill" else styles.head)
        if column.criterion is not None:
            sheet.write_comment(0, at, _explain(column.criterion), {"x_scale": 3, "y_scale": 3})
    sheet.set_row(0, _HEAD)
    for number, row in enumerate(rows, 1):
        shown = (one for one in columns if one.use == "read")
        sheet.set_row(number, _measure((row.cells.get(one.name, ""), _find_width(one)) for one in shown))
        for at, column in enumerate(columns):
            _write_cell(sheet, number, at, row.cells.get(column.name, ""), _style(column, row, styles))
    for at, column in enumerate(columns):
        if column.criterion is not None:
            for first, last in _list_runs(rows, column.criterion.name):
                sheet.data_validation(first, at, last, at, _offer(column.criterion))
    sheet.autofilter(0, 0, len(rows), len(columns) - 1)
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    sheet.repeat_rows(0)
    sheet.protect(options={"format_columns": True, "format_rows": True, "autofilter": True, "format_cells": True})


def _find_width(column: FormColumn) -> int:
    if column.criterion is not None:
        return max(_USUAL_WIDTH, 4 + max(map(len, column.criterion.choices)))
    return _WIDTHS.get(column.name, _USUAL_WIDTH)


def _measure(cells: Iterable[tuple[object, int]]) -> float:
    """The height that shows texts in cells of these widths. Not all spreadsheets find it themselves."""
    lines = (sum(1 + len(line) // width for line in str(text).split("\n")) for text, width in cells)
    return min(_TALLEST, _LINE * max(lines))


def _style(column: FormColumn, row: FormRow, styles: _Styles) -> Any:
    if column.use != "fill":
        return styles.read
    is_asked = column.criterion is None or column.criterion.name in row.asked
    return styles.fill if is_asked else styles.closed


def _write_cell(sheet: Any, row: int, column: int, value: str | int | float, style: Any) -> None:
    if isinstance(value, str):
        if value:
            sheet.write_string(row, column, fit_cell(value), style)
        else:
            sheet.write_blank(row, column, None, style)
    else:
        sheet.write_number(row, column, value, style)


def _list_runs(rows: Sequence[FormRow], name: str) -> Iterator[tuple[int, int]]:
    """The first and the last row of each run of rows that ask about a criterion; the header is row 0."""
    for is_asked, run in groupby(range(1, len(rows) + 1), lambda number: name in rows[number - 1].asked):
        if is_asked:
            numbers = [*run]
            yield numbers[0], numbers[-1]


def _offer(criterion: ReviewCriterion) -> dict[str, Any]:
    """The drop-down list of a criterion, with what is asked as a hint."""
    return {
        "validate": "list",
        "source": list(criterion.choices),
        "input_title": criterion.name[:32],
        "input_message": criterion.question[:_MOST_HINT],
        "error_title": "Not on the scale",
        "error_message": f"Choose one of: {', '.join(criterion.choices)}. Leave the cell empty if you cannot decide.",
    }


def _explain(criterion: ReviewCriterion) -> str:
    return f"{criterion.question}\n\n{criterion.guidelines}"


def _write_guidelines(sheet: Any, sheet_of: ReviewSheet, styles: _Styles) -> None:
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    sheet.set_column(0, 0, 22)
    sheet.set_column(1, 1, _GUIDELINES_WIDTH)
    sheet.write_string(0, 0, "Guidelines", styles.title)
    lines = [("How", _HOW), ("In general", sheet_of.guidelines)]
    lines += [(one.name, f"{_explain(one)}\n\nValues: {', '.join(one.choices)}") for one in sheet_of.criteria]
    for number, (name, text) in enumerate(lines, 2):
        sheet.set_row(number, _measure([(text, _GUIDELINES_WIDTH)]) + _LINE)
        sheet.write_string(number, 0, fit_cell(name), styles.name)
        sheet.write_string(number, 1, fit_cell(text), styles.plain)
    sheet.protect()


_HOW = (
    f"Fill in the yellow cells of the sheet '{SHEET}': choose a value from each list, and write your name into the "
    f"column '{ANNOTATOR}'. Leave a cell empty if you cannot decide, and write why into '{COMMENT}'. Save the file and "
    "send it back; it is read by: rageval-spec review import FILE -o labels.csv"
)


VERDICT = "verdict"
"""The control for claims; the task says which metric they belong to."""
STUDIO_COMMENT = "comment"
SHOWS_JUDGE = "saw_judge"
"""The part of a task's data that says that people see what the judge says; a part of labels has the same name."""
CONTROLS = "controls"
"""The part of a task's data that has the criterion of each control, as the header of a form names it."""
_NAME = compile_later(r"[A-Za-z_][A-Za-z0-9_-]*")
_RESERVED = (
    VERDICT, STUDIO_COMMENT, "guidelines", "question", "answer", "claim_text", "contexts", "reference", "judge",
)  # fmt: skip


def write_tasks(sheet: ReviewSheet) -> bytes:
    """The tasks as JSON: one for each answer, or one for each claim if people judge claim by claim.

    With the judge, its verdict on a claim is a prediction, and its values of an answer are shown.

    Raises UsageError: the sheet asks about whole answers and about claims, which need different forms.
    """
    return dump_visible([*_list_tasks(sheet)]).encode("utf-8", "backslashreplace")


def write_config(sheet: ReviewSheet) -> bytes:
    """The labelling configuration of these tasks as XML."""
    return ("\n".join(_list_tags(sheet)) + "\n").encode("utf-8", "backslashreplace")


def name_controls(sheet: ReviewSheet) -> dict[str, str]:
    """The control of each criterion, by the criterion's name; a name that XML cannot have gets a number instead."""
    return {
        one.name: one.name if _NAME.fullmatch(one.name) and one.name not in _RESERVED else f"criterion_{number}"
        for number, one in enumerate(sheet.criteria, 1)
    }


def _list_tasks(sheet: ReviewSheet) -> Iterator[dict[str, Any]]:
    by_claim = _is_by_claim(sheet)
    for number, task in enumerate(sheet.tasks, 1):
        if not by_claim:
            yield {"data": _describe(sheet, task, number, None)}
        for criterion, claim in sheet.questions_of(task) if by_claim else ():
            if claim is not None:
                data = {**_describe(sheet, task, number, claim), "metric": criterion.name}
                yield {"data": data, **(_predict(claim) if sheet.shows_judge else {})}


def _is_by_claim(sheet: ReviewSheet) -> bool:
    kinds = {one.kind == "claims" for one in sheet.criteria}
    if len(kinds) > 1:
        claims = ", ".join(one.name for one in sheet.criteria if one.kind == "claims")
        raise UsageError(
            f"a project of Label Studio has one form: ask about whole answers, or claim by claim ({claims}), and write "
            "the other into a second file"
        )
    return True in kinds


def _describe(sheet: ReviewSheet, task: ReviewTask, number: int, claim: ReviewClaim | None) -> dict[str, Any]:
    shown = [show(task.question), show(task.answer), "" if claim is None else show(claim.text)]
    data: dict[str, Any] = {
        "no": number,
        "question": shown[0],
        "answer": shown[1],
        "contexts": show(join_contexts(task)) or "(none)",
        "reference": show("\n".join(task.references)) or "(none)",
        "dataset": task.dataset,
        "system": task.system,
        "query_id": task.query_id,
        "answer_digest": task.answer_digest,
        "slices": list(task.slices),
        "reason": task.reason,
        "probability": task.probability,
        ROW: FormToken.of(task, claim, shown).encode(),
    }
    if claim is not None:
        data |= {"claim": claim.number, "claim_text": shown[2]}
    else:
        controls = name_controls(sheet)
        data[CONTROLS] = {controls[one.name]: name_column(one) for one in sheet.criteria}
    if sheet.shows_judge:
        data[SHOWS_JUDGE] = "yes"
    if sheet.shows_judge and claim is None:
        told = (f"{name}: {'no value' if value is None else f'{value:.3g}'}" for name, value in task.judged.items())
        data["judge"] = ", ".join(told) or "(nothing)"
    return data


def _predict(claim: ReviewClaim) -> dict[str, Any]:
    if claim.verdict is None:
        return {}
    result = {
        "from_name": VERDICT,
        "to_name": "claim_text",
        "type": "choices",
        "value": {"choices": [claim.verdict]},
    }
    score = {} if claim.score is None else {"score": claim.score}
    return {"predictions": [{"model_version": "judge", **score, "result": [result]}]}


def _list_tags(sheet: ReviewSheet) -> Iterator[str]:
    by_claim = _is_by_claim(sheet)
    target = "claim_text" if by_claim else "answer"
    yield "<View>"
    yield from _show("Question", "question")
    yield from _show("Answer", "answer")
    if by_claim:
        yield from _show("Claim", "claim_text")
    if sheet.shows_judge and not by_claim:
        yield from _show("The judge", "judge")
    yield '  <Header value="Guidelines" size="5"/>'
    yield _tell_all("guidelines", sheet.guidelines)
    controls = name_controls(sheet)
    asked = [(VERDICT, sheet.criteria[0])] if by_claim else [(controls[one.name], one) for one in sheet.criteria]
    for control, criterion in asked:
        yield from _ask(control, criterion, target)
    yield '  <Header value="Comment" size="5"/>'
    yield f'  <TextArea name="{STUDIO_COMMENT}" toName="{target}" rows="2" editable="true" maxSubmissions="1"/>'
    yield from _show("Contexts", "contexts")
    yield from _show("Reference", "reference")
    yield "</View>"


def _show(title: str, name: str) -> Iterator[str]:
    yield f'  <Header value={_quote(title)} size="5"/>'
    yield f'  <View style="white-space: pre-wrap"><Text name="{name}" value="${name}"/></View>'


def _tell_all(name: str, text: str) -> str:
    """A text that all tasks share, as `Text`: a `Header` would be larger than what people judge."""
    return f'  <View style="white-space: pre-wrap"><Text name="{name}" value={_quote(text)}/></View>'


def _ask(control: str, criterion: ReviewCriterion, target: str) -> Iterator[str]:
    yield f'  <Header value={_quote(criterion.question)} size="5"/>'
    yield _tell_all(f"about_{control}", criterion.guidelines)
    yield f'  <Choices name="{control}" toName="{target}" choice="single" showInline="true">'
    yield from (f"    <Choice value={_quote(choice)}/>" for choice in criterion.choices)
    yield "  </Choices>"


def _quote(text: str) -> str:
    """`text` as the value of an attribute. A leading `$` would name a part of the task."""
    visible = show(text)
    return quoteattr(f" {visible}" if visible.startswith("$") else visible)
