"""Fills in forms, as people would."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xlsxwriter
from python_calamine import CalamineWorkbook

from rageval_spec.review.forms import write_csv, write_xlsx
from rageval_spec.review.tasks import ReviewSheet

Fill = Callable[[int, dict[str, Any]], Mapping[str, Any]]
"""Maps the number of a row, from 0, and its cells to what is written into it."""


def fill_csv(sheet: ReviewSheet, path: Path, fill: Fill, *, delimiter: str = ",", encoding: str = "utf-8-sig") -> Path:
    """The form as a spreadsheet would save it."""
    rows = [*csv.DictReader(io.StringIO(write_csv(sheet).decode("utf-8-sig"), newline=""))]
    filled = [{**row, **fill(number, dict(row))} for number, row in enumerate(rows)]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*filled[0]], delimiter=delimiter, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(filled)
    path.write_bytes(text.getvalue().encode(encoding, "replace"))
    return path


def fill_xlsx(sheet: ReviewSheet, path: Path, fill: Fill) -> Path:
    """The workbook with cells filled in; everything else that it has is lost."""
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(write_xlsx(sheet)))
    header, *rows = workbook.get_sheet_by_name("review").to_python()
    with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False}) as copy:
        copy.add_worksheet("guidelines").write(0, 0, "read me")
        page = copy.add_worksheet("review")
        page.write_row(0, 0, header)
        for number, row in enumerate(rows):
            cells = dict(zip(map(str, header), row, strict=True))
            for at, cell in enumerate({**cells, **fill(number, cells)}.values()):
                page.write(number + 1, at, cell)
    return path
