"""Rows of Excel workbooks (`.xlsx`) with questions or answers, with their cells as Excel shows them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rageval_spec.errors import DataError
from rageval_spec.reading.layouts import QUESTIONS
from rageval_spec.reading.workbook_parts import Cells, SheetPart, Workbook, inspect_cells, name_cell, read_workbook
from rageval_spec.wording import list_names

WORKBOOKS = ("xlsx", "xlsm")
"""The suffixes of the workbooks that can hold questions."""
_EXACT_DIGITS = 10**15


class SheetRows(NamedTuple):
    """The rows of a sheet.

    Attributes:
        sheet: the name of the sheet.
        header: the number of the row with the names of the columns, as Excel shows it.
        names: the names of the columns.
        rows: the number of each row, and its cells by the names of their columns.
    """

    sheet: str
    header: int
    names: list[str]
    rows: list[tuple[int, dict[str, Any]]]


def read_workbook_rows(path: Path, sheet: str | None = None) -> SheetRows:
    """The rows of a sheet. Rows without any value are skipped.

    The header is the first row that is not empty; a title above it, with a value in one column only, is skipped.
    A merged cell has its value in each row that it covers. Whole numbers have no fraction, a number keeps
    the leading zeros that its format shows (`007`), and dates and times are text in ISO 8601 format.

    Args:
        path: the workbook.
        sheet: the name of its sheet. By default the only visible sheet with rows, or the only one of these that has a
            column with a known name of questions, or the first.

    Raises:
        DataError: the file is not a workbook; it has no such sheet, or several with questions; a sheet has no rows, a
            name twice, a formula without a value, or a number with more digits than Excel keeps. The message has the
            sheet and the cell.
    """
    workbook = read_workbook(path)
    if sheet is not None:
        return _read_sheet(path, workbook, _find_sheet(path, workbook, sheet))
    return _choose_sheet(path, [_try_sheet(path, workbook, part) for part in workbook.sheets if part.is_visible])


def _find_sheet(path: Path, workbook: Workbook, name: str) -> SheetPart:
    found = next((part for part in workbook.sheets if part.name == name), None)
    if found is None:
        there = list_names([f"'{part.name}'" for part in workbook.sheets])
        raise DataError(f"{path}: there is no sheet '{name}'; the sheets are {there}")
    return found


class _EmptySheetError(DataError):
    """A sheet has no rows below its header."""


def _try_sheet(path: Path, workbook: Workbook, part: SheetPart) -> SheetRows | DataError:
    try:
        return _read_sheet(path, workbook, part)
    except DataError as error:
        return error


def _choose_sheet(path: Path, sheets: Sequence[SheetRows | DataError]) -> SheetRows:
    filled = [found for found in sheets if isinstance(found, SheetRows)]
    asking = [found for found in filled if any(name.casefold() in QUESTIONS for name in found.names)]
    if len(asking) > 1:
        names = " and ".join(f"'{found.sheet}'" for found in asking[:3])
        raise DataError(f"{path}: the sheets {names} have questions; write sheet: {asking[0].sheet}")
    faults = [found for found in sheets if isinstance(found, DataError)]
    grave = [fault for fault in faults if not isinstance(fault, _EmptySheetError)]
    if asking or (filled and not grave):
        return (asking or filled)[0]
    raise (grave or faults or [DataError(f"{path}: the workbook has no visible sheet")])[0]


def _read_sheet(path: Path, workbook: Workbook, part: SheetPart) -> SheetRows:
    place = f"{path}: sheet '{part.name}'"
    care = inspect_cells(path, workbook, part)
    cells, merged = _read_cells(path, part.name)
    filled = [number for number, row in enumerate(cells) if any(cell != "" for cell in row)]
    if not filled:
        raise _EmptySheetError(f"{place} has no rows")
    header = _find_header(cells, filled)
    names = _read_names(place, header, cells[header])
    wrong = min((at for at in care.faults if at[0] > header and at[1] in names.values()), default=None)
    if wrong is not None:
        raise DataError(f"{place}, cell {name_cell(*wrong)}: {care.faults[wrong]}")
    _spread(cells, merged, header)
    rows = []
    for number in filled:
        if number > header:
            row = {name: _read_cell(place, care, (number, at), cells[number][at]) for name, at in names.items()}
            if any(cell is not None for cell in row.values()):
                rows.append((number + 1, row))
    if not rows:
        raise _EmptySheetError(f"{place} has only a header")
    return SheetRows(part.name, header + 1, list(names), rows)


def _read_cells(path: Path, sheet: str) -> tuple[list[list[Any]], Sequence[Any]]:
    """The cells from A1 on, and the corners of merged ranges."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ModuleNotFoundError as error:
        raise DataError(f"{path}: to read Excel files, run: pip install 'rageval-spec[xlsx]'") from error
    try:
        found = CalamineWorkbook.from_path(str(path)).get_sheet_by_name(sheet)
        return found.to_python(skip_empty_area=False), found.merged_cell_ranges or ()
    except (CalamineError, OSError) as error:
        raise DataError(f"{path}: sheet '{sheet}' cannot be read: {error}") from error


def _find_header(cells: Sequence[Sequence[Any]], filled: Sequence[int]) -> int:
    """The first row with several values, if those above it have one that is no column's name; else the first row."""
    several = next((number for number in filled if sum(cell != "" for cell in cells[number]) > 1), filled[0])
    titles = [str(cell).strip().casefold() for number in filled if number < several for cell in cells[number]]
    return filled[0] if any(title in QUESTIONS for title in titles) else several


def _read_names(place: str, number: int, header: Sequence[Any]) -> dict[str, int]:
    names: dict[str, int] = {}
    for at, cell in enumerate(header):
        name = str(cell).strip()
        if name in names:
            first, second = name_cell(number, names[name]), name_cell(number, at)
            raise DataError(f"{place}: cells {first} and {second} both name a column '{name}'; rename one")
        if name:
            names[name] = at
    return names


def _spread(cells: list[list[Any]], merged: Sequence[Any], header: int) -> None:
    """Give the value of each merged cell below the header to all rows that it covers, but to its first column only."""
    for (top, left), (bottom, _) in merged:
        for row in range(top + 1, min(bottom + 1, len(cells))) if top > header else ():
            cells[row][left] = cells[top][left]


def _read_cell(place: str, care: Cells, at: tuple[int, int], cell: Any) -> Any:
    if cell == "":
        return None
    if isinstance(cell, float):
        return _read_number(f"{place}, cell {name_cell(*at)}", care, at, cell)
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ") if cell.time() != datetime.time() else cell.date().isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, datetime.timedelta) else cell


def _read_number(place: str, care: Cells, at: tuple[int, int], cell: float) -> Any:
    """A number with the 15 digits that Excel shows at most: computed cells hold 0.1 + 0.2 as 0.30000000000000004."""
    if at in care.percent:
        return f"{cell * 100:.15g}%"
    if not cell.is_integer():
        return float(f"{cell:.15g}")
    if abs(cell) >= _EXACT_DIGITS:
        message = f"Excel keeps 15 digits of a number, and {int(cell)} has more; format the column as text"
        raise DataError(f"{place}: {message}, then enter it again")
    return f"{int(cell):0{care.padded[at]}d}" if at in care.padded else int(cell)
