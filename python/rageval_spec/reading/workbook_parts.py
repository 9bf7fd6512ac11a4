"""What an Excel workbook (`.xlsx`) says in its XML that readers of its values do not: formats, faults and extents.

A workbook is a ZIP archive of XML. Before its values are read, this module refuses archives and sheets that would fill
the memory, and finds cells whose value a reader would silently leave empty or change.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

from rageval_spec.errors import DataError
from rageval_spec.kernels.bounds import ALWAYS_READ, MOST_EXPANSION
from rageval_spec.reading.files import check_file
from rageval_spec.reading.recognition import ForeignFileError, name_content

MOST_CELLS = 20_000_000
"""The most cells of a sheet, counted from A1 to its last cell with a value. Empty cells between them take memory."""
_DEFLATE_EXPANDS = 1032
_CHUNK = 2**16
_CELL = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_PADDED = re.compile(r"0{2,}")
_PERCENT = re.compile(r"0(\.0+)?%")
_USUAL_CODES = {"9": "0%", "10": "0.00%"}
"""Formats that workbooks name by number without writing them out."""


@dataclass(frozen=True, slots=True)
class SheetPart:
    """A sheet: its name, whether it is shown, and the name of its XML in the archive."""

    name: str
    is_visible: bool
    part: str


@dataclass(slots=True)
class Workbook:
    """What a workbook says of itself.

    Attributes:
        sheets: the sheets in their order.
        padding: the number of digits that each cell style with a format such as `000` shows, by the style's number.
        percent: the cell styles that show a number as a percentage, by number.
        recalculates: whether its formulas have no values yet, because a program wrote it and Excel has not opened it.
    """

    sheets: list[SheetPart]
    padding: dict[str, int] = field(default_factory=dict)
    percent: frozenset[str] = frozenset()
    recalculates: bool = False


@dataclass(slots=True)
class Cells:
    """The cells of a sheet that need care.

    Attributes:
        padded: the number of digits that a number is shown with (`007`), by row and column from 0.
        percent: where a number is shown as a percentage: row and column from 0.
        faults: what is wrong with a cell, by row and column from 0.
    """

    padded: dict[tuple[int, int], int] = field(default_factory=dict)
    percent: set[tuple[int, int]] = field(default_factory=set)
    faults: dict[tuple[int, int], str] = field(default_factory=dict)


def read_workbook(path: Path) -> Workbook:
    """The sheets and the formats of a workbook.

    Raises:
        DataError: the file is not a workbook, or expands to more than the memory should hold.
    """
    start = check_file(path)
    if not start.startswith(b"PK"):
        what, hint = name_content(start) or ("text", "name its format in 'use:', or let use: golden recognise it")
        raise ForeignFileError(path, None, f"this is {what}, not an Excel workbook (.xlsx)", hint)
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_bomb(path, archive)
            return _read_parts(archive)
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, NotImplementedError, expat.ExpatError) as error:
        raise DataError(f"{path}: this is not a workbook that can be read: {error}") from error


def refuse_bomb(path: Path) -> None:
    """Refuse a workbook that expands to more than the memory should hold. Other files are left to the reader.

    Raises:
        DataError: the workbook expands too far.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_bomb(path, archive)
    except (zipfile.BadZipFile, OSError, NotImplementedError):
        return


def inspect_cells(path: Path, workbook: Workbook, sheet: SheetPart) -> Cells:
    """Find the cells of a sheet that need care.

    Raises:
        DataError: the sheet is damaged, or spans more cells than `MOST_CELLS`.
    """
    reader = _SheetReader(f"{path}: sheet '{sheet.name}'", workbook)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(sheet.part) as stream:
            _parse(stream, reader.begin, reader.end, reader.add_text)
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, expat.ExpatError) as error:
        raise DataError(f"{path}: sheet '{sheet.name}' is damaged: {error}") from error
    return reader.cells


def name_cell(row: int, column: int) -> str:
    """`C5` for row 4 and column 2, counted from 0."""
    letters, rest = "", column + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{row + 1}"


