"""What a reader should look at first: queries that failed, and those whose answers came out worst, with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

MOST_EACH = 3
"""Queries that are shown for each metric of each system."""
MOST_CLAIMS = 2


@dataclass(frozen=True, slots=True)
class Highlight:
    """One query: its value, or None where it failed, and why it came out so."""

    dataset: str
    system: str
    metric: str
    query_id: str
    value: float | None
    reason: str


def list_failed(evaluation: Evaluation, most: int = MOST_EACH) -> Iterator[Highlight]:
    """The first queries of each cell that have the status "error" for a reason of their own."""
    import polars as pl

    failed = evaluation.values.filter(pl.col("status") == "error")
    for (dataset, system, metric), rows in _split(failed):
        if not any(failure.startswith(f"{system} on {dataset}: ") for failure in evaluation.failures):
            for row in rows[:most]:
                yield Highlight(dataset, system, metric, row["query_id"], None, row["reason"] or "")


def list_worst(evaluation: Evaluation, most: int = MOST_EACH) -> Iterator[Highlight]:
    """The worst queries of each cell that say what they were computed from, unless all of them are equally good."""
    import polars as pl

    if "details" not in evaluation.values.columns:
        return
    told = evaluation.values.filter((pl.col("status") == "scored") & pl.col("details").is_not_null())
    for (dataset, system, metric), rows in _split(told):
        ordered = sorted(rows, key=lambda row: row["value"], reverse=metric in evaluation.lower_is_better)
        best = ordered[-1]["value"]
        for row in ordered[:most]:
            if row["value"] != best:
                reason = _explain(json.loads(row["details"])) or row["reason"] or ""
                yield Highlight(dataset, system, metric, row["query_id"], row["value"], reason)


def _split(values: Any) -> Iterator[tuple[tuple[str, str, str], list[dict[str, Any]]]]:
    for key, frame in values.partition_by(["dataset", "system", "metric"], as_dict=True, maintain_order=True).items():
        dataset, system, metric = key
        yield (dataset, system, metric), frame.to_dicts()


def _explain(details: Mapping[str, Any]) -> str:
    """The claims that did worst, quoted; empty where the details have none."""
    told = details.get("claims")
    claims = [claim for claim in told if isinstance(claim, dict) and "text" in claim] if isinstance(told, list) else []
    worst = sorted(claims, key=lambda claim: claim.get("score", 0.0))[:MOST_CLAIMS]
    return "; ".join(_quote(claim) for claim in worst if claim.get("score", 0.0) < 1.0)


def _quote(claim: Mapping[str, Any]) -> str:
    verdict = str(claim.get("verdict") or f"score {claim.get('score', 0.0):.2f}").replace("_", " ")
    reason = f": {claim['reason']}" if claim.get("reason") else ""
    return f"“{claim['text']}” ({verdict}{reason})"
