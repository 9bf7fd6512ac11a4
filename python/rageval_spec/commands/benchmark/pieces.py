"""Slices of command-line arguments with their places, so that messages can point into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from rageval_spec.diagnostics import Diagnostic
from rageval_spec.spec.places import Place, Source
from rageval_spec.spec.reading import YamlEntry, YamlMapping, YamlNode, YamlScalar

_NOT_IN_NAMES = re.compile(r'[\x00-\x1f/\\:*?"<>|$\x7f]+')
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Piece:
    """A slice of an argument."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> Place:
        return self.source.place(self.start, max(self.end, self.start + 1))

    def cut(self, start: int, end: int | None = None) -> Piece:
        """A slice of this piece, by offsets inside it."""
        return Piece(self.source, self.start + start, self.end if end is None else self.start + end)

    def partition(self, separator: str) -> tuple[Piece, Piece | None]:
        """The pieces before and after the first separator; the second is None without a separator."""
        at = self.text.find(separator)
        return (self, None) if at < 0 else (self.cut(0, at), self.cut(at + len(separator)))

    def split(self, separator: str | re.Pattern[str]) -> list[Piece]:
        """The pieces between the separators."""
        pattern = re.compile(re.escape(separator)) if isinstance(separator, str) else separator
        starts, ends = [0], []
        for match in pattern.finditer(self.text):
            ends.append(match.start())
            starts.append(match.end())
        return [self.cut(start, end) for start, end in zip(starts, [*ends, len(self.text)], strict=True)]


class RefusedError(Exception):
    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


def refuse(piece: Piece, message: str, hint: str | None) -> NoReturn:
    raise RefusedError([piece.place.diagnose(message, "command-line", hint)])


def read_pieces(label: str, arguments: Iterable[str]) -> list[Piece]:
    """The arguments of one option. In messages, `--system:2:6` is the sixth character of the second argument."""
    sources = [Source(label, text, first_line=number) for number, text in enumerate(arguments, start=1)]
    return [Piece(source, 0, len(source.text)) for source in sources]


def write_text(place: Place, text: str) -> YamlScalar:
    """A text as a YAML scalar in which no variable is filled in."""
    return YamlScalar(place, text.replace("${", "$${"), text)


def make_block(place: Place, values: Mapping[str, YamlNode]) -> YamlMapping:
    return YamlMapping(place, {key: YamlEntry(value.place, value) for key, value in values.items()})


def name_after(text: str) -> str:
    """A name made of a text, without the characters that names cannot contain."""
    return _NOT_IN_NAMES.sub("-", text).strip(" .-")[:_LONGEST_NAME].rstrip(" .-")
