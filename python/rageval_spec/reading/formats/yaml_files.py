"""A YAML file of questions or answers: its rows with their lines, and what it says about itself.

Values are what their author sees. YAML 1.1 would turn `no` into false, `007` into 7 and `2026-01-05` into a date; here
a plain scalar is a number or a Boolean only if JSON would write it the same way, and otherwise text. Values are built
from the parser's events rather than by recursion, and the limit on their size counts what aliases repeat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later
from rageval_spec.reading.formats import row_shapes
from rageval_spec.reading.formats.text_files import text_lines

MOST_REPEATED = 20_000_000
"""The most characters by which aliases may lengthen a file."""
DEEPEST = 100
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_NUMBER = compile_later(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?")
_STRING_TAG = "tag:yaml.org,2002:str"


def read_yaml_document(path: Path) -> row_shapes.PlacedDocument:
    """The rows and the remarks of a YAML file, as of `read_document`. Raises DataError, with `file:line`."""
    text = "\n".join(line for _, line in text_lines(path, longest=None))
    builder = _Builder(path)
    return row_shapes.place_rows(
        path,
        builder.build(text),
        "objects with keys such as 'question'",
        lambda shape, value: _list_lines(shape, value, builder.lines),
    )


def resolve_scalar(text: str) -> Any:
    """The value of a scalar without quotes: null, a Boolean or a number as JSON writes it, or the text itself."""
    if text in _NULL:
        return None
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text) and len(text) <= 20:
        value = json.loads(text)
        return value if json.dumps(value) == text else text
    return text


def _list_lines(shape: row_shapes.RowShape, value: Any, lines: Mapping[int, list[int]]) -> list[int]:
    """The line of each row; `lines` has those of the items of each list and object, by the `id` of these."""
    placed = value[shape.column] if shape.kind == "columns" else value["data"] if shape.kind == "split" else value
    return lines[id(placed)] if shape.kind != "single" else lines[id(placed)][:1] or [1]


@dataclass(slots=True)
class _Open:
    """A list or an object that is being read. `key` is the key whose value comes next."""

    value: Any
    lines: list[int]
    anchor: str | None
    size: int = 1
    key: str = ""
    has_key: bool = False
    merged: set[str] = field(default_factory=set)


@dataclass
class _Builder:
    """Builds values from events. `lines` has the line of each item of each list and object, by the `id` of these."""

    path: Path
    lines: dict[int, list[int]] = field(default_factory=dict)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    stack: list[_Open] = field(default_factory=list)
    documents: list[Any] = field(default_factory=list)
    longest: int = 0

    def build(self, text: str) -> Any:
        import yaml

        self.longest = len(text) + MOST_REPEATED

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            for event in yaml.parse(text, Loader=loader):
                self._take(event, yaml)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f"{self.path}:{mark.line + 1}:{mark.column + 1}" if mark is not None else str(self.path)
            problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
            raise DataError(f"{place}: not YAML: {problem}") from error
        if not self.documents:
            raise DataError(f"{self.path}: the file has no rows")
        return self.documents[0]

    def _take(self, event: Any, yaml: Any) -> None:
        line = event.start_mark.line + 1 if event.start_mark is not None else 1
        if isinstance(event, yaml.DocumentStartEvent) and self.documents:
            self._refuse(line, "a second YAML document begins here; keep one document in a file")
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._read_scalar(event, line), line, len(event.value) + 1, event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                self._refuse(line, f"the alias *{event.anchor} refers to nothing that is complete before it")
            value, size = self.anchors[event.anchor]
            self._add(value, line, size, None)
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            self._open(event, line, [] if isinstance(event, yaml.SequenceStartEvent) else {})
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            closed = self.stack.pop()
            self.lines[id(closed.value)] = closed.lines
            self._add(closed.value, closed.lines[0] if closed.lines else line, closed.size, closed.anchor)

    def _open(self, event: Any, line: int, value: Any) -> None:
        self._refuse_tag(event, line)
        if len(self.stack) >= DEEPEST:
            self._refuse(line, f"lists and objects are nested more than {DEEPEST} levels deep")
        self.stack.append(_Open(value, [], event.anchor))

    def _read_scalar(self, event: Any, line: int) -> Any:
        self._refuse_tag(event, line)
        is_plain = event.implicit[0] and event.tag is None and event.style in (None, "")
        return resolve_scalar(event.value) if is_plain else event.value

    def _refuse_tag(self, event: Any, line: int) -> None:
        if event.tag is not None and event.tag not in ("!", _STRING_TAG):
            self._refuse(line, f"the tag {event.tag} is not supported; write the value without it")

    def _add(self, value: Any, line: int, size: int, anchor: str | None) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, size)
        if not self.stack:
            self.documents.append(value)
            return
        parent = self.stack[-1]
        parent.size += size
        if parent.size > self.longest:
            self._refuse(line, "the aliases of this file repeat too much; write the values out, or use JSON Lines")
        if isinstance(parent.value, list):
            parent.value.append(value)
            parent.lines.append(line)
        elif parent.has_key:
            self._set(parent, value, line)
        elif isinstance(value, list | dict):
            self._refuse(line, "a key must be text, not a list or an object")
        else:
            parent.key, parent.has_key = value if isinstance(value, str) else json.dumps(value), True
            parent.lines.append(line)

    def _set(self, parent: _Open, value: Any, line: int) -> None:
        parent.has_key = False
        merged = value if isinstance(value, list) else [value]
        if parent.key == "<<" and all(isinstance(item, dict) for item in merged):
            inherited = {key: inner for item in reversed(merged) for key, inner in item.items()}
            parent.merged |= inherited.keys() - parent.value.keys()
            parent.value.update({key: inherited[key] for key in inherited if key in parent.merged})
        elif parent.key in parent.value and parent.key not in parent.merged:
            self._refuse(line, f"the key '{parent.key}' is listed twice in one object")
        else:
            parent.merged.discard(parent.key)
            parent.value[parent.key] = value

    def _refuse(self, line: int, message: str) -> NoReturn:
        raise DataError(f"{self.path}:{line}: {message}")
