"""Rows with values of any shape, from every format that has rows; and lists that a text holds."""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from rageval_spec.errors import DataError
from rageval_spec.reading.delimited import delimited_objects, header_of, separator_of
from rageval_spec.reading.files import format_of
from rageval_spec.reading.json_lines import json_objects
from rageval_spec.reading.parquet import parquet_columns, parquet_objects

RowFormat = Literal["json", "csv", "parquet"]
_BEGINNINGS_OF_LISTS = ('["', "['", "[{", "[]")


def row_format_of(path: Path) -> RowFormat:
    """What the end of a file's name says; every other name is JSON, lines or a list."""
    found = format_of(path)
    return "csv" if found in ("csv", "tsv") else "parquet" if found == "parquet" else "json"


def read_rows(
    path: Path, form: RowFormat | None = None, separator: str | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place (`file:line`, or `file: row 7`) and the values by name of each row; the values of CSV are all text.

    Raises:
        DataError: no rows, or rows that cannot be read.
    """
    form = form or row_format_of(path)
    if form == "parquet":
        yield from ((f"{path}: row {number}", row) for number, row in parquet_objects(path))
    elif form == "csv":
        rows = delimited_objects(path, separator or separator_of(path))
        yield from ((f"{path}:{line}", dict(row)) for line, row in rows)
    else:
        yield from ((f"{path}:{line}", row) for line, row in json_objects(path))


def first_keys(path: Path, form: RowFormat | None = None, separator: str | None = None) -> list[str]:
    """The names that a file's beginning has: the header, or the keys of the first object.

    Raises:
        DataError: the beginning cannot be read.
    """
    form = form or row_format_of(path)
    if form == "parquet":
        return parquet_columns(path)
    if form == "csv":
        return header_of(path, separator or separator_of(path))
    return list(next(json_objects(path))[1])


def parse_list(place: str, what: str, value: Any) -> Any:
    """The list that a text holds, as JSON or as Python prints one; any other value, and any other text, as it is.

    Raises:
        DataError: a text that begins as a list of texts or objects, and is none: cut off, for instance.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text.startswith(_BEGINNINGS_OF_LISTS):
        return value
    for parse in (json.loads, _parse_printed):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            continue
        if isinstance(found, list):
            return found
    raise DataError(f"{place}: {what} begins as a list and is none; write it as JSON: {text[:60]}")


def _parse_printed(text: str) -> Any:
    """What `print` makes of a list; numpy leaves out the commas, which Python would read as one long text."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = [token for token in tokens if token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)]
    if kept and all(token.type == tokenize.STRING or token.string in ("[", "]", ",") for token in kept):
        flat = "".join(token.string for token in kept if token.string in ("[", "]"))
        if flat == "[]":
            return [ast.literal_eval(token.string) for token in kept if token.type == tokenize.STRING]
    return ast.literal_eval(text)
