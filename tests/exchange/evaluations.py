"""Evaluations of answers that were read from traces, made by hand, for tests of what sends their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from rageval_spec.data.bands import BandScale, Level
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import SampleTable, type_samples
from rageval_spec.data.traces import TraceLink
from tests.answered_evaluation import sample, value
from tests.sample_evaluation import make_evaluation

SCALE = BandScale("custom", (Level("good", 0.8), Level("poor", None)))
_TEXTS = ("dataset", "system", "metric", "query_id", "status", "reason", "details")


def make_traced(
    links: Mapping[str, TraceLink | None],
    values: Sequence[Mapping[str, Any]] | None = None,
    systems: Sequence[str] = ("v1",),
    **more: Any,
) -> Evaluation:
    """Answers with these links by question, and by default a `faithfulness` that falls from 0.9 by 0.2."""
    if values is None:
        values = [
            value(query_id, "faithfulness", round(0.9 - 0.2 * place, 2), system, reason=f"because {query_id}")
            for system in systems
            for place, query_id in enumerate(links)
        ]
    rows = [
        sample(
            query_id, system, trace=None if link is None else link.dump(), contexts=["c1"], context_ids=["d1"], **more
        )
        for system in systems
        for query_id, link in links.items()
    ]
    metrics = tuple(dict.fromkeys(row["metric"] for row in values))
    samples = type_samples(pl.DataFrame(rows, infer_schema_length=None))
    table = pl.DataFrame(values, schema={**dict.fromkeys(_TEXTS, pl.String()), "value": pl.Float64()}, orient="row")
    return replace(
        make_evaluation(systems=systems, metrics=dict.fromkeys(metrics, (0.5,))),
        values=table,
        metrics=metrics,
        bands={"faithfulness": SCALE},
        sample_table=SampleTable(lambda: [samples]),
    )
