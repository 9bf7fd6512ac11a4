"""Workbooks that would fill the memory or that are damaged are refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.spreadsheet import read_sheet
from rageval_spec.reading.workbook_parts import inspect_cells, name_cell, read_workbook, refuse_bomb
from tests.reading.workbook_files import change_part, write_workbook

SHEET = "xl/worksheets/sheet1.xml"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_workbook(tmp_path / "golden.xlsx", S=[["id", "question"], [7, "why?"]])


def add_bomb(path: Path) -> None:
    """A part of 300 MiB."""
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
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
        (b"question,answer\n", "this is text, not an Excel workbook (.xlsx); name its format in 'use:'"),
        (b"\xd0\xcf\x11\xe0", "this is an Excel workbook (XLS, or one with a password), not an Excel workbook (.xlsx)"),
    ],
)
def test_another_file_is_named(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_workbook(path)
    assert message in str(error.value)


def test_workbooks_of_labels_are_checked_for_bombs_too(path: Path) -> None:
    add_bomb(path)
    with pytest.raises(DataError, match="the workbook expands to more than 256 MiB"):
        list(read_sheet(path))
    path.write_text("text")
    refuse_bomb(path)


def test_a_damaged_sheet_is_an_error_with_its_name(path: Path) -> None:
    change_part(path, {SHEET: ("</sheetData>", "<sheetData>")})
    workbook = read_workbook(path)
    with pytest.raises(DataError, match="sheet 'S' is damaged: mismatched tag"):
        inspect_cells(path, workbook, workbook.sheets[0])
