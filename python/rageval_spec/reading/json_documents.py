"""A file with one JSON document: its rows with their lines, and what it says about itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from rageval_spec.errors import DataError
from rageval_spec.reading.files import text_lines
from rageval_spec.reading.row_shapes import Shape, ShapeError, complete_row, find_remarks, find_shape, take_rows


class NotOneDocumentError(DataError):
    """A file has several JSON documents, one per line."""


class Document(NamedTuple):
    """A parsed document.

    Attributes:
        rows: the line number of each row, and the row. Reading them raises `DataError` for a row that is no object.
        remarks: what else the document says at its top, such as its version.
    """

    rows: Iterator[tuple[int, dict[str, Any]]]
    remarks: dict[str, Any]


def read_document(path: Path) -> Document:
    """The rows and the remarks of a JSON file.

    The rows are a list of objects, alone or under a key such as `test_cases`; a list of values for each column; or
    `columns` with names and `data` with lists. Any other object is a single row.

    Raises:
        NotOneDocumentError: the file has one JSON object per line.
        DataError: it is not JSON, or has no rows; with `file:line:column`.
    """
    text = "\n".join(line for _, line in text_lines(path, longest=None))
    try:
        whole = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            raise NotOneDocumentError(f"{path}: one JSON object per line") from error
        raise DataError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise DataError(f"{path}: the JSON has too many lists and objects inside one another") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from error
    try:
        shape = find_shape(whole)
    except ShapeError as error:
        raise DataError(f"{path}:1: {error}") from error
    return Document(_place_rows(path, text, whole, shape), find_remarks(shape, whole))


def refuse_constant(word: str) -> NoReturn:
    """Refuse NaN and infinity, which JSON does not have.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{word} is not a JSON number; write null")


def _place_rows(path: Path, text: str, whole: Any, shape: Shape) -> Iterator[tuple[int, dict[str, Any]]]:
    value, start = whole, _skip_space(text, 0)
    for key in shape.path:
        value, start = value[key], _find_member(text, start, key)
    line, counted = 1, 0
    rows = take_rows(shape, value)
    for offset in _offsets(text, start, shape):
        line, counted = line + text.count("\n", counted, offset), offset
        try:
            row = complete_row(shape, whole, next(rows))
        except ShapeError as error:
            raise DataError(f"{path}:{line}: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}:{line}: expected a list of JSON objects, not {json.dumps(row)[:60]}")
        yield line, row


def _offsets(text: str, start: int, shape: Shape) -> Iterator[int]:
    """Where each row begins in valid JSON; `start` is the offset of the value with the rows."""
    if shape.kind == "single":
        yield start
        return
    inner = {"columns": shape.column, "split": "data"}.get(shape.kind)
    at = start if inner is None else _find_member(text, start, inner)
    if text[at] == "[":
        yield from (offset for offset, _ in _items(text, at))
    else:
        yield from (offset for _, offset, _ in _members(text, at))


def _find_member(text: str, start: int, wanted: str) -> int:
    """The offset of the value of a key. Of a key that is repeated, JSON keeps the last."""
    return [offset for key, offset, _ in _members(text, start) if key == wanted][-1]


def _members(text: str, start: int) -> Iterator[tuple[str, int, Any]]:
    """Key, offset of the value, and value of an object in valid JSON."""
    decoder, at = json.JSONDecoder(), _skip_space(text, start + 1)
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        offset = _skip_space(text, _skip_space(text, at) + 1)
        value, at = decoder.raw_decode(text, offset)
        yield key, offset, value
        at = _skip_comma(text, at)


def _items(text: str, start: int) -> Iterator[tuple[int, Any]]:
    """Offset and value of each item of a list in valid JSON."""
    decoder, at = json.JSONDecoder(), _skip_space(text, start + 1)
    while text[at] != "]":
        value, end = decoder.raw_decode(text, at)
        yield at, value
        at = _skip_comma(text, end)


def _skip_comma(text: str, at: int) -> int:
    at = _skip_space(text, at)
    return _skip_space(text, at + 1) if text[at] == "," else at


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
