"""Rows of a file with this package's column names, and the location of each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from rageval_spec.errors import DataError
from rageval_spec.reading.mapping import guess_names, list_names, write_mapping
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["id", "text", "number"]


class Column(NamedTuple):
    """A column to read.

    Attributes:
        name: what it is called in the records.
        known: the names it may have in the file; the first one present is used.
        kind: an id is text or an integer.
        required: whether a file without it is refused. If not, the column is all null.
        advice: what else helps if the column is missing; for messages.
        mapped: whether the spec gives its name.
        setting: the keys of the spec that lead to its name: `("columns", "queries")`.
    """

    name: str
    known: tuple[str, ...]
    kind: Kind = "text"
    required: bool = True
    advice: str = ""
    mapped: bool = False
    setting: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of the spec that gives its name: `columns.queries.text`."""
        return ".".join((*self.setting, self.name))


@dataclass(frozen=True)
class Records:
    """Rows of a file.

    Attributes:
        frame: one column for each requested column; for text formats, all are String.
        locate: gives the location of a row: `file:line`, or `file: row 7` if the format has no lines.
    """

    frame: pl.DataFrame
    locate: Callable[[int], str]


def choose_keys(place: str, columns: Iterable[Column], present: Sequence[str]) -> dict[Column, str]:
    """The name of each column in a file whose keys are `present`. Absent optional columns are left out.

    Raises:
        DataError: a required or mapped column is missing, or its name is listed twice.
    """
    keys: dict[Column, str] = {}
    absent: list[Column] = []
    for column in columns:
        key = next((name for name in column.known if name in present), None)
        if key is not None and present.count(key) > 1:
            raise DataError(f"{place}: '{key}' is listed twice")
        if key is not None:
            keys[column] = key
        elif column.required or column.mapped:
            absent.append(column)
    if absent:
        message, hint = explain_absent(absent, present, keys.values())
        raise DataError(f"{place}: {message}" + (f"; {hint}" if hint else ""))
    return keys


def chosen_names(columns: Iterable[Column], present: Collection[str]) -> set[str]:
    """The names that `choose_keys` gives to the columns that the file has."""
    found = (next((name for name in column.known if name in present), None) for column in columns)
    return {name for name in found if name is not None}


def explain_absent(
    absent: Sequence[Column], present: Sequence[str], taken: Collection[str] = ()
) -> tuple[str, str | None]:
    """A message (which columns are missing, and which exist) and a hint (the mapping to write, or what to correct)."""
    wrong = [column for column in absent if column.mapped]
    there = f"the columns are {list_names(present)}" if len(present) != 1 else f"the only column is {present[0]!r}"
    there = there if present else "the file has no columns"
    message = f"no column {_list_known(wrong or absent)}; {there}"
    if wrong:
        return message, f"correct {' and '.join(repr(column.key) for column in wrong)}"
    setting = absent[0].setting
    names = guess_names([column.name for column in absent], present, taken)
    advice = [_advise(absent, names)] if setting else []
    advice += dict.fromkeys(column.advice for column in absent if column.advice)
    return message, ", or ".join(advice) or None


def with_absent(frame: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    """The frame with the columns in the requested order; columns that the file lacks are all null."""
    import polars as pl

    return frame.select(
        pl.col(column.name) if column.name in frame.columns else pl.lit(None, pl.String).alias(column.name)
        for column in columns
    )


def _advise(absent: Sequence[Column], names: Mapping[str, str]) -> str:
    if len(names) == len(absent):
        return f"write {write_mapping(absent[0].setting, names)}"
    return f"name {'it' if len(absent) == 1 else 'them'} in {' and '.join(repr(column.key) for column in absent)}"


def _list_known(columns: Iterable[Column]) -> str:
    return " and no column ".join(list_choices([f"'{name}'" for name in column.known]) for column in columns)
