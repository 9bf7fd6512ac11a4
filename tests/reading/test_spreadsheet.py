"""Sheets of workbooks: header, cells, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import xlsxwriter

from rageval_spec.errors import DataError
from rageval_spec.reading.spreadsheet import read_sheet


def write(folder: Path, **sheets: list[list[object]]) -> Path:
    path = folder / "labels.xlsx"
    with xlsxwriter.Workbook(str(path)) as workbook:
        for name, rows in sheets.items():
            sheet = workbook.add_worksheet(name)
            for place, row in enumerate(rows):
                for column, cell in enumerate(row):
                    if cell is not None:
                        sheet.write(place, column, cell)
    return path


def test_rows_have_the_names_of_the_header_and_the_number_that_excel_shows(tmp_path: Path) -> None:
    path = write(tmp_path, labels=[[None], ["id", "value", None], ["q1", 0.5, "x"], [None, None], ["q2", True]])
    assert [*read_sheet(path)] == [
        (f"{path}: row 3", {"id": "q1", "value": 0.5}),
        (f"{path}: row 5", {"id": "q2", "value": True}),
    ]


def test_another_sheet_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, guide=[["text"], ["Read first."]], labels=[["id"], ["q1"]])
    assert [row for _, row in read_sheet(path, "labels")] == [{"id": "q1"}]
    with pytest.raises(DataError, match=r"there is no sheet 'label'; the sheets are guide or labels"):
        [*read_sheet(path, "label")]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the sheet has no rows"),
        ([["id", "value"]], "the sheet has only a header"),
        ([["id", "id"], ["q1", "q2"]], "two columns have the name 'id'; rename one"),
    ],
)
def test_a_sheet_without_records_is_refused(tmp_path: Path, rows: list[list[object]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        [*read_sheet(write(tmp_path, labels=rows))]


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.xlsx"
    path.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(DataError, match=r"labels\.xlsx: this is not a workbook that can be read"):
        [*read_sheet(path)]
    with pytest.raises(DataError, match="no such file"):
        [*read_sheet(tmp_path / "none.xlsx")]
