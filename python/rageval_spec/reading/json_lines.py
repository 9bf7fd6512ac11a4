"""JSON Lines: an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rageval_spec.errors import DataError
from rageval_spec.reading.files import text_lines
from rageval_spec.reading.records import Column, Kind, Records, choose_keys, with_absent

if TYPE_CHECKING:
    import polars as pl

NOT_AN_ID = r"^(?:true|false|-?\d+\.\d+|-?\d+(?:\.\d+)?[eE][+-]?\d+|[\[{].*)$"
"""Text that polars also gives for values that are neither text nor a whole number."""


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of each line; blank lines are left out.

    Raises:
        DataError: a line that is not one JSON object, with `file:line:column`; a file without any object.
    """
    empty = True
    for number, text in text_lines(path):
        if text and not text.isspace():
            yield number, _json_object(f"{path}:{number}", text)
            empty = False
    if empty:
        raise DataError(f"{path}: the file has blank lines only")


def read_json_lines(path: Path, columns: Sequence[Column]) -> Records:
    """The columns of a JSON Lines file, all of them String; `1.0` as an id is `1`.

    polars reads the file at once. Where it refuses, or could have taken a list for text, the rows are read one by
    one, which finds the line to blame or gives them after all. The first object decides which of a column's known
    keys is meant, so it must have the required ones.

    Raises:
        DataError: no objects, a line that is not one, a required key that is not there, a value of the wrong type.
    """
    line, first = next(json_objects(path))
    keys = choose_keys(f"{path}:{line}", [column for column in columns if column.required], list(first))
    for column in columns:
        if not column.required:
            keys[column] = next((name for name in column.known if name in first), column.known[0])
    frame = _scan(path, keys)
    if frame is None:
        frame = _parse(path, keys)
    for column, key in keys.items():
        if column.mapped and frame[column.name].null_count() == frame.height:
            raise DataError(f"{path}: no line has the key '{key}'; {column.advice}")
    return Records(with_absent(frame, columns), lambda row: f"{path}:{_line_of_object(path, row)}")


def text_of(place: str, what: str, kind: Kind, value: object) -> str | None:
    """A JSON value as text, or None for null.

    Raises:
        DataError: a value that the kind does not take, such as a list, or text with half a surrogate pair; `place`
            and `what` begin the message.
    """
    if isinstance(value, str):
        return _whole_text(place, what, value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and (kind != "id" or value.is_integer()):
        return str(int(value)) if kind == "id" else repr(value)
    wanted = {"id": "text or an integer", "text": "text", "number": "a number"}[kind]
    shown = json.dumps(value, ensure_ascii=False)
    raise DataError(f"{place}: {what} must be {wanted}, not {shown[:60]}{'...' if len(shown) > 60 else ''}")


def _whole_text(place: str, what: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{place}: {what} has half a surrogate pair, \\u{ord(text[error.start]):x}") from error
    return text


def _scan(path: Path, keys: Mapping[Column, str]) -> pl.DataFrame | None:
    import polars as pl

    schema = dict.fromkeys(keys.values(), pl.String)
    chosen = [pl.col(key).alias(column.name) for column, key in keys.items()]
    try:
        frame = pl.scan_ndjson(path, schema=schema).select(chosen).collect()
    except (pl.exceptions.PolarsError, OSError):
        return None
    return None if any(_doubtful(frame[column.name], column) for column in keys) else frame


def _doubtful(values: pl.Series, column: Column) -> bool:
    """Whether polars may have made text of what is none: a list, a truth value, half a surrogate pair (as NUL)."""
    if values.str.contains("\0", literal=True).any():
        return True
    if column.kind == "id":
        return bool(values.str.contains(NOT_AN_ID).any())
    if column.kind == "text":
        bracketed = values.filter(values.str.starts_with("[") | values.str.starts_with("{"))
        return any(_is_container(text) for text in bracketed)
    return False


def _is_container(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(path: Path, keys: Mapping[Column, str]) -> pl.DataFrame:
    import polars as pl

    values: dict[str, list[str | None]] = {column.name: [] for column in keys}
    for number, found in json_objects(path):
        for column, key in keys.items():
            values[column.name].append(text_of(f"{path}:{number}", f"'{key}'", column.kind, found.get(key)))
    return pl.DataFrame(values, schema=dict.fromkeys(values, pl.String))


def _json_object(place: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise DataError(f"{place}:{error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{place}: each line must be a JSON object in braces, not {text.strip()[:60]}")
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _line_of_object(path: Path, row: int) -> int:
    filled = (number for number, text in text_lines(path) if text and not text.isspace())
    return next(number for index, number in enumerate(filled) if index == row)
