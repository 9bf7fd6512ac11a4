"""The place of a number in an evaluation: one metric of one system on one dataset, or on a slice of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

CELL = ("dataset", "system", "metric")
"""The columns of the values table that name a cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one system on one dataset.

    Attributes:
        slice: the part of the dataset's queries that the number describes; None for all of them.
    """

    dataset: str
    system: str
    metric: str
    slice: str | None = None


def list_cells(values: pl.DataFrame) -> list[Cell]:
    """The cells of a values table, in the order in which they first occur."""
    return [*dict.fromkeys(cell for cell, _ in _list_blocks(values))]


def split_cells(values: pl.DataFrame) -> Iterator[tuple[Cell, pl.DataFrame]]:
    """Split a values table by cell. Cells and rows keep the order that they have in the table.

    Where the rows of each cell follow one another, as in every table that an evaluation makes, no row is copied.
    """
    blocks = _list_blocks(values)
    if len({cell for cell, _ in blocks}) == len(blocks):
        starts = [*(start for _, start in blocks), values.height]
        for number, (cell, start) in enumerate(blocks):
            yield cell, values.slice(start, starts[number + 1] - start)
        return
    for key, frame in values.partition_by(*CELL, as_dict=True, maintain_order=True).items():
        yield Cell(*map(str, key)), frame


def _list_blocks(values: pl.DataFrame) -> list[tuple[Cell, int]]:
    """The cell of each block of consecutive rows of one cell, and its first row.

    Finding distinct rows would need several times the memory of the columns.
    """
    import polars as pl

    begins = values.select(pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in CELL))
    starts = begins.to_series().arg_true()
    keys = values.select(pl.col(*CELL).gather(starts))
    return [(Cell(*map(str, key)), start) for key, start in zip(keys.iter_rows(), starts, strict=True)]
