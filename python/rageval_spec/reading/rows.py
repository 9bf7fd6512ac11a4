"""Reads rows with values of any type from every supported format, and parses lists that are stored as text."""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from rageval_spec.errors import DataError
from rageval_spec.reading.conversations import ask_last_turn
from rageval_spec.reading.delimited import choose_separator, delimited_objects, header_of
from rageval_spec.reading.files import check_file, format_of
from rageval_spec.reading.json_lines import json_objects, merge_variables
from rageval_spec.reading.parquet import parquet_columns, parquet_objects
from rageval_spec.reading.recognition import decode_beginning, find_separator, name_content

RowFormat = Literal["json", "csv", "parquet", "xlsx", "yaml"]
_SUFFIXES: Mapping[str, RowFormat] = {
    **dict.fromkeys(("csv", "tsv"), "csv"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("xlsx", "xlsm"), "xlsx"),
    "parquet": "parquet",
}
_JSON = ("json", "jsonl", "ndjson")
_BEGINNINGS_OF_LISTS = ('["', "['", "[{", "[]")


def row_format_of(path: Path) -> RowFormat:
    """The format that a file's suffix says; any other suffix means JSON (lines or a list)."""
    return _SUFFIXES.get(format_of(path), "json")


def recognise_format(path: Path) -> RowFormat:
    """The format that a file's content shows, or else its suffix; JSON if neither does."""
    try:
        start = check_file(path) if path.is_file() else b""
    except DataError:
        start = b""
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK\x03\x04"):
        return "xlsx"
    named = row_format_of(path)
    if format_of(path) in (*_SUFFIXES, *_JSON) and (named != "xlsx" or not start):
        return named
    first = decode_beginning(start).lstrip()
    if first.startswith(("{", "[")):
        return "json"
    line = first.partition("\n")[0].rstrip("\r")
    if line.startswith(("- ", "---", "#")) or line.endswith(":"):
        return "yaml"
    return "csv" if find_separator(line) is not None and name_content(start) is None else named


def read_rows(
    path: Path, form: RowFormat | None = None, separator: str | None = None, sheet: str | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the location (`file:line`, or `file: row 7`) and the named values of each row. CSV values are all text.

    An object's `vars` (promptfoo) in JSON or YAML are merged into its row; its own keys win.

    Raises:
        DataError: no rows, or rows that cannot be read.
    """
    form = form or row_format_of(path)
    if form == "parquet":
        yield from ((f"{path}: row {number}", row) for number, row in parquet_objects(path))
    elif form == "csv":
        rows = delimited_objects(path, separator or choose_separator(path))
        yield from ((f"{path}:{line}", dict(row)) for line, row in rows)
    elif form == "xlsx":
        from rageval_spec.reading.workbooks import read_workbook_rows

        found = read_workbook_rows(path, sheet)
        yield from ((f"{path}: sheet '{found.sheet}', row {number}", row) for number, row in found.rows)
    elif form == "yaml":
        from rageval_spec.reading.yaml_documents import read_yaml_document

        rows = read_yaml_document(path).rows
        yield from ((f"{path}:{line}", ask_last_turn(merge_variables(row))) for line, row in rows)
    else:
        yield from ((f"{path}:{line}", row) for line, row in json_objects(path))


def first_keys(path: Path, form: RowFormat | None = None, separator: str | None = None) -> list[str]:
    """The column names at the beginning of a file: the header, or the keys of the first object.

    Raises:
        DataError: the beginning cannot be read.
    """
    form = form or row_format_of(path)
    if form == "parquet":
        return parquet_columns(path)
    if form == "csv":
        return header_of(path, separator or choose_separator(path))
    if form == "json":
        return list(next(json_objects(path))[1])
    return list(next(read_rows(path, form))[1])


def parse_list(place: str, what: str, value: Any) -> Any:
    """Parse a list written as JSON or as Python prints it. Any other text or value is returned unchanged.

    Raises:
        DataError: a text begins like a list of texts or objects but is not one, for instance because it is cut off.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text.startswith(_BEGINNINGS_OF_LISTS):
        return value
    for parse in (json.loads, parse_printed):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            continue
        if isinstance(found, list):
            return found
    raise DataError(f"{place}: {what} begins like a list but is not one; write it as JSON: {text[:60]}")


def parse_printed(text: str) -> Any:
    """Parse a printed list. numpy omits the commas, and Python would join the items into one long text."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = [token for token in tokens if token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)]
    if kept and all(token.type == tokenize.STRING or token.string in ("[", "]", ",") for token in kept):
        flat = "".join(token.string for token in kept if token.string in ("[", "]"))
        if flat == "[]":
            return [ast.literal_eval(token.string) for token in kept if token.type == tokenize.STRING]
    return ast.literal_eval(text)
