"""A sheet as an Excel workbook: drop-down lists, a frozen header, wrapped texts, and the guidelines on a second sheet.

Only the cells to be filled in can be changed. The library XlsxWriter is the extra `xlsx` of this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from io import BytesIO
from typing import Any

from rageval_spec.errors import DataError
from rageval_spec.reports.shared.sheets import MOST_ROWS, check_installed, fit_cell
from rageval_spec.review.criteria import ReviewCriterion
from rageval_spec.review.forms.rows import ANNOTATOR, COMMENT, NUMBER, Column, Row, list_columns, list_rows
from rageval_spec.review.tasks import ReviewSheet

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

    Raises:
        UsageError: XlsxWriter is not installed.
        DataError: the form has more rows than a workbook can hold.
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


def _write_form(sheet: Any, columns: Sequence[Column], rows: Sequence[Row], styles: _Styles) -> None:
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


def _find_width(column: Column) -> int:
    if column.criterion is not None:
        return max(_USUAL_WIDTH, 4 + max(map(len, column.criterion.choices)))
    return _WIDTHS.get(column.name, _USUAL_WIDTH)


def _measure(cells: Iterable[tuple[object, int]]) -> float:
    """The height that shows texts in cells of these widths. Not all spreadsheets find it themselves."""
    lines = (sum(1 + len(line) // width for line in str(text).split("\n")) for text, width in cells)
    return min(_TALLEST, _LINE * max(lines))


def _style(column: Column, row: Row, styles: _Styles) -> Any:
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


def _list_runs(rows: Sequence[Row], name: str) -> Iterator[tuple[int, int]]:
    """The first and the last row of each run of rows that ask about a criterion; the header is row 0."""
    start: int | None = None
    for number, row in enumerate(rows, 1):
        is_asked = name in row.asked
        if is_asked and start is None:
            start = number
        if not is_asked and start is not None:
            yield start, number - 1
            start = None
    if start is not None:
        yield start, len(rows)


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