def _refuse_bomb(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse an archive that expands too far. Its directory can lie, so a part that could is expanded to be sure."""
    most = max(ALWAYS_READ, MOST_EXPANSION * path.stat().st_size)
    total = 0
    for part in archive.infolist():
        could = part.compress_size * _DEFLATE_EXPANDS > most
        total += max(part.file_size, _measure(archive, part, most) if could else 0)
        if total > most:
            message = f"the workbook expands to more than {most // 2**20} MiB; save it with less in it, or as CSV"
            raise DataError(f"{path}: {message}")


def _measure(archive: zipfile.ZipFile, part: zipfile.ZipInfo, most: int) -> int:
    told, part.file_size = part.file_size, most + 1
    size = 0
    try:
        with archive.open(part) as stream:
            while size <= most and (chunk := stream.read(_CHUNK)):
                size += len(chunk)
    except (zipfile.BadZipFile, EOFError):
        pass  # a wrong checksum at the end, or cut off: the reader tells
    finally:
        part.file_size = told
    return size


def _read_parts(archive: zipfile.ZipFile) -> Workbook:
    targets: dict[str, str] = {}
    sheets: list[tuple[str, bool, str]] = []
    workbook = Workbook([])

    def relate(name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship":
            target = attributes.get("Target", "")
            targets[attributes.get("Id", "")] = target[1:] if target.startswith("/") else f"xl/{target}"

    def list_sheet(name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            relation = next((value for key, value in attributes.items() if key.endswith(":id")), "")
            sheets.append((attributes.get("name", ""), attributes.get("state", "visible") == "visible", relation))
        elif name == "calcPr":
            workbook.recalculates = attributes.get("fullCalcOnLoad") in ("1", "true")

    for part, begin in (("xl/_rels/workbook.xml.rels", relate), ("xl/workbook.xml", list_sheet)):
        with archive.open(part) as stream:
            _parse(stream, begin)
    workbook.sheets = [SheetPart(name, shown, targets[relation]) for name, shown, relation in sheets]
    if "xl/styles.xml" in archive.namelist():
        with archive.open("xl/styles.xml") as stream:
            codes = _read_codes(stream)
        workbook.padding = {style: len(code) for style, code in codes.items() if _PADDED.fullmatch(code)}
        workbook.percent = frozenset(style for style, code in codes.items() if _PERCENT.fullmatch(code))
    return workbook


def _read_codes(stream: IO[bytes]) -> dict[str, str]:
    """The format of numbers of each cell style, by the style's number; "" for most of those that Excel has built in."""
    codes = dict(_USUAL_CODES)
    styles: list[str] = []
    inside: list[str] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        inside.append(name)
        if name == "numFmt":
            codes[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name == "xf" and "cellXfs" in inside:
            styles.append(attributes.get("numFmtId", ""))

    _parse(stream, begin, lambda _: inside.pop())
    return {str(number): codes.get(code, "") for number, code in enumerate(styles)}


class _SheetReader:
    """Reads the cells of a sheet as a parser meets them."""

    def __init__(self, place: str, workbook: Workbook) -> None:
        self.place, self.workbook, self.cells = place, workbook, Cells()
        self.row, self.column = -1, -1
        self.last_row, self.last_column = 0, 0
        self.kind, self.style = "", ""
        self.has_formula, self.in_value = False, False
        self.value: str | None = None

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        if name == "row":
            self.row = int(attributes["r"]) - 1 if "r" in attributes else self.row + 1
            self.column = -1
        elif name == "c":
            self._place_cell(attributes.get("r"))
            self.kind, self.style = attributes.get("t", "n"), attributes.get("s", "")
            self.has_formula, self.value = False, None
        elif name == "f":
            self.has_formula = True
        elif name in ("v", "is"):
            self.value, self.in_value = "", True

    def end(self, name: str) -> None:
        if name in ("v", "is"):
            self.in_value = False
        elif name == "c":
            self._finish_cell()

    def add_text(self, text: str) -> None:
        if self.in_value and self.value is not None:
            self.value += text

    def _place_cell(self, reference: str | None) -> None:
        found = None if reference is None else _CELL.fullmatch(reference)
        if found is None:
            self.column += 1
            return
        self.column = 0
        for letter in found[1]:
            self.column = 26 * self.column + ord(letter) - 64
        self.column, self.row = self.column - 1, int(found[2]) - 1

    def _finish_cell(self) -> None:
        at = (self.row, self.column)
        if self.value:
            self.last_row, self.last_column = max(self.last_row, self.row), max(self.last_column, self.column)
            if (self.last_row + 1) * (self.last_column + 1) > MOST_CELLS:
                extent = f"{self.last_row + 1:,} rows and {self.last_column + 1:,} columns"
                raise DataError(f"{self.place} spans {extent}; delete what is far from the table")
        is_default = self.value == "0" and self.workbook.recalculates
        is_unknown = is_default or (not self.value and self.kind != "str")
        if self.has_formula and is_unknown:
            self.cells.faults[at] = (
                "the formula has no value yet; open the workbook in a spreadsheet program and save it"
            )
        elif self.kind == "e":
            self.cells.faults[at] = f"the cell shows the error {self.value}; correct its formula"
        elif self.kind == "n" and self.style in self.workbook.padding:
            self.cells.padded[at] = self.workbook.padding[self.style]
        elif self.kind == "n" and self.style in self.workbook.percent:
            self.cells.percent.add(at)


def _parse(stream: IO[bytes], begin: Any, end: Any = None, text: Any = None) -> None:
    """Call the functions for each element and text. Prefixes of element names are dropped; entities are refused."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: begin(name.rpartition(":")[2], attributes)
    if end is not None:
        parser.EndElementHandler = lambda name: end(name.rpartition(":")[2])
    if text is not None:
        parser.CharacterDataHandler = text
    parser.EntityDeclHandler = _refuse_entity
    while chunk := stream.read(_CHUNK):
        parser.Parse(chunk)
    parser.Parse(b"", True)


def _refuse_entity(*_: object) -> None:
    raise ValueError("its XML declares entities, which Excel never does")
