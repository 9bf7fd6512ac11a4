"""Rows of a file under this package's names, and the place each stands at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rageval_spec.errors import DataError

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["id", "text", "number"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read.

    Attributes:
        name: what it is called in the records.
        known: what it may be called in the file; the first that is there is taken.
        kind: an id is text or an integer.
        required: a file without it is refused; otherwise the records hold nulls.
        advice: what to do where it is not there, for messages.
        mapped: whether the spec gives its name.
    """

    name: str
    known: tuple[str, ...]
    kind: Kind = "text"
    required: bool = True
    advice: str = ""
    mapped: bool = False


@dataclass(frozen=True)
class Records:
    """Rows of a file.

    Attributes:
        frame: a column for each that was asked for; those of text formats are all String.
        locate: where a row of the frame stands: `file:line`, or `file: row 7` where a file has no lines.
    """

    frame: pl.DataFrame
    locate: Callable[[int], str]


def choose_keys(place: str, columns: Iterable[Column], present: Sequence[str]) -> dict[Column, str]:
    """What each column is called in a file whose keys are `present`; a column that need not be there may be left out.

    Raises:
        DataError: a required or mapped column is not there, or its name is there twice.
    """
    keys: dict[Column, str] = {}
    for column in columns:
        key = next((name for name in column.known if name in present), None)
        if key is None and (column.required or column.mapped):
            raise DataError(f"{place}: {_absent(column, present)}")
        if key is not None and present.count(key) > 1:
            raise DataError(f"{place}: '{key}' is there twice")
        if key is not None:
            keys[column] = key
    return keys


def with_absent(frame: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    """The frame with the columns in the order asked for, those that the file does not have all null."""
    import polars as pl

    return frame.select(
        pl.col(column.name) if column.name in frame.columns else pl.lit(None, pl.String).alias(column.name)
        for column in columns
    )


def _absent(column: Column, present: Sequence[str]) -> str:
    wanted = " or ".join(f"'{name}'" for name in column.known)
    there = ", ".join(f"'{name}'" for name in present[:12]) + (", ..." if len(present) > 12 else "")
    return f"no {wanted}; there is {there or 'nothing'}" + (f"; {column.advice}" if column.advice else "")
