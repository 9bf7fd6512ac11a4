"""Finds the queries that a reader should look at first: failed ones and those with the worst values, with reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rageval_spec.data.cell import Cell
    from rageval_spec.data.evaluation import Evaluation

MOST_EACH = 3
"""The number of queries to show for each metric of each system."""
MOST_CLAIMS = 2


class Highlight(NamedTuple):
    """One query, with its value (None if it failed) and the reason for it."""

    cell: Cell
    query_id: str
    value: float | None
    reason: str


def list_failed(evaluation: Evaluation, most: int = MOST_EACH) -> Iterator[Highlight]:
    """The first queries of each cell with the status "error", except where the whole system failed."""
    import polars as pl

    from rageval_spec.data.cell import split_cells

    failed = evaluation.values.filter(pl.col("status") == "error")
    for cell, rows in split_cells(failed):
        if not any(failure.startswith(f"{cell.system} on {cell.dataset}: ") for failure in evaluation.failures):
            for row in rows.head(most).to_dicts():
                yield Highlight(cell, row["query_id"], None, row["reason"] or "")


def list_worst(evaluation: Evaluation, most: int = MOST_EACH) -> Iterator[Highlight]:
    """The worst queries of each cell whose values have details, unless all values are equal."""
    import polars as pl

    from rageval_spec.data.cell import split_cells

    if "details" not in evaluation.values.columns:
        return
    told = evaluation.values.filter((pl.col("status") == "scored") & pl.col("details").is_not_null())
    for cell, rows in split_cells(told):
        ordered = sorted(
            rows.to_dicts(), key=lambda row: row["value"], reverse=cell.metric in evaluation.lower_is_better
        )
        best = ordered[-1]["value"]
        for row in ordered[:most]:
            if row["value"] != best:
                reason = _explain(json.loads(row["details"])) or row["reason"] or ""
                yield Highlight(cell, row["query_id"], row["value"], reason)


def _explain(details: Mapping[str, Any]) -> str:
    """The claims with the lowest scores, quoted; "" if the details have no claims."""
    told = details.get("claims")
    claims = [claim for claim in told if isinstance(claim, dict) and "text" in claim] if isinstance(told, list) else []
    worst = sorted(claims, key=lambda claim: claim.get("score", 0.0))[:MOST_CLAIMS]
    return "; ".join(_quote(claim) for claim in worst if claim.get("score", 0.0) < 1.0)


def _quote(claim: Mapping[str, Any]) -> str:
    verdict = str(claim.get("verdict") or f"score {claim.get('score', 0.0):.2f}").replace("_", " ")
    reason = f": {claim['reason']}" if claim.get("reason") else ""
    return f"“{claim['text']}” ({verdict}{reason})"
