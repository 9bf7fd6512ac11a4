"""JSON Lines (one object per line) or, in a file whose name ends in `.json`, the rows of one JSON document.

A document's rows are read with their lines, and with what the document says about itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later, pl
from rageval_spec.reading.column_names import Kind, RecordColumn
from rageval_spec.reading.formats import row_shapes
from rageval_spec.reading.formats.records import Records, join_records, with_absent
from rageval_spec.reading.formats.text_files import (
    BLOCK,
    decode_lines,
    find_encoding,
    format_of,
    is_json,
    refuse_line,
    text_blocks,
    text_lines,
)
from rageval_spec.reading.missing_columns import choose_keys

VARIABLES = "vars"
"""A key whose object is merged into its row, as promptfoo writes it."""
NOT_AN_ID = r"^(?:true|false|-?\d+\.\d+|-?\d+(?:\.\d+)?[eE][+-]?\d+|[\[{].*)$"
"""Text that polars also gives for values that are neither text nor a whole number."""


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and object of each line, or of each row of a JSON document. Blank lines are skipped.

    An object's `vars` (promptfoo) are merged into it; its own keys win. Its question can be the last turn of a
    conversation.

    Raises DataError: a line that is not one JSON object, with `file:line:column`; a file without any object.
    """
    empty = True
    for number, found in _listed_objects(path) if is_list(path) else _line_objects(path, text_lines(path)):
        yield number, _complete(found)
        empty = False
    if empty:
        raise DataError(f"{path}: the file has {'no objects' if is_list(path) else 'only blank lines'}")


def _complete(found: dict[str, Any]) -> dict[str, Any]:
    return row_shapes.ask_last_turn(merge_variables(found))


