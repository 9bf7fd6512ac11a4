"""An evaluation with answers, claims and judged documents, made by hand, for tests of cards and what shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from rageval_spec.data import tables
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.results import Record
from rageval_spec.data.tables import SampleTable
from rageval_spec.history.saved_evaluations import write_record
from tests.sample_evaluation import alter, make_evaluation

ANSWER = "The bridge is 120 m long. It was built in 1911."
CLAIMS = (
    {"text": "The bridge is 120 m long.", "start": 0, "end": 25, "verdict": "supported", "score": 1.0, "source": 0,
     "evidence": "120 m long"},
    {"text": "It was built in 1911.", "start": 26, "end": 47, "verdict": "contradicted", "score": 0.0, "source": 1,
     "evidence": "opened in 1909", "reason": "the source says 1909"},
)  # fmt: skip
_METRICS = ("faithfulness", "token_f1", "ndcg@10", "latency")
_VALUES = {
    **dict.fromkeys(("dataset", "system", "metric", "query_id", "status", "reason", "details"), pl.String()),
    "value": pl.Float64(),
}


def value(
    query_id: str, metric: str, number: float | None, system: str = "v1", dataset: str = "golden", **more: Any
) -> dict[str, Any]:
    """A row of the values table; without a number it is unscorable."""
    status = "unscorable" if number is None else "scored"
    row: dict[str, Any] = {"dataset": dataset, "system": system, "metric": metric}
    row |= {"query_id": query_id, "value": number}
    row |= {"status": status, "reason": None, "details": None, **more}
    if isinstance(row["details"], dict):
        row["details"] = json.dumps(row["details"])
    return row


def sample(query_id: str, system: str = "v1", dataset: str = "golden", **more: Any) -> dict[str, Any]:
    """A row of the samples table: an answered question, unless `more` says otherwise."""
    row: dict[str, Any] = dict.fromkeys(tables.SAMPLES)
    row |= {"dataset": dataset, "system": system, "query_id": query_id, "question": f"Question {query_id}?"}
    return row | {"answer": ANSWER, "slices": [], "references": ["The bridge was built in 1909."], **more}


BRIDGE = sample(
    "q1",
    contexts=["The bridge is 120 m long.", "It opened in 1909."],
    context_ids=["length", "opening"],
    relevant=[{"doc_id": id, "relevance": grade} for id, grade in (("opening", 2), ("history", 1), ("x", 0))],
    seconds=1.5,
    cost=0.002,
)  # fmt: skip


def answered(
    values: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[str, Any]] = (), **changes: Any
) -> Evaluation:
    """An evaluation of these values and samples."""
    empty = tables.empty_samples()
    schema: dict[str, Any] = dict(empty.schema)
    schema |= {"columns": pl.String, "slices": pl.List(pl.String), "status": pl.String, "cause": pl.String}
    known = {name for row in samples for name in row}
    rows = [{name: row.get(name) for name in schema} for row in samples]
    table = pl.DataFrame(rows, schema=schema).select(name for name in schema if name in (*empty.columns, *known))
    systems = tuple(dict.fromkeys(row["system"] for row in (*samples, *values)))
    datasets = tuple(dict.fromkeys(row["dataset"] for row in (*samples, *values)))
    found = {row["metric"] for row in values}
    metrics = (*(name for name in _METRICS if name in found), *sorted(found.difference(_METRICS)))
    settled: dict[str, Any] = {
        "datasets": datasets, "systems": systems, "metrics": metrics, "aggregates": (), "comparisons": (), "gates": (),
        "notes": (), "lower_is_better": ("latency",), "units": {"latency": "seconds"},
        "values": pl.DataFrame(values, schema=_VALUES), "sample_table": SampleTable(lambda: [table]),
    }  # fmt: skip
    return alter(make_evaluation(), **(settled | changes))


def bridges(system: str = "v1", shift: float = 0.0) -> Evaluation:
    """Three questions: the first has a contradicted claim, the second is right, the third failed."""
    values = [
        value("q1", "faithfulness", 0.5 + shift, system, details={"claims": list(CLAIMS)}),
        value("q1", "token_f1", 0.25 + shift, system),
        value("q1", "ndcg@10", 0.6, system),
        value("q1", "latency", 1.5, system),
        value("q2", "faithfulness", 1.0, system),
        value("q2", "token_f1", 0.9 - shift, system),
        value("q2", "ndcg@10", 1.0, system),
        value("q2", "latency", 9.0, system),
        value("q3", "faithfulness", None, system, reason="there is no answer"),
        value("q3", "token_f1", None, system, status="error", reason="HTTP 500"),
    ]
    samples = [
        {**BRIDGE, "system": system},
        sample("q2", system, answer="It was built in 1909."),
        sample("q3", system, answer=None, error="HTTP 500: out of memory"),
    ]
    return answered(values, samples)


def save(evaluation: Evaluation, folder: Path) -> Path:
    """Write the evaluation as a results folder."""
    folder.mkdir(parents=True)
    write_record(Record("0", None, None, None, evaluation), folder)
    return folder
