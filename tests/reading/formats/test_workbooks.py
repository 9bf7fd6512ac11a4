"""Questions in Excel: the cells as Excel shows them, and a clear error with its cell for what it does not show.

Workbooks that would fill the memory or that are damaged are refused.

Sheets of workbooks: header, cells, and what is wrong with a file.
"""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from rageval_spec.errors import DataError
from rageval_spec.reading.formats.workbooks import (
    inspect_cells,
    name_cell,
    read_workbook,
    read_workbook_rows,
)
from tests.reading.workbook_files import change_part, write_workbook

SHEET = "xl/worksheets/sheet1.xml"
HEADER = ["id", "question", "answer"]


def rows_of(path: Path, sheet: str | None = None) -> list[dict[str, Any]]:
    return [row for _, row in read_workbook_rows(path, sheet).rows]


def test_cells_are_read_as_excel_shows_them(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        HEADER,
        ["007", "text", True],
        [(7, "000"), "padded", (datetime.date(2026, 1, 5), "dd.mm.yyyy")],
        [7, "whole", (datetime.datetime(2026, 1, 5, 13, 30), "dd.mm.yyyy hh:mm")],
        [8, "fraction", 0.25],
        [None, None, None],
        [9, "time", (datetime.time(13, 30), "hh:mm")],
        [10, "percentage", (0.07, "0%")],
        [11, "with digits", (0.8525, "0.00%")],
        [12, "computed", 0.1 + 0.2],
    ]
    assert rows_of(write_workbook(tmp_path / "golden.xlsx", golden=rows)) == [
        {"id": "007", "question": "text", "answer": True},
        {"id": "007", "question": "padded", "answer": "2026-01-05"},
        {"id": 7, "question": "whole", "answer": "2026-01-05 13:30:00"},
        {"id": 8, "question": "fraction", "answer": 0.25},
        {"id": 9, "question": "time", "answer": "13:30:00"},
        {"id": 10, "question": "percentage", "answer": "7%"},
        {"id": 11, "question": "with digits", "answer": "85.25%"},
        {"id": 12, "question": "computed", "answer": 0.3},
    ]


def test_a_title_above_the_header_is_skipped_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "golden.xlsx", Set=[["Golden set"], [None], ["id", "question"], ["a", "why?"]])
    found = read_workbook_rows(path)
    assert (found.sheet, found.header) == ("Set", 3)
    assert found.rows == [(f"{path}: sheet 'Set', row 4", {"id": "a", "question": "why?"})]


def test_a_single_column_of_questions_has_its_header_in_the_first_row(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "golden.xlsx", Set=[["question"], ["why?"], ["how?", "a note"]])
    assert rows_of(path) == [{"question": "why?"}, {"question": "how?"}]


def test_a_merged_cell_counts_for_all_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "golden.xlsx"
    with xlsxwriter.Workbook(str(path)) as workbook:
        sheet = workbook.add_worksheet("golden")
        sheet.write_row("A1", ["question", "category", "note"])
        sheet.write_column("A2", ["why?", "how?", "who?"])
        sheet.merge_range("B2:C3", "cause")
    assert rows_of(path) == [
        {"question": "why?", "category": "cause", "note": None},
        {"question": "how?", "category": "cause", "note": None},
        {"question": "who?", "category": None, "note": None},
    ]


def test_the_sheet_with_questions_is_found(tmp_path: Path) -> None:
    notes, golden = [["read", "me"], ["a", "b"]], [["Question", "answer"], ["why?", "so"]]
    path = write_workbook(tmp_path / "golden.xlsx", Notes=notes, Golden=golden, Empty=[])
    assert read_workbook_rows(path).sheet == "Golden"
    assert read_workbook_rows(path, "Notes").sheet == "Notes"
    with pytest.raises(DataError, match=r"there is no sheet 'Gold'; the sheets are 'Notes', 'Golden' and 'Empty'"):
        read_workbook_rows(path, "Gold")
    two = write_workbook(tmp_path / "two.xlsx", A=golden, B=golden)
    with pytest.raises(DataError, match="the sheets 'A' and 'B' have questions; write sheet: A"):
        read_workbook_rows(two)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "sheet 'S' has no rows"),
        ([HEADER], "sheet 'S' has only a header"),
        ([["id", "id"], ["a", "b"]], "sheet 'S': cells A1 and B1 both name a column 'id'; rename one"),
        (
            [HEADER, ["a", "why?", "=1+1"]],
            "sheet 'S', cell C2: the formula has no value yet; open the workbook in a spreadsheet program and save it",
        ),
        (
            [HEADER, [1234567890123456789, "why?"]],
            "sheet 'S', cell A2: Excel keeps 15 digits of a number, and 1234567890123457024 has more; format",
        ),
    ],
)
def test_what_cannot_be_right_is_an_error_with_its_cell(tmp_path: Path, rows: list[list[Any]], message: str) -> None:
    path = write_workbook(tmp_path / "golden.xlsx", S=rows)
    with pytest.raises(DataError) as error:
        read_workbook_rows(path)
    assert str(error.value).startswith(f"{path}: {message}")