def merge_variables(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the entries of its `vars` (promptfoo) beside its own keys, which win."""
    variables = row.get(VARIABLES)
    return {**variables, **row} if isinstance(variables, dict) else row


def is_list(path: Path) -> bool:
    """Whether a file's name says that it may hold a list of objects instead of one object per line."""
    return format_of(path) == "json"


def read_remarks(path: Path) -> dict[str, Any]:
    """What a JSON document says about itself beside its rows, such as its version; nothing for JSON Lines."""
    if not is_list(path):
        return {}
    try:
        return read_document(path).remarks
    except (NotOneDocumentError, row_shapes.OtherFilesError):
        return {}


def read_json_lines(path: Path, columns: Sequence[RecordColumn]) -> Records:
    """Read columns of a JSON Lines file at once: the batches of `read_json_batches` together."""
    return join_records([*read_json_batches(path, columns)])


def read_json_batches(path: Path, columns: Sequence[RecordColumn]) -> Iterator[Records]:
    """Read columns of a JSON Lines file, some megabytes at a time. All are String; an id of `1.0` becomes `1`.

    polars reads each block of lines. If it fails, or may have read a list as text, the rows are read one by one,
    which either succeeds or finds the faulty line. The first object decides which of a column's known keys is used, so
    it must have the required ones.

    Raises DataError: no objects, a line that is not an object, a missing required key, a value of the wrong type.
    """
    line, first = next(json_objects(path))
    keys = choose_keys(f"{path}:{line}", [column for column in columns if column.required], list(first))
    for column in columns:
        if not column.required:
            keys[column] = next((name for name in column.known if name in first), column.known[0])
    plain = not (is_list(path) or VARIABLES in first or row_shapes.holds_conversation(first) or find_encoding(path))
    placed = ((f"{path}:{line}", row) for line, row in json_objects(path))
    absent = {column for column in keys if column.mapped}
    for records in _read_blocks(path, keys) if plain else gather_batches(placed, keys):
        absent = {c for c in absent if records.frame[c.name].null_count() == records.frame.height}
        yield Records(with_absent(records.frame, columns), records.locate)
    for column in absent:
        raise DataError(f"{path}: no line has the key '{keys[column]}'; correct '{column.key}'")


def _read_blocks(path: Path, keys: Mapping[RecordColumn, str]) -> Iterator[Records]:
    for line, block in text_blocks(path):
        frame = _scan(block, keys)
        if frame is None:
            rows = _line_objects(path, decode_lines(path, BytesIO(block), line), is_start=False)
            frame = gather_columns(((f"{path}:{number}", _complete(row)) for number, row in rows), keys)
        if frame.height:
            yield Records(frame, partial(_locate_in_block, path, line))


def _locate_in_block(path: Path, line: int, row: int) -> str:
    """The place of a row of the block that begins at a line."""
    block = next(block for number, block in text_blocks(path) if number == line)
    filled = (number for number, text in enumerate(BytesIO(block), line) if not text.isspace())
    return f"{path}:{next(islice(filled, row, None))}"


def text_of(place: str, what: str, kind: Kind, value: object) -> str | None:
    """A JSON value as text, or None for null. Raises DataError: its kind is wrong; `place` and `what` begin it."""
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


def _scan(block: bytes, keys: Mapping[RecordColumn, str]) -> pl.DataFrame | None:
    schema = dict.fromkeys(keys.values(), pl.String)
    chosen = [pl.col(key).alias(column.name) for column, key in keys.items()]
    try:
        frame = pl.scan_ndjson(block, schema=schema).select(chosen).collect()
    except (pl.exceptions.PolarsError, OSError):
        return None
    is_doubtful = any(_doubtful(frame[column.name], column) for column in keys) or _may_repeat(block, frame, keys)
    return None if is_doubtful else frame


def _may_repeat(block: bytes, frame: pl.DataFrame, keys: Mapping[RecordColumn, str]) -> bool:
    """Whether a key may be twice in the object of a line, or in an object inside it: polars would take the first."""
    once = (block.count(json.dumps(key).encode()) == frame[column.name].count() for column, key in keys.items())
    if b"\\u00" not in block and all(once):  # each value has its key once, and no key is written with escapes
        return False
    lines = pl.scan_lines(block)
    again = [pl.col("line").str.count_matches(f"{re.escape(json.dumps(key))}\\s*:") > 1 for key in keys.values()]
    try:
        return bool(lines.select(pl.any_horizontal(again).any()).collect().item())
    except pl.exceptions.PolarsError:
        return True


def _doubtful(values: pl.Series, column: RecordColumn) -> bool:
    """Whether polars may have converted a non-text value to text: a list, a Boolean, half a surrogate pair (as NUL)."""
    if values.str.contains("\0", literal=True).any():
        return True
    if column.required and column.kind == "text" and values.null_count():
        return True  # a later row may have a conversation in the place of a question
    if column.kind == "id":
        return bool(values.str.contains(NOT_AN_ID).any())
    if column.kind == "text":
        bracketed = values.filter(values.str.starts_with("[") | values.str.starts_with("{"))
        return any(map(is_json, bracketed))
    return False


def gather_columns(rows: Iterable[tuple[str, Mapping[str, Any]]], keys: Mapping[RecordColumn, str]) -> pl.DataFrame:
    """The columns of rows with their places, as text."""
    values: dict[str, list[str | None]] = {column.name: [] for column in keys}
    for place, row in rows:
        for column, key in keys.items():
            values[column.name].append(text_of(place, f"'{key}'", column.kind, row.get(key)))
    return pl.DataFrame(values, schema=dict.fromkeys(values, pl.String))


def gather_batches(
    rows: Iterable[tuple[str, Mapping[str, Any]]], keys: Mapping[RecordColumn, str]
) -> Iterator[Records]:
    """As `gather_columns`, some megabytes of text at a time."""
    left = iter(rows)
    while part := [*_take_block(left)]:
        places = [place for place, _ in part]
        yield Records(gather_columns(part, keys), places.__getitem__)


def _take_block(rows: Iterator[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    size = 0
    for place, row in rows:
        yield place, row
        size += len(place) + sum(len(value) for value in row.values() if isinstance(value, str))
        if size > BLOCK:
            return


def _load(path: Path, text: str, line: int | None = None) -> Any:
    """The JSON of a file, or of one of its lines. Raises DataError: it is not JSON, with `file:line:column`."""
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_twice)
    except (ValueError, RecursionError) as error:
        if line is None and getattr(error, "msg", "") == "Extra data" and text.lstrip().startswith("{"):
            raise NotOneDocumentError(f"{path}: one JSON object per line") from error
        raise DataError(f"{path}{_explain(text, line, error)}") from error


def _explain(text: str, line: int | None, error: ValueError | RecursionError) -> str:
    """Where in a file, or in one of its lines, the text is not JSON, and why."""
    if isinstance(error, json.JSONDecodeError):
        return f":{line or error.lineno}:{error.colno}: not JSON: {error.msg}"
    if isinstance(error, RecursionError):
        return f"{f':{line}' if line else ''}: the JSON has too many lists and objects inside one another"
    if isinstance(error, RepeatedKeyError):
        return f":{line or _line_of_key(text, error.key)}: {error}"
    return f":{line or _line_of_constant(text)}: not JSON: {error}"


def _line_objects(
    path: Path, lines: Iterable[tuple[int, str]], *, is_start: bool = True
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in lines:
        if text and not text.isspace():
            if is_start:
                refuse_line(path, number, text)
            is_start = False
            value = _load(path, text, number)
            if not isinstance(value, dict):
                shown = text.strip()[:60]
                raise DataError(f"{path}:{number}: each line must be a JSON object in braces, not {shown}")
            yield number, value


def _listed_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        rows = read_document(path).rows
    except NotOneDocumentError:  # JSON Lines under another name
        rows = _line_objects(path, text_lines(path))
    yield from rows


class NotOneDocumentError(DataError):
    """A file has several JSON documents, one per line."""


def read_document(path: Path) -> row_shapes.PlacedDocument:
    """The rows and the remarks of a JSON file.

    The rows are a list of objects, alone or under a key such as `test_cases`; a list of values for each column; or
    `columns` with names and `data` with lists. Any other object is a single row.

    Raises NotOneDocumentError: the file has one JSON object per line. Raises DataError: it is not JSON, or has no rows.
    """
    text = "\n".join(line for _, line in text_lines(path, longest=None))
    return row_shapes.place_rows(
        path, _load(path, text), "JSON objects", lambda shape, _: _list_lines(text, _list_offsets(text, shape))
    )


class RepeatedKeyError(ValueError):
    """An object has a key twice. Which of the two values counts differs from program to program."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the key {key!r} is there twice in one object; keep one")


def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys and values. Raises RepeatedKeyError: a key is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKeyError(next(key for key in found if keys.count(key) > 1))
    return found


def _line_of_key(text: str, key: str) -> int:
    """The line on which an object of valid JSON has the key for the second time."""
    open_objects: list[set[str]] = []
    for found in _TOKENS.finditer(text):
        token = found.group()
        if token in "{[":
            open_objects.append(set())
        elif token in "}]":
            open_objects.pop()
        elif found["colon"] is not None and json.loads(found["string"]) == key:
            if key in open_objects[-1]:
                return text.count("\n", 0, found.start()) + 1
            open_objects[-1].add(key)
    return 1


def _line_of_constant(text: str) -> int:
    """The line of the first NaN or infinity in what is valid JSON otherwise; 1 without one."""
    found = next((found for found in _CONSTANT.finditer(text) if found["constant"]), None)
    return 1 if found is None else text.count("\n", 0, found.start()) + 1


_SPACE = compile_later(r"[ \t\r\n]*")
_CONSTANT = compile_later(r'"(?:[^"\\]|\\.)*"|(?P<constant>NaN|-?Infinity)')
_TOKENS = compile_later(r'(?P<string>"(?:[^"\\]|\\.)*")(?P<colon>\s*:)?|[{}\[\]]')


def refuse_constant(word: str) -> NoReturn:
    """Refuse NaN and infinity, which JSON does not have. Raises ValueError: always."""
    raise ValueError(f"{word} is not a JSON number; write null")


def _list_lines(text: str, offsets: Iterable[int]) -> Iterator[int]:
    """The lines of ascending offsets."""
    line, counted = 1, 0
    for offset in offsets:
        line, counted = line + text.count("\n", counted, offset), offset
        yield line


def _list_offsets(text: str, shape: row_shapes.RowShape) -> Iterator[int]:
    """Where each row begins in valid JSON."""
    at = _skip_space(text, 0)
    inner = {"columns": (shape.column,), "split": ("data",)}.get(shape.kind, ())
    for key in (*shape.path, *inner):
        at = _find_member(text, at, key)
    yield from [at] if shape.kind == "single" else (offset for _, offset in _entries(text, at))


def _find_member(text: str, start: int, wanted: str) -> int:
    """The offset of the value of a key. Of a key that is repeated, JSON keeps the last."""
    return [offset for key, offset in _entries(text, start) if key == wanted][-1]


def _entries(text: str, start: int) -> Iterator[tuple[str | None, int]]:
    """The key, None in a list, and the offset of each value of an object or a list in valid JSON."""
    decoder, is_object, key = json.JSONDecoder(), text[start] == "{", None
    at = _skip_space(text, start + 1)
    while text[at] not in "}]":
        if is_object:
            key, at = decoder.raw_decode(text, at)
            at = _skip_space(text, _skip_space(text, at) + 1)
        yield key, at
        at = _skip_space(text, decoder.raw_decode(text, at)[1])
        at = _skip_space(text, at + 1) if text[at] == "," else at


def _skip_space(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]
