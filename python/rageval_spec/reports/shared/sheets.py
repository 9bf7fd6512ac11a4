"""Writes tables as Excel workbooks. The library XlsxWriter is the extra `xlsx` of this package."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

MOST_CHARACTERS = 32_767
"""The most UTF-16 units of a cell."""
MOST_ROWS = 1_048_576
"""The most rows of a sheet, with the header."""
_LONG_AGO = datetime(2000, 1, 1)
_CONTROLS = {code: "\N{REPLACEMENT CHARACTER}" for code in range(32) if chr(code) not in "\t\n\r"}


def check_installed() -> None:
    """Check that workbooks can be written.

    Raises:
        UsageError: XlsxWriter is not installed.
    """
    if find_spec("xlsxwriter") is None:
        raise UsageError("an .xlsx file needs XlsxWriter; install it with: pip install 'rageval-spec[xlsx]'")


def write_workbook(blocks: Iterable[pl.DataFrame], stream: IO[bytes]) -> None:
    """Write blocks of one table as a workbook, row by row, so that memory holds only a row.

    Rows that do not fit on a sheet go on further ones. A text that is too long for a cell is cut, and says so.
    """
    import xlsxwriter

    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(stream, options) as workbook:
        workbook.set_properties({"created": _LONG_AGO})
        head = workbook.add_format({"bold": True})
        sheet, row = None, MOST_ROWS
        for block in blocks:
            if sheet is None:
                sheet, row = _begin_sheet(workbook, block.columns, head), 1
            for values in block.iter_rows():
                if row == MOST_ROWS:
                    sheet, row = _begin_sheet(workbook, block.columns, head), 1
                for column, value in enumerate(values):
                    _write_cell(sheet, row, column, value)
                row += 1


def _begin_sheet(workbook: Any, columns: Iterable[str], head: Any) -> Any:
    sheet = workbook.add_worksheet()
    sheet.freeze_panes(1, 0)
    for column, name in enumerate(columns):
        sheet.write_string(0, column, fit_cell(name), head)
    return sheet


def _write_cell(sheet: Any, row: int, column: int, value: object) -> None:
    if isinstance(value, bool | str):
        sheet.write_string(row, column, fit_cell(str(value)))
    elif value is not None:
        sheet.write_number(row, column, value)


def fit_cell(text: str) -> str:
    """`text` without control characters, cut to what a cell holds, with a note at its end if it was cut."""
    clean = text.translate(_CONTROLS)
    units = clean.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * MOST_CHARACTERS:
        return clean
    note = f"… [cut: the text has {len(text):,} characters]"
    return units[: 2 * (MOST_CHARACTERS - len(note))].decode("utf-16-le", "ignore") + note
