"""What a reader finds in a file: its text, and where its headings, paragraphs, code, tables and pages lie in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

BlockKind = Literal["heading", "paragraph", "list", "code", "table", "markup"]


class Block(NamedTuple):
    """A part of a text that belongs together: `text[start:end]`, without white space around it.

    `markup` is for programs, such as an HTML block of a Markdown file. `level` is that of a heading, from 1; otherwise
    it is 0. `words` is what a heading says without its markup.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    words: str = ""


class Content(NamedTuple):
    """The text of one file.

    Attributes:
        text: the text, with line feeds between lines.
        blocks: its parts, in order, without overlaps; together they contain everything except white space.
        title: what the file itself says its title is; "" if it does not say.
        version: the version that the file itself names; "" if it names none.
        pages: the offset at which each page begins; empty if the file has no pages.
        unread: what could not be read in a file that was otherwise read: pages without text.
    """

    text: str
    blocks: tuple[Block, ...]
    title: str = ""
    version: str = ""
    pages: tuple[int, ...] = ()
    unread: str = ""


def find_paragraphs(text: str, start: int = 0, end: int | None = None) -> Iterator[Block]:
    """The paragraphs of plain text between two offsets; blank lines separate them."""
    at, end = start, len(text) if end is None else end
    for gap in re.finditer(r"\n[^\S\n]*(?=\n)|\Z", text[start:end]):
        yield from trim_block("paragraph", text, at, start + gap.start())
        at = start + gap.end()


def trim_block(kind: BlockKind, text: str, start: int, end: int, level: int = 0, words: str = "") -> Iterator[Block]:
    """A block without the white space around it; nothing if there is only white space."""
    piece = text[start:end]
    if content := piece.strip():
        first = start + len(piece) - len(piece.lstrip())
        yield Block(kind, first, first + len(content), level, words)
