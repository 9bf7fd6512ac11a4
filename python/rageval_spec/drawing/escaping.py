"""Writes any text so that it has no effect in Markdown or a spreadsheet.

Markdown gets code spans, escaped text and tables. In a column of texts, one search finds those that need escaping;
the others stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from rageval_spec.diagnostics import make_visible
from rageval_spec.libraries import pl


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


_STARTS = r"^[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]"
_HIDDEN = r"\x00-\x09\x0B-\x1F\x7F-\x9F\u2028\u2029\u202A-\u202E\u2066-\u2069"
IN_LINES = rf"{_STARTS}|[{_HIDDEN}]"
"""Matches, in polars, the texts that `wording.protect_cell` changes because of more than a line feed."""
IN_ONE_LINE = rf"{_STARTS}|[{_HIDDEN}\n]"
"""Matches, in polars, the texts that `wording.protect_cell` changes."""


def escape_column(column: pl.Series, escape: Callable[[str], str], pattern: str = IN_ONE_LINE) -> pl.Series:
    """A column of texts, with those escaped that match a pattern of polars; `escape` must leave alone all others."""
    found = column.str.contains(pattern).fill_null(False)
    if not found.any():
        return column
    escaped = column.filter(found).map_elements(escape, return_dtype=pl.String)
    return column.scatter(found.arg_true(), escaped)


def is_plain(column: pl.Series) -> bool:
    """Whether a column of JSON has nothing to escape, because it is ASCII: JSON itself escapes control characters.

    This is ten times as fast as to look for what needs it. A delete character is the one that JSON leaves alone.
    """
    is_ascii = column.str.len_bytes().sum() == column.str.len_chars().sum()
    return is_ascii and not column.str.contains("\x7f", literal=True).any()
