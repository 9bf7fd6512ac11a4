"""The mix of questions in production: a CSV or TSV file with a row for each kind of question and its share."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from unicodedata import normalize

from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import Diagnostic, Position, SpecError, suggest
from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later
from rageval_spec.reading.formats.delimited import delimited_objects, header_of, separator_of
from rageval_spec.reading.formats.text_files import text_lines

SHARE, COUNT, DATASET, SLICE = "share", "count", "dataset", "slice"
_NUMBERS = (SHARE, COUNT)
_NEAR = 0.001
"""Shares that add up to 1 (or 100%) within this, relatively, were rounded."""
_PLACED = compile_later(r":(?:(\d+):)?(?:(\d+):)? ?(.*)", re.DOTALL)
"""What follows the path in a message: line and column, if they are known, and what is wrong."""
_EXAMPLE = "write a header such as difficulty,share"
LARGEST = 1e15
"""Shares, counts and weights are below this: sums of larger numbers could overflow."""


@dataclass(frozen=True)
class MixRow:
    """One kind of question: its value in each column, "" for none, and its share or count, not scaled."""

    values: Mapping[str, str]
    share: float
    line: int
    dataset: str | None = None

    @property
    def name(self) -> str:
        """`difficulty=hard, language=de`; a slice is called by its name."""
        return _name_kind(self.values)


@dataclass(frozen=True)
class ProductionMix:
    """The rows of a file, each with its share or count.

    Attributes:
        columns: the columns of the questions that tell the kinds apart. The column `slice` names slices of the spec.
        total: what the numbers add up to, if they are shares that add up neither to 1 nor to 100; None for counts.
    """

    path: Path
    columns: tuple[str, ...]
    rows: tuple[MixRow, ...]
    total: float | None = None

    def select(self, dataset: str) -> tuple[MixRow, ...]:
        """The rows of a dataset: those with its name, and those without any."""
        return tuple(row for row in self.rows if row.dataset in (None, dataset))

    def name_kind(self, values: Sequence[str]) -> str:
        """What a row with these values is called."""
        return _name_kind(dict(zip(self.columns, values, strict=True)))

    def diagnose(self, line: int, column: str | None, message: str, hint: str | None = None) -> Diagnostic:
        """A diagnostic at a field of the file, or at the line's first one."""
        return _diagnose(self.path, line, column, message, hint)

    def diagnose_header(self, column: str, message: str, hint: str | None = None) -> Diagnostic:
        """A diagnostic at the name of a column."""
        return _diagnose(self.path, _find_header(self.path), column, message, hint)


def _find_header(path: Path) -> int:
    return next((at for at, text in text_lines(path) if text.strip()), 1)


def _name_kind(values: Mapping[str, str]) -> str:
    return ", ".join(
        value if column == SLICE and value else f"{column}={value}" if value else f"no {column}"
        for column, value in values.items()
    )


def read_mix(path: Path) -> ProductionMix:
    """Read a file. A column `share` (or `count`) has numbers; a column `dataset`, if any, says whose row it is.

    Raises SpecError: the file cannot be read, or has wrong rows; it holds a diagnostic for each.
    """
    try:
        header = [name.strip() for name in header_of(path, separator_of(path))]
        rows = [*delimited_objects(path, separator_of(path))]
    except (DataError, OSError) as error:
        raise SpecError([_explain_unreadable(path, error)]) from error
    numbers = [name for name in _NUMBERS if name in header]
    number = numbers[0] if numbers else None
    if len(numbers) > 1:
        message = "the file has both 'share' and 'count', and they can contradict each other"
        raise SpecError([_diagnose(path, _find_header(path), COUNT, message, "keep one of the two columns")])
    columns = tuple(name for name in header if name not in (*_NUMBERS, DATASET) and name)
    if number is None or not columns:
        raise SpecError([_explain_header(path, header, number)])
    faults: list[Diagnostic] = []
    found = [row for line, fields in rows if (row := _read_row(path, line, fields, number, columns, faults))]
    faults += _find_repeated(path, found)
    if not faults and not any(row.share for row in found):
        faults.append(_diagnose(path, found[0].line, number, f"every {number} is 0", "write the mix of production"))
    if faults:
        raise SpecError(faults)
    return ProductionMix(path, columns, tuple(found), _find_total(found) if number == SHARE else None)


