"""Where a number of an evaluation stands: one metric of one system on one dataset, or on a slice of it."""

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
        slice: the part of the dataset's queries that the number is of; None where it is of all.
    """

    dataset: str
    system: str
    metric: str
    slice: str | None = None


def split_cells(values: pl.DataFrame) -> Iterator[tuple[Cell, pl.DataFrame]]:
    """The rows of each cell of a values table, cells and rows in the order in which they come there."""
    for key, frame in values.partition_by(*CELL, as_dict=True, maintain_order=True).items():
        yield Cell(*map(str, key)), frame
