"""CSV and TSV, a header line and then one row per line, and the query files of TREC collections.

TREC's query files have lines of id, tab, text, without a header.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Literal

from rageval_spec.errors import DataError
from rageval_spec.kernels.inputs import GZIP
from rageval_spec.libraries import pl
from rageval_spec.reading.column_names import RecordColumn
from rageval_spec.reading.formats.json_files import gather_batches
from rageval_spec.reading.formats.records import Records, collect_batches, with_absent
from rageval_spec.reading.formats.text_files import find_separator, format_of, refuse_header, text_lines
from rageval_spec.reading.missing_columns import choose_keys

FIELD_LIMIT = 2**31 - 1
_CHUNK = 2**20
_ENCODED = (GZIP, b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf")
_BEGINNING = 1000
"""How many lines show how a header is written."""


def separator_of(path: Path) -> str:
    """A tab if the name ends in `.tsv` (before `.gz` or `.zst`), otherwise a comma."""
    return "\t" if format_of(path) == "tsv" else ","


def choose_separator(path: Path) -> str:
    """What separates the fields: as the name says, unless the header has another separator and not that one."""
    usual = separator_of(path)
    try:
        header = next((text for _, text in text_lines(path) if text.strip()), "").strip()
    except DataError:
        return usual  # told when the file is read
    return usual if usual in header else find_separator(header) or usual


def header_of(path: Path, separator: str) -> list[str]:
    """The names of the columns. Raises DataError: the file cannot be read, or is not in this format."""
    return _read_header(_delimited_rows(path, separator, _BEGINNING), path, separator)[1]


def read_delimited_batches(path: Path, columns: Sequence[RecordColumn], separator: str) -> Iterator[Records]:
    """Read columns of a file with a header line, some megabytes at a time. All are String; an empty field is "".

    Quotes enclose fields as RFC 4180 says; if the separator is a tab, only where they do so in the whole file, as in
    those of spreadsheet programs, and are plain characters elsewhere. Blank lines are skipped. A row with too few
    fields has "" for the rest. polars reads the file. If it fails, the rows are read one by one, which either succeeds
    or finds the faulty line.

    Raises DataError: no rows, a missing required column, a row with too many fields, an open quote.
    """
    line, header = _read_header(_delimited_rows(path, separator), path, separator)
    keys = choose_keys(f"{path}:{line}", columns, header)
    done = 0
    try:
        for frame in collect_batches(_scan(path, keys, separator)):
            yield Records(with_absent(frame, columns), partial(_locate, path, separator, done))
            done += frame.height
    except (pl.exceptions.PolarsError, OSError):
        rows = ((f"{path}:{at}", row) for at, row in delimited_objects(path, separator))
        for records in gather_batches(islice(rows, done, None), keys):
            yield Records(with_absent(records.frame, columns), records.locate)
            done += records.frame.height
    if not done:
        raise DataError(f"{path}: a header and no rows")


def _locate(path: Path, separator: str, start: int, row: int) -> str:
    """The place of a row of the batch that begins with the row `start`."""
    filled = (line for line, fields in _delimited_rows(path, separator) if any(fields))
    return f"{path}:{next(islice(filled, start + row + 1, None))}"


def delimited_objects(path: Path, separator: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and fields by name of each row; an empty or missing field is "", and blank lines are skipped.

    Raises DataError: no rows, a column that is listed twice, a row with too many fields, an open quote.
    """
    rows = _delimited_rows(path, separator)
    line, header = _read_header(rows, path, separator)
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}:{line}: '{twice}' is listed twice")
    empty = True
    for number, fields in rows:
        _check_length(path, number, fields, header)
        if any(fields):
            yield number, dict(zip_longest(header, fields, fillvalue=""))
            empty = False
    if empty:
        raise DataError(f"{path}: a header and no rows")


def _read_header(rows: Iterator[tuple[int, list[str]]], path: Path, separator: str) -> tuple[int, list[str]]:
    number, text = next(((number, text) for number, text in text_lines(path) if text.strip()), (1, ""))
    refuse_header(path, number, text, separator)
    return next(rows, (1, []))