def _explain_unreadable(path: Path, error: DataError | OSError) -> Diagnostic:
    """The error as a diagnostic, at the line and the column that its message begins with, if any."""
    if isinstance(error, OSError):
        message = f"the file cannot be read: {error.strerror or error}"
        return Diagnostic(str(path), Position(1, 1), message, "wrong-weights")
    found = _PLACED.fullmatch(str(error).removeprefix(str(path)))
    line, column, message = found.groups() if found is not None else (None, None, str(error))
    told, separated, _ = message.partition("; write separator")
    hint = "save it with commas, or with tabs as .tsv" if separated else None
    return Diagnostic(str(path), Position(int(line or 1), int(column or 1)), told, "wrong-weights", hint)


def _explain_header(path: Path, header: Sequence[str], number: str | None) -> Diagnostic:
    line = _find_header(path)
    if number is None:
        near = next((name for name in header if suggest(name, _NUMBERS) or name in ("weight", "weights")), None)
        hint = f"rename '{near}' to 'share'" if near else _EXAMPLE
        return _diagnose(path, line, near, "no column has the shares in production", hint)
    return _diagnose(path, line, None, f"there is no column besides '{number}' that distinguishes questions", _EXAMPLE)


def _read_row(
    path: Path, line: int, fields: Mapping[str, str], number: str, columns: Sequence[str], faults: list[Diagnostic]
) -> MixRow | None:
    plain = {name.strip(): normalize("NFC", " ".join(text.split())) for name, text in fields.items() if name}
    share = _read_number(plain.get(number, ""))
    if share is None:
        shown = f"'{plain[number]}' is not a {number}" if plain.get(number) else f"the row has no {number}"
        hint = "write a number that is not negative, such as 0.25 or 25%"
        faults.append(_diagnose(path, line, number, shown, hint))
        return None
    return MixRow({name: plain.get(name, "") for name in columns}, share, line, plain.get(DATASET) or None)


def _read_number(text: str) -> float | None:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return number if 0 <= number < LARGEST else None


def _find_repeated(path: Path, rows: Sequence[MixRow]) -> Iterator[Diagnostic]:
    first: dict[tuple[object, ...], MixRow] = {}
    for row in rows:
        known = first.setdefault((row.dataset, *row.values.values()), row)
        if known is not row:
            yield _diagnose(path, row.line, None, f"{row.name} is already on line {known.line}", "keep one of the two")


def _find_total(rows: Sequence[MixRow]) -> float | None:
    """What shares add up to, of the first dataset whose shares add up neither to 1 nor to 100."""
    for dataset in dict.fromkeys(row.dataset for row in rows):
        total = fsum(row.share for row in rows if row.dataset in (None, dataset))
        if all(abs(total - whole) > _NEAR * whole for whole in (1, 100)):
            return total
    return None


def _diagnose(path: Path, line: int, column: str | None, message: str, hint: str | None = None) -> Diagnostic:
    text = next((text for number, text in text_lines(path) if number == line), "").rstrip("\r\n")
    place, width = _find_field(path, text, column)
    return Diagnostic(
        str(path), Position(line, place + 1, max(1, width)), message, "wrong-weights", hint, source_line=text
    )


def _find_field(path: Path, text: str, column: str | None) -> tuple[int, int]:
    """Where a field begins in a line of text, and its width; the first field without a column."""
    separator = separator_of(path)
    try:
        header = [name.strip() for name in header_of(path, separator)]
        fields = next(csv.reader([text], delimiter=separator), [])
    except (DataError, OSError, csv.Error):
        return 0, 1
    index = header.index(column) if column in header else 0
    start = 0
    for number, field in enumerate(fields[: index + 1]):
        found = text.find(field, start)
        if number == index:
            return max(0, found), len(field)
        start = max(start, found + len(field))
        start = text.find(separator, start) + 1 or len(text)
    return len(text), 1
