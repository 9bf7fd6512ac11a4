"""The values of earlier evaluations that gates compare with, kept beside an evaluation so that it can be read alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rageval_spec.data.cell import CELL

if TYPE_CHECKING:
    import polars as pl

BASE_VALUES = ("baseline", *CELL, "query_id", "value")
"""The columns: the name of the earlier evaluation as gates write it, and the value of this cell and query there."""


def empty_base_values() -> pl.DataFrame:
    """A table of base values without rows."""
    import polars as pl

    return pl.DataFrame(schema={name: pl.Float64() if name == "value" else pl.String() for name in BASE_VALUES})


def collect_base_values(values: pl.DataFrame, earlier: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """What the values of an evaluation were in earlier ones: columns `BASE_VALUES`.

    Args:
        values: the values table of the later evaluation.
        earlier: the values tables of the earlier evaluations, by the names that gates use.

    Returns:
        A row for each scored value of an earlier evaluation whose dataset, system, metric and query the later one has,
        in the order of `earlier`, then in that of `values`.
    """
    import polars as pl

    on = [*CELL, "query_id"]
    wanted = values.select(on)
    found = []
    for name, table in earlier.items():
        scored = table.filter(pl.col("status") == "scored").select(*on, "value")
        rows = wanted.join(scored, on=on, how="inner", maintain_order="left")
        found.append(rows.select(pl.lit(name).alias("baseline"), *on, "value"))
    return pl.concat([empty_base_values(), *found])