def _check_length(path: Path, line: int, fields: Sequence[str], header: Sequence[str]) -> None:
    if len(fields) > len(header):
        raise DataError(f"{path}:{line}: {len(fields)} fields, but the header has {len(header)}")


def _scan(path: Path, keys: Mapping[RecordColumn, str], separator: str) -> pl.LazyFrame:
    scan = pl.scan_csv(
        path,
        separator=separator,
        quote_char='"' if _has_quoting(path, separator) else None,
        infer_schema=False,
        empty_string_is_null=False,
    )
    filled = pl.any_horizontal(pl.all().fill_null("") != "")
    chosen = [pl.col(key).fill_null("").alias(column.name) for column, key in keys.items()]
    return scan.filter(filled).select(chosen)


def _delimited_rows(path: Path, separator: str, judged: int | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line number and the fields of the header and of each later record, including blank ones.

    `judged` is how many lines decide about quotes between tabs: all, where rows are read and not the header only.
    """
    lines = (text + "\n" for _, text in text_lines(path))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if _has_quoting(path, separator, judged) else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    begin, headed = 1, False
    with _long_fields():
        try:
            for fields in reader:
                headed = headed or any(fields)
                if headed:
                    yield begin, fields
                begin = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}:{begin}: not CSV: {_explain(error)}") from error


def _explain(error: csv.Error) -> str:
    told = str(error)
    if told.startswith("new-line character seen"):
        return "its lines end in carriage returns alone, as on old Macintosh computers; save it as CSV UTF-8"
    return "a quote is never closed" if told == "unexpected end of data" else told


def _has_quoting(path: Path, separator: str, judged: int | None = None) -> bool:
    """Whether quotes enclose fields: always, except that between tabs the whole file must show it.

    There, all rows must be as long as the header. If that holds with quotes as plain characters too, no field may go
    over several lines: two plain quotes far apart would otherwise swallow the rows between them.
    """
    if separator != "\t":
        return True
    if not _may_begin_with_quote(path):
        return False
    plain, quoted, lines, rows, has_quote = set[int](), set[int](), 0, 0, False

    def count() -> Iterator[str]:
        nonlocal lines, has_quote
        for _, text in islice(text_lines(path), judged):
            if text.strip():
                lines, has_quote = lines + 1, has_quote or '"' in text
                plain.add(text.count(separator))
            yield text + "\n"

    with _long_fields():
        try:
            for fields in csv.reader(count(), delimiter=separator, strict=True):
                if any(fields):
                    quoted.add(len(fields))
                    rows += 1
                if len(quoted) > 1:
                    return False
        except csv.Error:
            return False
    return has_quote and (rows == lines or len(plain) > 1)


def _may_begin_with_quote(path: Path) -> bool:
    """Whether a field between tabs begins with a quote; also true if the file would have to be decoded to know."""
    last = b"\n"
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            if last == b"\n" and chunk.startswith(_ENCODED):
                return True
            read = last + chunk
            if b'\t"' in read or b'\n"' in read or b"\0" in read:
                return True
            last = chunk[-1:]
    return False


@contextmanager
def _long_fields() -> Iterator[None]:
    """Allow fields over 128 KiB, which Python's csv module refuses. Its limit applies to the whole process."""
    before = csv.field_size_limit(FIELD_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_pairs(path: Path) -> Records:
    """Read lines `id<TAB>text` with no header as `query_id, text`. Later tabs are text; blank lines are skipped.

    Raises DataError: a line has no tab (with its number), or the file has no pairs.
    """
    lines: list[int] = []
    ids: list[str] = []
    texts: list[str] = []
    for number, line in text_lines(path):
        if not line.strip():
            continue
        query_id, tab, text = line.partition("\t")
        if not tab:
            raise DataError(f"{path}:{number}: no tab; each line must be id, tab, text")
        lines.append(number)
        ids.append(query_id)
        texts.append(text)
    if not lines:
        raise DataError(f"{path}: the file has only blank lines")
    return Records(pl.DataFrame({"query_id": ids, "text": texts}), lambda row: f"{path}:{lines[row]}")
