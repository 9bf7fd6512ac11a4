"""Diagnostics: what is wrong with a spec, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple
from unicodedata import combining, east_asian_width

from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import SPEC_WRONG, RagevalError
from rageval_spec.libraries import compile_later

if TYPE_CHECKING:
    from pydantic import ValidationError

Severity = Literal["error", "warning"]


class Position(NamedTuple):
    """A place in a text file. `line` and `column` count from 1; `width` is the number of characters to underline."""

    line: int
    column: int
    width: int = 1


NOWHERE = Position(0, 0)
"""The position of a value that is in no text, such as one of a dict. Its `path` is then its key path."""


class FileFault(NamedTuple):
    """A fault in a node of the spec that shows only when its input file is read.

    Attributes:
        key: the path of the wrong YAML key inside the node, as keys and indexes.
        hint: what to write instead.
        code: the kind of fault, for programs.
        severity: "warning" if the evaluation can run all the same.
    """

    key: tuple[str | int, ...]
    message: str
    hint: str | None = None
    code: str = "unclear-columns"
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning. `source_line` is the line of text at `position`, without its line ending.

    `code` is one of `spec.diagnostic_codes`, which explains it.
    """

    path: str
    position: Position
    message: str
    code: str
    hint: str | None = None
    severity: Severity = "error"
    source_line: str = field(default="", repr=False)

    def __str__(self) -> str:
        """`spec.yaml:12:5: unknown key 'cutof'; did you mean 'cutoff'? [unknown-key]` with the source line and a caret.

        Without a text, it begins with the key path: `systems.bm25.cutof: unknown key 'cutof' [unknown-key]`.
        """
        place = self.path if self.position == NOWHERE else f"{self.path}:{self.position.line}:{self.position.column}"
        prefix = "warning: " if self.severity == "warning" else ""
        head = f"{place}: {prefix}{self.message}" + (f"; {self.hint}" if self.hint else "") + f" [{self.code}]"
        if not self.source_line.strip():
            return head
        shown, caret = _underline(self.source_line, self.position)
        return f"{head}\n  {shown}\n  {caret}"


def _underline(source_line: str, position: Position, limit: int = 100) -> tuple[str, str]:
    start = max(0, position.column - 1 - limit // 2) if len(source_line) > limit else 0
    shown = source_line[start : start + limit].replace("\t", " ")
    offset = position.column - 1 - start
    before, marked = shown[:offset], shown[offset : offset + position.width]
    gap = " " * (_count_cells(before) + offset - len(before))
    return shown, gap + "^" * max(1, _count_cells(marked))


def _count_cells(text: str) -> int:
    """The width of `text` in a terminal: an emoji or an ideograph takes two cells, a combining mark none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


class SpecError(RagevalError):
    """A spec has errors. `diagnostics` holds all of them, sorted by file and position."""

    exit_code = SPEC_WRONG

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Sort the diagnostics; the message is all of them, one below the other."""
        in_order = sorted(diagnostics, key=lambda d: (d.path, d.position, d.message))
        self.diagnostics: tuple[Diagnostic, ...] = tuple(in_order)
        super().__init__("\n".join(map(str, self.diagnostics)))


_HIDDEN = compile_later("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line and paragraph separators, bidirectional controls, and lone surrogates."""


def make_visible(text: str, *, keep: str = "", strict: bool = False) -> str:
    r"""`text` with escapes like `\x1b` in place of characters that a terminal would act on or that cannot be seen.

    Every text that is shown and can contain text from outside goes through here: messages, reports, reasons of values.
    `keep` has control characters to leave as they are; without it, the result is one line. `strict` escapes every
    character that is not printable, including zero-width joiners, which some scripts need.
    """
    if text.isprintable():
        return text
    if strict:
        return "".join(c if c.isprintable() or c in keep else _escape(c) for c in text)
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def dump_visible(content: object, *, sort_keys: bool = False) -> str:
    """`content` as indented JSON with a final line feed, made visible; `sort_keys` is that of `json`.

    Raises:
        ValueError: a number is not finite.
    """
    import json

    text = json.dumps(content, sort_keys=sort_keys, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{make_json_visible(text)}\n"


def describe_invalid(error: ValidationError) -> str:
    """What is wrong first with data that do not have their shape, after its place: `judges.0.of: ...`."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"


def make_json_visible(text: str) -> str:
    r"""JSON that means the same, with escapes such as `\u202e` in place of what `make_visible` escapes.

    A terminal then acts on none of it, and a parser still gets every character. Line feeds between values stay.
    """
    if text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def suggest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str | None:
    """`did you mean 'x'?` for the known word nearest to `word` (case and `-`/`_` ignored), or None."""
    from difflib import get_close_matches

    folded = {_fold(candidate): candidate for candidate in known}
    near = get_close_matches(_fold(word), list(folded), n=1, cutoff=cutoff)
    return f"did you mean '{folded[near[0]]}'?" if near else None


def _fold(word: str) -> str:
    return word.lower().replace("-", "_")
