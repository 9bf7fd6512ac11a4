"""Escapes columns of texts: finds those that need it with one search, and leaves the others alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_STARTS = r"^[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]"
_HIDDEN = r"\x00-\x09\x0B-\x1F\x7F-\x9F\u2028\u2029\u202A-\u202E\u2066-\u2069"
IN_LINES = rf"{_STARTS}|[{_HIDDEN}]"
"""Matches, in polars, the texts that `wording.protect_cell` changes because of more than a line feed."""
IN_ONE_LINE = rf"{_STARTS}|[{_HIDDEN}\n]"
"""Matches, in polars, the texts that `wording.protect_cell` changes."""


def escape_column(column: pl.Series, escape: Callable[[str], str], pattern: str = IN_ONE_LINE) -> pl.Series:
    """A column of texts with those escaped that need it.

    Args:
        column: the texts; None stays None.
        escape: what escapes a text. It must leave alone what does not match the pattern.
        pattern: a regular expression of polars that matches at least the texts that need it.
    """
    import polars as pl

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
