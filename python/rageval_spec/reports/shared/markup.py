"""Writes any text as Markdown without effect: code spans, escaped text and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rageval_spec.wording import make_visible


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; its cells must already be Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def quote(name: str) -> str:
    """Any text as a code span on one line, fenced by more backticks than the longest run in the text."""
    text = make_visible(name)
    fence = "`" * (1 + longest_tick_run(text, 0))
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def quote_cell(name: str) -> str:
    """Any text as a code span that can stand in a table cell."""
    return quote(name).replace("|", "\\|")


def longest_tick_run(text: str, at_least: int) -> int:
    """The length of the longest run of backticks in a text; `at_least` if it has none."""
    return max((len(run) for run in re.findall("`+", text)), default=at_least)


def escape(text: str) -> str:
    """Any text as plain text on one line, without effect as Markdown, HTML or a mention of a person."""
    text = re.sub(r"([\\`*_{}\[\]#|~!])", r"\\\1", make_visible(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"(?<!\w)@(?=\w)", "@<!-- -->", text)
