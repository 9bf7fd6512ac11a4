"""Places in a text, and how messages refer to them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import NOWHERE, Diagnostic, Position, Severity, make_visible
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.secrets import hide_credentials

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the top of a spec: `("gates", 0, "min")`."""

_NOT_SHOWN = compile_later("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINE_END = compile_later(r"\r\n|\r|\n")
_LONGEST_SHOWN = 60


class TextPlace(NamedTuple):
    """A range of characters on one line of a text."""

    path: str
    position: Position
    source_line: str

    def diagnose(self, message: str, code: str, hint: str | None = None, severity: Severity = "error") -> Diagnostic:
        """A diagnostic that points here. Control characters are escaped and credentials hidden."""
        shown = None if hint is None else make_visible(hide_credentials(hint), strict=True)
        told = make_visible(hide_credentials(message), strict=True)
        line = hide_credentials(self.source_line)
        return Diagnostic(self.path, self.position, told, code, shown, severity, line)

    @property
    def where(self) -> str:
        """How another message refers to this place: `on line 12`, or `at metrics.0` outside a text."""
        return f"at {self.path}" if self.position == NOWHERE else f"on line {self.position.line}"

    def narrow(self, text: str, start: int = 0) -> TextPlace:
        """The first `text` in the source line from character `start` of this place on; this place if there is none."""
        found = self.source_line.find(text, self.position.column - 1 + start)
        if found < 0:
            return self
        return TextPlace(self.path, Position(self.position.line, found + 1, len(text)), self.source_line)


@dataclass(frozen=True)
class SourceText:
    """A text with a name for messages. Offsets count characters. `first_line` is the number of its first line."""

    path: str
    text: str
    first_line: int = 1

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    @cached_property
    def _lines(self) -> list[str]:
        return [_NOT_SHOWN.sub("\ufffd", line.rstrip()) for line in _LINE_END.split(self.text)]

    def place(self, start: int, end: int | None = None) -> TextPlace:
        """The place from offset `start` up to but excluding `end`, cut at the end of the line."""
        start = min(start, len(self.text))
        index = bisect_right(self._starts, start) - 1
        line_start, line = self._starts[index], self._lines[index]
        width = min(start + 1 if end is None else end, line_start + len(line)) - start
        position = Position(self.first_line + index, start - line_start + 1, max(1, width))
        return TextPlace(self.path, position, line)


class Places(dict[KeyPath, TextPlace]):
    """The place of every key path of a spec, the empty one included."""

    def nearest(self, key_path: KeyPath) -> TextPlace:
        """The place of a key path, or of the nearest enclosing block that the text has."""
        ends = range(len(key_path), -1, -1)
        return next(self[key_path[:end]] for end in ends if key_path[:end] in self)

    def diagnose(
        self, key_path: KeyPath, message: str, code: str, hint: str | None = None, severity: Severity = "error"
    ) -> Diagnostic:
        return self.nearest(key_path).diagnose(message, code, hint, severity)


def walk_values(content: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Each value of data in JSON's types that holds no other, with its path."""
    waiting: list[tuple[KeyPath, Any]] = [((), content)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [((*path, index), inner) for index, inner in enumerate(value)]
        else:
            yield path, value


def quote(text: str) -> str:
    """`text` in single quotes, as `cut` shows it."""
    return f"'{cut(text)}'"


def cut(text: str) -> str:
    """`text` on one line, with control characters escaped and credentials hidden, shortened if it is long."""
    hidden = hide_credentials(text)  # before it is cut: half a credential is not recognised
    visible = make_visible(hidden[:_LONGEST_SHOWN], strict=True)
    return f"{visible}…" if len(text) > _LONGEST_SHOWN else visible


_MOST_NAMES_SHOWN = 12


def list_hint(names: Sequence[str]) -> str | None:
    """`there are a, b`, or None without names."""
    shown = ", ".join([*names[:_MOST_NAMES_SHOWN], *(["..."] if len(names) > _MOST_NAMES_SHOWN else [])])
    return f"there {'are' if len(names) > 1 else 'is'} {shown}" if names else None
