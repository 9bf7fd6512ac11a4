"""Columns that a user names for the parts of what a file's rows hold: `value=rating`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.mapping import list_names


def read_parts(columns: Sequence[str], parts: Collection[str], noun: str, example: str) -> dict[str, str]:
    """The columns that a command line names as `part=name`, by part.

    Args:
        columns: what the command line says.
        parts: the parts that a row can have.
        noun: what a row is, for messages: `a label`.
        example: what to write, for messages: `value=rating`.

    Raises:
        UsageError: there is no such part, or no name.
    """
    named: dict[str, str] = {}
    for column in columns:
        part, equals, name = column.partition("=")
        if not equals or not name:
            raise UsageError(f"--column {column}: write PART=NAME, such as {example}")
        if part not in parts:
            hint = suggest(part, [*parts]) or f"write one of {', '.join(parts)}"
            raise UsageError(f"--column {column}: {noun} has no '{part}'; {hint}")
        named[part] = name
    return named


def require_columns(path: Path, columns: Mapping[str, str], present: Sequence[str]) -> None:
    """Check that a file has the columns that are named for parts.

    Raises:
        DataError: it lacks one.
    """
    for part, name in columns.items():
        if name not in present:
            raise DataError(f"{path}: there is no column '{name}' for {part}; the columns are {list_names(present)}")
