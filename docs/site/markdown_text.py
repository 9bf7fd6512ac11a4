"""Markdown of generated pages: plain text, tables and code that mean what they say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_PIECES = re.compile(r"(`[^`\n]+`)")
_SPECIAL = re.compile(r"([\\*_>\[\]#|])")


def escape(text: str) -> str:
    """Text whose only markup is `code`, as one line of Markdown."""
    pieces = _PIECES.split(" ".join(text.split()))
    return "".join(
        piece if place % 2 else _SPECIAL.sub(r"\\\1", piece).replace("<", "&lt;") for place, piece in enumerate(pieces)
    )


def code(text: object) -> str:
    """Text as inline code."""
    shown = " ".join(str(text).split())
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def fence(text: str, language: str = "text") -> str:
    """Text as a block of code."""
    return f"~~~~{language}\n{text.rstrip()}\n~~~~"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown cells."""
    lines = [[*heads], ["---"] * len(heads), *([*row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def join(parts: Iterable[str]) -> str:
    """The parts of a page, with a blank line between them."""
    return "\n\n".join(part for part in parts if part) + "\n"
