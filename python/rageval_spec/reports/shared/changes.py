"""Values of a baseline, beside those of an evaluation.

The baseline is what a caller names; without a name, it is what gates compare with, and else the evaluation's own first
system that has the metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.data.cell import CELL

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

SMALLEST_CHANGE = 1e-9
"""A smaller difference between two values does not count as a change: rounding can cause it."""


class Baseline(NamedTuple):
    """What values are compared with.

    Attributes:
        name: how a reader knows it: a label, a folder, or a system.
        evaluation: the earlier evaluation; None if `name` is a baseline of a gate, whose values lie beside the
            evaluation, or a system of the evaluation itself.
    """

    name: str
    evaluation: Evaluation | None = None


def match_systems(systems: Iterable[str], earlier: Iterable[str]) -> dict[str, str]:
    """The earlier system that each system is compared with: the one of the same name.

    If no name occurs in both and each side has one system, these two are compared. Systems without a counterpart are
    left out.
    """
    now, before = list(systems), list(earlier)
    matched = {system: system for system in now if system in before}
    return dict(zip(now, before, strict=True)) if not matched and len(now) == len(before) == 1 else matched


def find_base_values(evaluation: Evaluation, baseline: Baseline | None = None) -> pl.DataFrame:
    """The baseline's scored values: columns `dataset, system, metric, query_id, base, against`.

    `system` is the system of `evaluation` that the value is compared with, and `against` the name of the baseline that
    the value belongs to.

    Without a baseline, each cell has the first of these that has values of it: the baseline of the first gate on its
    metric, the baselines of the other gates in their order, and the first system that has the metric.
    """
    import polars as pl

    if baseline is not None:
        return _find_named(evaluation, baseline)
    found = [table for table in _list_usual(evaluation) if not table.is_empty()]
    chosen: list[pl.DataFrame] = []
    for table in found:
        for earlier in chosen:
            table = table.join(earlier.select(CELL).unique(), on=CELL, how="anti", maintain_order="left")
        chosen.append(table)
    return pl.concat(chosen) if chosen else _find_first_systems(evaluation)


def list_baselines(evaluation: Evaluation) -> list[str]:
    """The names that gates compare with and whose values are known, each once, in the order of the gates."""
    kept = evaluation.base_values.get_column("baseline").unique(maintain_order=True).to_list()
    named = [gate.get("baseline") for gate in evaluation.spec.get("gates", ())]
    return [name for name in dict.fromkeys([*named, *kept]) if name in kept or name in evaluation.systems]


def _find_named(evaluation: Evaluation, baseline: Baseline) -> pl.DataFrame:
    import polars as pl

    if baseline.evaluation is None:
        return _find_of_gate(evaluation, baseline.name)
    pairs = match_systems(evaluation.systems, baseline.evaluation.systems)
    names = pl.DataFrame(
        {"of": list(pairs.values()), "system": list(pairs)}, schema=dict.fromkeys(("of", "system"), pl.String)
    )
    scored = _list_scored(baseline.evaluation).rename({"system": "of"})
    return _name(scored.join(names, on="of", maintain_order="left"), baseline.name)


def _list_usual(evaluation: Evaluation) -> Iterator[pl.DataFrame]:
    """Base values of the baselines of gates and of the first systems, those that go before others first."""
    import polars as pl

    tables = {name: _find_of_gate(evaluation, name) for name in list_baselines(evaluation)}
    first: dict[str, str] = {}
    for gate in evaluation.spec.get("gates", ()):
        if gate.get("baseline") in tables:
            first.setdefault(gate["metric"], gate["baseline"])
    for name, table in tables.items():
        yield table.filter(pl.col("metric").is_in([metric for metric, of in first.items() if of == name]))
    yield from tables.values()
    yield _find_first_systems(evaluation)


def _find_of_gate(evaluation: Evaluation, name: str) -> pl.DataFrame:
    """The values of a gate's baseline: an earlier evaluation, or a system of this one."""
    kept = evaluation.base_values.filter(baseline=name)
    if not kept.is_empty() or name not in evaluation.systems:
        return _name(kept.rename({"value": "base"}), name)
    cells = _list_cells(evaluation)
    return _pair(evaluation, cells.filter(system=name), cells)


def _find_first_systems(evaluation: Evaluation) -> pl.DataFrame:
    """The values of the first system with each metric on each dataset, once for every other system with the metric."""
    import polars as pl

    place = {system: at for at, system in enumerate(evaluation.systems)}
    cells = _list_cells(evaluation)
    ordered = cells.sort(pl.col("system").replace_strict(place, default=len(place), return_dtype=pl.Int64))
    return _pair(evaluation, ordered.unique(["dataset", "metric"], keep="first", maintain_order=True), cells)


def _pair(evaluation: Evaluation, base: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """The values of the base cells, once for every other cell of the same dataset and metric."""
    import polars as pl

    others = cells.join(base, on=CELL, how="anti", maintain_order="left")
    scored = _list_scored(evaluation).join(base, on=CELL, how="semi", maintain_order="left")
    paired = scored.rename({"system": "against"}).join(others, on=["dataset", "metric"], maintain_order="left")
    return paired.select(*CELL, "query_id", "base", pl.col("against"))


def _list_cells(evaluation: Evaluation) -> pl.DataFrame:
    return evaluation.values.select(CELL).unique(maintain_order=True)


def _list_scored(evaluation: Evaluation) -> pl.DataFrame:
    import polars as pl

    return evaluation.values.filter(pl.col("status") == "scored").select(*CELL, "query_id", base="value")


def _name(table: pl.DataFrame, name: str) -> pl.DataFrame:
    import polars as pl

    return table.select(*CELL, "query_id", "base", pl.lit(name).alias("against"))
