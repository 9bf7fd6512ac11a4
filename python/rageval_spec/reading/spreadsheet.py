"""Sheets of Excel workbooks (`.xlsx`): a header in the first row that is not empty, and a row for each record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rageval_spec.errors import DataError
from rageval_spec.reading.files import check_file
from rageval_spec.reading.workbook_parts import refuse_bomb
from rageval_spec.wording import list_choices

SUFFIXES = ("xlsx", "xlsm", "xls", "ods")
"""The suffixes of the workbooks that can be read."""


def read_sheet(path: Path, sheet: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place (`labels.xlsx: row 7`) and the named cells of each row. Rows without any cell are skipped.

    Numbers are floats, dates are dates, and empty cells are None. Columns without a name in the header are ignored.

    Args:
        path: the workbook.
        sheet: the name of its sheet; by default the first.

    Raises:
        DataError: the file is not a workbook, it has no such sheet, or the sheet has no rows; or the package that reads
            workbooks is not installed.
    """
    rows = [(number, row) for number, row in enumerate(_read_cells(path, sheet), 1) if any(cell != "" for cell in row)]
    if len(rows) < 2:
        raise DataError(f"{path}: the sheet has {'only a header' if rows else 'no rows'}")
    _, first = rows[0]
    header = [str(cell).strip() for cell in first]
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: two columns have the name '{twice}'; rename one")
    for number, row in rows[1:]:
        cells = {name: None if cell == "" else cell for name, cell in zip(header, row, strict=False) if name}
        if any(cell is not None for cell in cells.values()):
            yield f"{path}: row {number}", cells


def _read_cells(path: Path, sheet: str | None) -> list[list[Any]]:
    check_file(path)
    refuse_bomb(path)
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ModuleNotFoundError as error:
        raise DataError(f"{path}: to read Excel files, run: pip install 'rageval-spec[xlsx]'") from error
    try:
        workbook = CalamineWorkbook.from_path(str(path))
        names = workbook.sheet_names
        if sheet is not None and sheet not in names:
            raise DataError(f"{path}: there is no sheet '{sheet}'; the sheets are {list_choices(names)}")
        found = workbook.get_sheet_by_name(sheet if sheet is not None else names[0])
        return found.to_python(skip_empty_area=False)
    except (CalamineError, OSError, IndexError) as error:
        raise DataError(f"{path}: this is not a workbook that can be read: {error}") from error
