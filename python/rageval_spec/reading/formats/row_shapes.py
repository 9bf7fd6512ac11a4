"""Finds the rows in a parsed document: a list of objects, a table in columns or one object.

They are at the top of the document or below it. Question files may have rows whose question is the last turn of a
conversation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later
from rageval_spec.reading.column_names import QUESTIONS
from rageval_spec.recorded.messages import MESSAGES, find_question, read_turns
from rageval_spec.wording import count_noun

LIST_KEYS = ("goldens", "test_cases", "testCases", "samples", "examples", "queries", "rows", "data", "tests", "results")
"""Keys under which a document that is an object may keep its rows."""
_FILE = compile_later(r"file://|[^\s:]+\.(?:csv|tsv|json|jsonl|yaml|yml)$")
_CONFIGURED = frozenset({"tests", "results"})
"""Keys of files that also hold a tool's configuration, in which there can be credentials."""
_DESCRIPTIVE = frozenset({"version", "created", "createdAt", "created_at", "name", "description", "metadata", "tags"})
LONGEST_REMARK = 10_000
"""The most characters of a value that describes the file. Longer ones, such as a tool's configuration, are dropped."""


class ShapeError(ValueError):
    """A document has rows that do not fit together. The message says why."""


class OtherFilesError(DataError):
    """The rows of a promptfoo configuration, the `document`, are in other files. `*` in `names` is any characters."""

    def __init__(self, names: Sequence[str], document: Mapping[str, Any]) -> None:
        """`names` and `document` are as the attributes."""
        self.names, self.document = tuple(names), document
        super().__init__(f"the tests are in other files: {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class RowShape:
    """Where the rows of a document are, and how they are written.

    Attributes:
        kind: `list`: objects; `columns`: a list (or, as pandas writes it, an object) of values for each column;
            `split`: `columns` with the names and `data` with the rows; `single`: the document is one row.
        path: the keys that lead to the value with the rows.
        column: for columns, the key of the one that tells where each row is.
    """

    kind: Literal["list", "columns", "split", "single"]
    path: tuple[str, ...] = ()
    column: str = ""


def find_shape(value: Any, path: tuple[str, ...] = ()) -> RowShape:
    """The shape of a parsed document.

    Raises ShapeError: it is neither an object nor a list of objects; its columns have different lengths; some of its
    tests are in other files. Raises OtherFilesError: all of its tests are in other files.
    """
    if isinstance(value, list):
        return RowShape("list", path)
    if not isinstance(value, dict):
        shown = repr(value[:60]) if isinstance(value, str) else json.dumps(value)
        raise ShapeError(f"expected an object or a list of objects, not {shown}")
    if _is_split(value):
        return RowShape("split", path)
    for key, inner in value.items():
        if key in LIST_KEYS and _holds_rows(inner):
            return find_shape(inner, (*path, key))
    if (column := _find_column(value)) is not None:
        return RowShape("columns", path, column)
    if elsewhere := _list_elsewhere(value):
        raise OtherFilesError(elsewhere, value)
    return RowShape("single", path)


def take_rows(shape: RowShape, value: Any) -> Iterator[Any]:
    """The rows of the value at the shape's path. Raises ShapeError: columns or rows have different lengths."""
    if shape.kind == "list":
        yield from value
    elif shape.kind == "single":
        yield value
    elif shape.kind == "split":
        yield from (_name_values(value["columns"], row) for row in value["data"])
    else:
        yield from _turn_columns(value, shape.column)


class PlacedDocument(NamedTuple):
    """The line and content of each row, and what else the document says at its top, such as its version.

    Reading the rows raises `DataError` for one that is no object.
    """

    rows: Iterator[tuple[int, dict[str, Any]]]
    remarks: dict[str, Any]


def place_rows(
    path: Path, document: Any, noun: str, find_lines: Callable[[RowShape, Any], Iterable[int]]
) -> PlacedDocument:
    """The rows, which messages call `noun`, and the remarks of a document. Raises DataError: it has no rows.

    `find_lines` gives the line of each row, for the shape of the document and the value with the rows.
    """
    try:
        shape = find_shape(document)
    except ShapeError as error:
        raise DataError(f"{path}:1: {error}") from error
    return PlacedDocument(_place(path, document, shape, noun, find_lines), find_remarks(shape, document))


def _place(
    path: Path, document: Any, shape: RowShape, noun: str, find_lines: Callable[[RowShape, Any], Iterable[int]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    value = document
    for key in shape.path:
        value = value[key]
    rows = take_rows(shape, value)
    for line in find_lines(shape, value):
        try:
            row = complete_row(shape, document, next(rows))
        except ShapeError as error:
            raise DataError(f"{path}:{line}: {error}") from error
        if not isinstance(row, dict):
            shown = json.dumps(row) if noun == "JSON objects" else str(row)
            raise DataError(f"{path}:{line}: expected a list of {noun}, not {shown[:60]}")
        yield line, row


def complete_row(shape: RowShape, document: Any, row: Any) -> Any:
    """A test of promptfoo with what `defaultTest` says of all tests: its variables, if the test has others, and checks.

    Raises ShapeError: `defaultTest` is in another file.
    """
    default = document.get("defaultTest") if shape.path == ("tests",) and isinstance(document, dict) else None
    if isinstance(default, str):
        raise ShapeError(f"'defaultTest' is in another file, {default}; write its content here")
    if not isinstance(default, dict) or not isinstance(row, dict):
        return row
    both = {**default, **row}
    variables, checks = default.get("vars"), default.get("assert")
    if isinstance(variables, dict) and isinstance(row.get("vars"), dict):
        both["vars"] = variables | row["vars"]
    if isinstance(checks, list) and isinstance(row.get("assert"), list):
        both["assert"] = row["assert"] + checks
    return both


def find_remarks(shape: RowShape, document: Any) -> dict[str, Any]:
    """What a document says about itself beside its rows, such as `version` and `created`."""
    if not isinstance(document, dict) or shape.kind in ("single", "split"):
        return {}
    rows = {shape.path[0]} if shape.path else {key for key, value in document.items() if _is_column(value)}
    is_configuration = bool(rows & _CONFIGURED)
    return {
        key: value
        for key, value in document.items()
        if key not in rows and _is_short(value) and (key in _DESCRIPTIVE or not is_configuration)
    }


def _list_elsewhere(value: Mapping[str, Any]) -> list[str]:
    """The files that hold the tests of a promptfoo configuration."""
    tests = value.get("tests")
    listed = tests if isinstance(tests, list) else [tests]
    named = [one for one in listed if isinstance(one, str) and _FILE.match(one)]
    if named and len(named) < len(listed):
        raise ShapeError(f"some tests are in other files, such as {named[0]}, and some are here; put all in files")
    return named


def _is_split(value: Mapping[str, Any]) -> bool:
    names, rows = value.get("columns"), value.get("data")
    is_named = isinstance(names, list) and len(names) > 0 and all(isinstance(name, str) for name in names)
    return is_named and isinstance(rows, list) and len(rows) > 0 and all(isinstance(row, list) for row in rows)


def _name_values(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    if len(names) != len(values):
        raise ShapeError(
            f"the row has {count_noun(len(values), 'value')}, but the header has {count_noun(len(names), 'column')}"
        )
    return dict(zip(names, values, strict=True))


def _holds_rows(value: Any) -> bool:
    if isinstance(value, dict):
        is_table = _is_split(value) or _find_column(value) is not None
        return is_table or any(_holds_rows(value.get(key)) for key in LIST_KEYS)
    return isinstance(value, list) and len(value) > 0 and all(isinstance(item, dict) for item in value)


def _find_column(value: Mapping[str, Any]) -> str | None:
    """The column, of a question or of as many values as all, that tells where rows are; None if there is no table."""
    named = next((name for name in QUESTIONS if _is_column(value.get(name))), None)
    if named is not None:
        return named
    is_table = len(value) > 1 and all(_is_column(inner) for inner in value.values())
    return next(iter(value)) if is_table and len({len(inner) for inner in value.values()}) == 1 else None


def _is_column(value: Any) -> bool:
    """Whether this is a column: a list, or an object whose keys number the rows as pandas does."""
    if isinstance(value, dict):
        return len(value) > 0 and all(isinstance(key, str) and key.isdecimal() for key in value)
    return isinstance(value, list) and len(value) > 0


def _turn_columns(table: Mapping[str, Any], column: str) -> Iterator[dict[str, Any]]:
    columns = {name: values for name, values in table.items() if _is_column(values)}
    count = len(columns[column])
    for name, values in columns.items():
        if len(values) != count:
            raise ShapeError(f"the column '{column}' has {count} values, but '{name}' has {len(values)}")
    keys = list(columns[column]) if isinstance(columns[column], dict) else []
    for number in range(count):
        yield {name: _take(name, values, number, keys) for name, values in columns.items()}


def _take(name: str, values: Any, number: int, keys: Sequence[str]) -> Any:
    if isinstance(values, list):
        return values[number]
    key = keys[number] if keys else str(number)
    if key not in values:
        raise ShapeError(f"the column '{name}' has no value for row {key!r}")
    return values[key]


def _is_short(value: Any) -> bool:
    try:
        return len(json.dumps(value, default=str)) <= LONGEST_REMARK
    except (ValueError, TypeError, RecursionError):
        return False


def holds_conversation(row: Mapping[str, Any]) -> bool:
    """Whether `ask_last_turn` may change a row with these values."""
    return MESSAGES in row or any(isinstance(row.get(name), (list, dict)) for name in QUESTIONS)


def ask_last_turn(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the last turn of the user as its question, if it has a conversation instead of one.

    The conversation stays, under `messages`. It is under that name in the file, or in the place of a question as ragas
    writes it (`user_input`).
    """
    if not holds_conversation(row):
        return row
    for name in QUESTIONS:
        value = row.get(name)
        if isinstance(value, (list, dict)) and (question := _find_text(value)) is not None:
            return {**row, name: question, MESSAGES: row.get(MESSAGES, value)}
    if any(row.get(name) is not None for name in QUESTIONS) or (question := _find_text(row.get(MESSAGES))) is None:
        return row
    return {**row, "question": question}


def _find_text(value: Any) -> str | None:
    turns = read_turns(value)
    place = None if turns is None else find_question(turns)
    return None if turns is None or place is None else str(turns[place]["content"])
