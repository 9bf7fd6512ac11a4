"""Reads rows with values of any type from every supported format.

Lists that are stored as text are parsed. Ids of documents in one cell of a table are a list as a program prints it,
or ids between separators. Column names in a spec that its files do not have are found.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later
from rageval_spec.reading.column_names import QUESTIONS
from rageval_spec.reading.formats import text_files
from rageval_spec.reading.formats.delimited import choose_separator, delimited_objects
from rageval_spec.reading.formats.json_files import VARIABLES, json_objects, merge_variables
from rageval_spec.reading.formats.parquet import parquet_objects
from rageval_spec.reading.formats.row_shapes import OtherFilesError, RowShape, ask_last_turn, complete_row
from rageval_spec.recorded.messages import MESSAGES, read_turns

RowFormat = Literal["json", "csv", "parquet", "xlsx", "yaml"]
_SUFFIXES: Mapping[str, RowFormat] = {
    **dict.fromkeys(("csv", "tsv"), "csv"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("xlsx", "xlsm"), "xlsx"),
    "parquet": "parquet",
}
_JSON = ("json", "jsonl", "ndjson")
FILE = "file://"
"""Begins a value of promptfoo that names a file."""
_TESTS = RowShape("list", ("tests",))
_OF_TESTS = ("csv", "tsv", "json", "jsonl", "yaml", "yml")
_OF_TEXTS = frozenset({"", ".txt", ".md", ".markdown", ".html", ".json"})
_BEGINNINGS_OF_LISTS = ('["', "['", "[{", "[]", "array([", "[array(")
_TABLES = ("text", "sentences", "contexts")
"""The columns of a data frame in one cell, as `{'text': array(['Paris']), ...}`, whose values are the texts."""
_CONVERSATION = compile_later(r"""\s*\[\s*\{\s*['"](?:role|type|content|metadata)['"]\s*:""")


def row_format_of(path: Path) -> RowFormat:
    """The format that a file's suffix says; any other suffix means JSON (lines or a list)."""
    return _SUFFIXES.get(text_files.format_of(path), "json")


def recognise_format(path: Path) -> RowFormat:
    """The format that a file's content shows, or else its suffix; JSON if neither does."""
    try:
        start = text_files.check_file(path) if path.is_file() else b""
    except DataError:
        start = b""
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK\x03\x04"):
        return "xlsx"
    named = row_format_of(path)
    if text_files.format_of(path) in (*_SUFFIXES, *_JSON) and (named != "xlsx" or not start):
        return named
    first = text_files.decode_beginning(start).lstrip()
    if first.startswith(("{", "[")):
        return "json"
    line = first.partition("\n")[0].rstrip("\r")
    if line.startswith(("- ", "---", "#")) or line.endswith(":"):
        return "yaml"
    return "csv" if text_files.find_separator(line) is not None and text_files.name_content(start) is None else named


def read_rows(
    path: Path, form: RowFormat | None = None, separator: str | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the location (`file:line`, or `file: row 7`) and the named values of each row. CSV values are all text.

    An object's `vars` (promptfoo) in JSON or YAML are merged into its row; its own keys win. The tests that a
    configuration of promptfoo names are read from their files.

    Raises DataError: no rows, or rows that cannot be read.
    """
    try:
        yield from _read_own_rows(path, form, separator)
    except OtherFilesError as elsewhere:
        for other in find_other_files(path, elsewhere.names):
            for place, row in _read_own_rows(other):
                yield place, merge_variables(complete_row(_TESTS, elsewhere.document, row))


def find_other_files(path: Path, names: Sequence[str]) -> list[Path]:
    """The files that a file names (`file://a/b.csv`, `a/*.yaml`), in order. Raises DataError: one cannot be read."""
    found: list[Path] = []
    for name in names:
        plain = name.removeprefix(FILE)
        if Path(plain).suffix[1:].lower() not in _OF_TESTS:
            raise DataError(f"{path}: the tests in {name} cannot be read; write them as CSV, JSON or YAML")
        listed = sorted(path.parent.glob(plain)) if "*" in plain else [path.parent / plain]
        found += [find_below(str(path), path.parent, str(one.relative_to(path.parent))) for one in listed]
        if not listed:
            raise DataError(f"{path}: no file is called {name}")
    return found


def find_below(place: str, folder: Path, name: str) -> Path:
    """The file of this name in a folder or below it, or DataError, whose message `place` begins."""
    path = folder / name.removeprefix(FILE)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{place}: {name} is not in {folder} or below it; copy the file there")
    if not path.is_file():
        raise DataError(f"{place}: {name}: no such file")
    return path


def list_named_texts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The variables of a test, and the texts in what it asserts, whose value is in a file (`file://context.txt`)."""
    variables = row.get(VARIABLES)
    both = {**(variables if isinstance(variables, Mapping) else {}), **row}
    yield from ((name, value) for name, value in both.items() if isinstance(value, str) and value.startswith(FILE))


def open_named_texts(place: str, folder: Path, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a test with the texts of the files that its variables name. Raises DataError: one cannot be read."""
    texts: dict[str, str] = {}
    for name, value in list_named_texts(row):
        if Path(value).suffix.lower() not in _OF_TEXTS:
            kinds = ", ".join(sorted(filter(None, _OF_TEXTS)))
            message = f"the variable '{name}' is in {value}, and only text ({kinds}) is read; write its text here"
            raise DataError(f"{place}: {message}")
        texts[name] = "\n".join(
            line for _, line in text_files.text_lines(find_below(place, folder, value), longest=None)
        )
    variables = row.get(VARIABLES)
    inner = (
        {VARIABLES: {**variables, **{k: v for k, v in texts.items() if k in variables}}}
        if isinstance(variables, Mapping)
        else {}
    )
    return {**row, **inner, **{name: text for name, text in texts.items() if name in row}}


def _read_own_rows(
    path: Path, form: RowFormat | None = None, separator: str | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    form = form or row_format_of(path)
    if form == "parquet":
        yield from ((f"{path}: row {number}", row) for number, row in parquet_objects(path))
    elif form == "csv":
        rows = delimited_objects(path, separator or choose_separator(path))
        yield from ((place, open_turns(place, row)) for place, row in ((f"{path}:{line}", row) for line, row in rows))
    elif form == "xlsx":
        from rageval_spec.reading.formats.workbooks import read_workbook_rows

        yield from ((place, open_turns(place, row)) for place, row in read_workbook_rows(path).rows)
    elif form == "yaml":
        from rageval_spec.reading.formats.yaml_files import read_yaml_document

        rows = read_yaml_document(path).rows
        yield from ((f"{path}:{line}", ask_last_turn(merge_variables(row))) for line, row in rows)
    else:
        yield from ((f"{path}:{line}", row) for line, row in json_objects(path))


def parse_list(place: str, what: str, value: Any) -> Any:
    """Parse a list written as JSON or as Python prints it. Any other text or value is returned unchanged.

    Raises DataError: a text begins like a list of texts or objects but is not one, for instance because it is cut off.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith(("{'", '{"')):
        found = parse_any(text)
        if isinstance(found, dict) and any(isinstance(found.get(name), list) for name in _TABLES):
            return found
        if found is not None or "array(" not in text:
            return value
        raise DataError(f"{place}: {what} is printed by a program and cannot be read; write it as JSON: {text[:60]}")
    if not text.startswith(_BEGINNINGS_OF_LISTS):
        return value
    if isinstance(found := parse_any(text), list):
        return found
    raise DataError(f"{place}: {what} begins like a list but is not one; write it as JSON: {text[:60]}")


def parse_any(text: str) -> Any:
    """The object or list that a text holds as JSON or as Python prints it; None if it holds none."""
    for parse in (json.loads, parse_printed):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            continue
    return None


def open_turns(place: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table whose question is the last turn of the conversation that a cell holds as text, if one does.

    ragas writes conversations so, in `user_input`.

    Raises DataError: a cell begins like a conversation but cannot be read, for instance because it is cut off.
    """
    found = dict(row)
    for name in (*QUESTIONS, MESSAGES):
        value = row.get(name)
        if isinstance(value, str) and _CONVERSATION.match(value):
            turns = parse_list(place, f"'{name}'", value)
            found[name] = value if read_turns(turns) is None else turns
    return ask_last_turn(found)


def parse_printed(text: str) -> Any:
    """Parse a printed list or object.

    numpy omits the commas, and Python would join the items into one long text. Within others, its arrays are calls of
    `array`; they are lists here. Raises ValueError or SyntaxError: it is neither; it was cut for printing (`...`).
    """
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = [token for token in tokens if token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)]
    if kept and all(token.type == tokenize.STRING or token.string in ("[", "]", ",") for token in kept):
        flat = "".join(token.string for token in kept if token.string in ("[", "]"))
        if flat == "[]":
            return [ast.literal_eval(token.string) for token in kept if token.type == tokenize.STRING]
    parsed = _Arrays().visit(ast.parse(text.strip(), mode="eval"))
    return ast.literal_eval(parsed)


class _Arrays(ast.NodeTransformer):
    """Replaces `array([...], dtype=object)` and numpy's scalars by what is in them."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The first argument."""
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if not node.args or not re.fullmatch(r"array|str_|bool_?|u?int\d+|float\d+", name):
            raise ValueError(f"{name} cannot be read")
        found: ast.AST = self.visit(node.args[0])
        return found

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """The value; `...` stands for values that were not printed."""
        if node.value is ...:
            raise ValueError("the text was cut when it was printed")
        return node


_BETWEEN_IDS = ("\n", ";", "|", ",")
"""What separates ids in one cell of a table. The first of these that a cell has is its separator."""
_NUMBERS = compile_later(r"\[\s*\d+(?:\.0*)?(?:\s*[,\s]\s*\d+(?:\.0*)?)*\s*,?\s*\]")
_OPENED = ("[", "(", "array(")


def split_ids(place: str, what: str, value: Any) -> Any:
    """The ids in a cell: a list or a map as JSON, Python, pandas or numpy print it, or ids between separators.

    A value that is not text is unchanged.

    Raises DataError: the text begins like a list or a map but is not one; `place` and `what` begin the message.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if _NUMBERS.fullmatch(text):
        return [number.partition(".")[0] for number in re.findall(r"[\d.]+", text)]
    listed = parse_list(place, what, value)
    if not isinstance(listed, str):
        return listed
    if text.startswith("{"):
        try:
            return json.loads(value)
        except ValueError as error:
            raise DataError(f"{place}: {what} is not JSON: {error}") from error
    separator = next((mark for mark in _BETWEEN_IDS if mark in value), None)
    if separator is not None and text.startswith(_OPENED) and text.endswith(("]", ")")):
        raise DataError(f"{place}: {what} begins like a list but is not one; write it as JSON: {text[:60]}")
    ids = [value] if separator is None else value.split(separator)
    return [found.strip() for found in ids if found.strip()]
