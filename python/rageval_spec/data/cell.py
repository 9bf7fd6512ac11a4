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


def split_cells(values: pl.DataFrame) -> Iterator[tuple[Cell, pl.DataFrame]]:
    """Split a values table by cell. Cells and rows keep the order that they have in the table."""
    for key, frame in values.partition_by(*CELL, as_dict=True, maintain_order=True).items():
        yield Cell(*map(str, key)), frame
