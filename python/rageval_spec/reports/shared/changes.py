"""Values of a baseline, beside those of an evaluation.

The baseline is an earlier evaluation, whose systems are matched by name, or the evaluation's own first system that has
the metric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec.data.cell import CELL

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

SMALLEST_CHANGE = 1e-9
"""A smaller difference between two values does not count as a change: rounding can cause it."""


def match_systems(systems: Iterable[str], earlier: Iterable[str]) -> dict[str, str]:
    """The earlier system that each system is compared with: the one of the same name.

    If no name occurs in both and each side has one system, these two are compared. Systems without a counterpart are
    left out.
    """
    now, before = list(systems), list(earlier)
    matched = {system: system for system in now if system in before}
    return dict(zip(now, before, strict=True)) if not matched and len(now) == len(before) == 1 else matched


def find_base_values(evaluation: Evaluation, baseline: Evaluation | None) -> pl.DataFrame:
    """The baseline's scored values: columns `dataset, system, metric, query_id, base`.

    `system` is the system of `evaluation` that the value is compared with, not the one that it belongs to.

    Args:
        evaluation: the later evaluation.
        baseline: the earlier one; None compares with the first system of `evaluation` that has the metric.
    """
    import polars as pl

    of = evaluation.values if baseline is None else baseline.values
    scored = of.filter(pl.col("status") == "scored").select(*CELL, "query_id", base="value")
    if baseline is None:
        return _pair_first_systems(evaluation, scored)
    pairs = match_systems(evaluation.systems, baseline.systems)
    names = pl.DataFrame(
        {"system": list(pairs.values()), "now": list(pairs)}, schema=dict.fromkeys(("system", "now"), pl.String)
    )
    return scored.join(names, on="system").select(
        "dataset", pl.col("now").alias("system"), "metric", "query_id", "base"
    )


def _pair_first_systems(evaluation: Evaluation, scored: pl.DataFrame) -> pl.DataFrame:
    """The values of the first system with each metric on each dataset, once for every other system with the metric."""
    import polars as pl

    place = {system: at for at, system in enumerate(evaluation.systems)}
    cells = (
        evaluation.values.select(*CELL)
        .unique()
        .with_columns(pl.col("system").replace_strict(place, default=len(place), return_dtype=pl.Int64).alias("place"))
    )
    first = cells.sort("place").unique(["dataset", "metric"], keep="first", maintain_order=True)
    others = cells.join(first, on=list(CELL), how="anti").select(*CELL)
    base = scored.join(first.select(*CELL), on=list(CELL), how="semi").drop("system")
    return base.join(others, on=["dataset", "metric"]).select(*CELL, "query_id", "base")
