"""Rows of Excel workbooks (`.xlsx`): a header, then a row for each record.

A workbook is a ZIP archive of XML. Before its values are read, this module refuses archives and sheets that would
fill the memory, and finds cells whose value a reader would silently leave empty or change. It takes from the XML what
readers of values do not say: formats, faults and extents.
"""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.parsers import expat

from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import DataError
from rageval_spec.kernels.inputs import ALWAYS_READ, MOST_EXPANSION
from rageval_spec.libraries import compile_later
from rageval_spec.reading.column_names import QUESTIONS
from rageval_spec.reading.formats.text_files import ForeignFileError, check_file, name_content
from rageval_spec.wording import list_names

_EXACT_DIGITS = 10**15


class SheetRows(NamedTuple):
    """The rows of a sheet: the place of each, and its cells by column; `header` is the number of a row."""

    sheet: str
    header: int
    rows: list[tuple[str, dict[str, Any]]]


def read_workbook_rows(path: Path, sheet: str | None = None, *, is_first: bool = False) -> SheetRows:
    """The rows of a sheet; those without any value are skipped.

    The header is the first row that is not empty; a title above it, with a value in one column only, is skipped. A
    merged cell has its value in each row that it covers. Whole numbers have no fraction, a number keeps the leading
    zeros that its format shows (`007`), and dates and times are text in ISO 8601 format. Without a name, the sheet is
    the only visible one with rows, or the only one of these that has a column with a known name of questions, or the
    first; with `is_first`, it is the first in any case.

    Raises DataError, with the sheet and the cell: the file is not a workbook; it has no such sheet, or several with
    questions; a sheet has no rows, a name twice, a formula without a value, or a number with more digits than Excel
    keeps.
    """
    workbook = read_workbook(path)
    if is_first and sheet is None:
        return _read_sheet(path, workbook, workbook.sheets[0])
    if sheet is not None:
        found = next((part for part in workbook.sheets if part.name == sheet), None)
        if found is None:
            there = list_names([f"'{part.name}'" for part in workbook.sheets])
            raise DataError(f"{path}: there is no sheet '{sheet}'; the sheets are {there}")
        return _read_sheet(path, workbook, found)
    return _choose_sheet(path, [_try_sheet(path, workbook, part) for part in workbook.sheets if part.is_visible])


class _EmptySheetError(DataError):
    """A sheet has no rows below its header."""


def _try_sheet(path: Path, workbook: Workbook, part: SheetPart) -> SheetRows | DataError:
    try:
        return _read_sheet(path, workbook, part)
    except DataError as error:
        return error


def _choose_sheet(path: Path, sheets: Sequence[SheetRows | DataError]) -> SheetRows:
    filled = [found for found in sheets if isinstance(found, SheetRows)]
    asking = [found for found in filled if any(name.casefold() in QUESTIONS for name in found.rows[0][1])]
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
    with _open(path, f"{place} cannot be read") as calamine:
        found = calamine.get_sheet_by_name(part.name)
        cells, merged = found.to_python(skip_empty_area=False), found.merged_cell_ranges or ()
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
                rows.append((f"{place}, row {number + 1}", row))
    if not rows:
        raise _EmptySheetError(f"{place} has only a header")
    return SheetRows(part.name, header + 1, rows)


@contextmanager
def _open(path: Path, failed: str) -> Iterator[Any]:
    """The workbook; `failed` begins the message if what is done with it fails."""
    try:
        import python_calamine
    except ModuleNotFoundError as error:
        raise DataError(f"{path}: to read Excel files, run: pip install 'rageval-spec[xlsx]'") from error
    try:
        yield python_calamine.CalamineWorkbook.from_path(str(path))
    except (python_calamine.CalamineError, OSError, IndexError) as error:
        raise DataError(f"{failed}: {error}") from error


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


MOST_CELLS = 20_000_000
"""The most cells of a sheet, counted from A1 to its last cell with a value. Empty cells between them take memory."""
_DEFLATE_EXPANDS = 1032
_CHUNK = 2**16
_CELL = compile_later(r"([A-Z]{1,3})([0-9]{1,7})")
_PADDED = compile_later(r"0{2,}")
_PERCENT = compile_later(r"0(\.0+)?%")
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
    """What a workbook says of itself: its sheets, and by the number of a cell style how this shows numbers.

    `padding` is the number of digits of a format such as `000`. It `recalculates` if its formulas have no values yet,
    because a program wrote it and Excel has not opened it.
    """

    sheets: list[SheetPart]
    padding: dict[str, int] = field(default_factory=dict)
    percent: frozenset[str] = frozenset()
    recalculates: bool = False


@dataclass(slots=True)
class Cells:
    """The cells of a sheet that need care, by row and column from 0.

    `padded` is the number of digits that a number is shown with (`007`), and `faults` what is wrong with a cell.
    """

    padded: dict[tuple[int, int], int] = field(default_factory=dict)
    percent: set[tuple[int, int]] = field(default_factory=set)
    faults: dict[tuple[int, int], str] = field(default_factory=dict)


def read_workbook(path: Path) -> Workbook:
    """The sheets and the formats of a workbook. Raises DataError: it is none, or would fill the memory."""
    start = check_file(path)
    if not start.startswith(b"PK"):
        what, hint = name_content(start) or ("text", "write the format that it has, or save it as .xlsx")
        raise ForeignFileError(path, None, f"this is {what}, not an Excel workbook (.xlsx)", hint)
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_bomb(path, archive)
            return _read_parts(archive)
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, NotImplementedError, expat.ExpatError) as error:
        raise DataError(f"{path}: this is not a workbook that can be read: {error}") from error


def inspect_cells(path: Path, workbook: Workbook, sheet: SheetPart) -> Cells:
    """Find the cells that need care. Raises DataError: the sheet is damaged, or spans more than `MOST_CELLS`."""
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

    def refuse_entity(*_: object) -> None:
        raise ValueError("its XML declares entities, which Excel never does")

    parser.EntityDeclHandler = refuse_entity
    while chunk := stream.read(_CHUNK):
        parser.Parse(chunk)
    parser.Parse(b"", True)