def test_formulas_keep_the_value_that_a_spreadsheet_program_saved(tmp_path: Path) -> None:
    path = tmp_path / "golden.xlsx"
    with xlsxwriter.Workbook(str(path)) as workbook:
        sheet = workbook.add_worksheet("S")
        sheet.write_row("A1", HEADER)
        sheet.write_row("A2", ["a", "why?"])
        sheet.write_formula("C2", '="be"&"cause"', None, "because")
    assert rows_of(path)[0]["answer"] == "because"


def test_a_cell_with_an_error_and_a_formula_without_a_value_are_not_empty(tmp_path: Path) -> None:
    path = tmp_path / "golden.xlsx"
    with xlsxwriter.Workbook(str(path)) as workbook:
        sheet = workbook.add_worksheet("S")
        sheet.write_row("A1", HEADER)
        sheet.write_formula("C2", "=1/0", None, "#DIV/0!")
    with pytest.raises(DataError, match=r"cell C2: the cell shows the error #DIV/0!; correct its formula"):
        read_workbook_rows(path)
    change_part(path, {SHEET: ('t="e"><f>1/0</f><v>#DIV/0!</v>', "><f>1/0</f><v></v>")})
    with pytest.raises(DataError, match="cell C2: the formula has no value yet"):
        read_workbook_rows(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_workbook(tmp_path / "golden.xlsx", S=[["id", "question"], [7, "why?"]])


def add_bomb(path: Path) -> None:
    """A part of 300 MiB."""
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("xl/media/bomb.xml", "w") as part,
    ):
        for _ in range(300):
            part.write(b"\0" * 2**20)


@pytest.mark.parametrize(("row", "column", "name"), [(0, 0, "A1"), (4, 2, "C5"), (0, 26, "AA1"), (9, 16383, "XFD10")])
def test_cells_have_the_names_of_excel(row: int, column: int, name: str) -> None:
    assert name_cell(row, column) == name


def test_a_bomb_is_refused_before_it_is_read(path: Path) -> None:
    add_bomb(path)
    with pytest.raises(DataError, match=r"golden\.xlsx: the workbook expands to more than 256 MiB; save it with less"):
        read_workbook(path)


def test_a_bomb_that_lies_about_its_size_is_refused(path: Path) -> None:
    add_bomb(path)
    content = path.read_bytes()
    size = (300 * 2**20).to_bytes(4, "little")
    path.write_bytes(content.replace(size, (1000).to_bytes(4, "little")))
    with pytest.raises(DataError, match="the workbook expands to more than 256 MiB"):
        read_workbook(path)


def test_a_stray_value_far_away_is_refused(path: Path) -> None:
    far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    change_part(path, {SHEET: ("</sheetData>", far)})
    workbook = read_workbook(path)
    with pytest.raises(DataError, match=r"sheet 'S' spans 1,048,576 rows and 16,384 columns; delete what is far"):
        inspect_cells(path, workbook, workbook.sheets[0])


def test_entities_are_refused(path: Path) -> None:
    declared = '<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a "x">]>'
    old = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    change_part(path, {"xl/workbook.xml": (old, declared)})
    with pytest.raises(DataError, match="its XML declares entities, which Excel never does"):
        read_workbook(path)


def test_half_a_workbook_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(
        DataError, match=r"golden\.xlsx: this is not a workbook that can be read: File is not a zip file"
    ):
        read_workbook(path)
    path.write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        read_workbook(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>log in</html>", "this is an HTML page, not an Excel workbook (.xlsx); download the data"),
        (b"question,answer\n", "this is text, not an Excel workbook (.xlsx); write the format that it has"),
        (b"\xd0\xcf\x11\xe0", "this is an Excel workbook (XLS, or one with a password), not an Excel workbook (.xlsx)"),
    ],
)
def test_another_file_is_named(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_workbook(path)
    assert message in str(error.value)


def test_a_damaged_sheet_is_an_error_with_its_name(path: Path) -> None:
    change_part(path, {SHEET: ("</sheetData>", "<sheetData>")})
    workbook = read_workbook(path)
    with pytest.raises(DataError, match="sheet 'S' is damaged: mismatched tag"):
        inspect_cells(path, workbook, workbook.sheets[0])


def test_the_first_sheet_can_be_wanted(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "labels.xlsx", labels=[["id"], ["q1"]], guide=[["text"], ["Read first."]])
    assert [row for _, row in read_workbook_rows(path, is_first=True).rows] == [{"id": "q1"}]
    assert [row for _, row in read_workbook_rows(path, "guide", is_first=True).rows] == [{"text": "Read first."}]
