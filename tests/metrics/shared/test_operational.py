"""Operational and text metrics, from a spec to its reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.evaluation import Evaluation, Interval
from rageval_spec.data.tables import ANSWERS, Collection
from rageval_spec.plugin import Answering, System, SystemNode
from rageval_spec.runner import Options, run
from tests.tiny import Install, install

__all__ = ["install"]
COUNT = 100


class Slow(System[SystemNode]):
    """Answers with the question; the nth answer takes n / 10 seconds, and the last one fails."""

    node_type = SystemNode
    needs = frozenset({"queries"})
    can_answer = True
    stored = False

    def answer(self, collection: Collection) -> Answering:
        """One row per query."""
        assert collection.queries is not None
        rows = [
            {
                **dict.fromkeys(ANSWERS),
                "query_id": query_id,
                "answer": None if number == COUNT else text,
                "error": "timed out" if number == COUNT else None,
                "seconds": number / 10,
                "input_tokens": 1000,
                "output_tokens": 10,
            }
            for number, (query_id, text) in enumerate(collection.queries.select("query_id", "text").iter_rows(), 1)
        ]
        schema: dict[str, Any] = {
            "query_id": pl.String,
            "answer": pl.String,
            "contexts": pl.List(pl.String),
            "context_ids": pl.List(pl.String),
            "scores": pl.List(pl.Float64),
            "seconds": pl.Float64,
            "input_tokens": pl.Int64,
            "output_tokens": pl.Int64,
            "cost": pl.Float64,
            "error": pl.String,
        }
        return Answering(pl.DataFrame(rows, schema=schema))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    queries = (json.dumps({"_id": f"q{n:03}", "text": f"what is {n}"}) + "\n" for n in range(1, COUNT + 1))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text("".join(queries))
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "everything"}\n')
    rows = (f"q{n:03}\td1\t1\n" for n in range(1, COUNT + 1))
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return tmp_path


def evaluate(folder: Path, install: Install, **sections: Any) -> tuple[Evaluation, Path]:
    install("systems", "slow", Slow)
    spec = {
        "version": 1,
        "name": "operation",
        "datasets": {"golden": {"use": "beir", "path": "."}},
        "systems": {"rag": {"use": "slow"}, "other": {"use": "slow"}},
        "statistics": {"resamples": 100, "permutations": 100},
        **sections,
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec))
    return run(path, Options(quiet=True, output=folder / "out")).evaluation, folder / "out"


def test_percentiles_get_from_the_spec_into_reports(folder: Path, install: Install) -> None:
    evaluation, out = evaluate(
        folder,
        install,
        metrics=["latency", {"use": "latency", "percentile": 50}, {"use": "latency", "percentile": 95, "as": "slow"}],
        gates=[{"metric": "latency@p50", "max": 5.0}, {"metric": "slow", "max": 9.0, "system": "rag"}],
        reports=["json", "markdown"],
    )
    median = evaluation.aggregate("golden", "rag", "latency@p50")
    assert median is not None
    assert (median.mean, median.scored, median.total, median.statistic) == (5.0, 99, 100, "p50")
    assert median.interval == Interval(4.0, 6.0, 0.95, "order-statistics")
    assert [gate.outcome for gate in evaluation.gates] == ["pass", "pass", "fail"]
    assert evaluation.gates[2].reason == "slow of rag is 9.410, above the maximum 9.000"
    assert {comparison.metric for comparison in evaluation.comparisons} == {"latency"}
    results = json.loads((out / "results.json").read_text())
    assert {cell["metric"]: cell["statistic"] for cell in results["aggregates"]} == {
        "latency": "mean",
        "latency@p50": "p50",
        "slow": "p95",
    }
    assert results["units"] == {"latency": "seconds", "latency@p50": "seconds", "slow": "seconds"}
    report = (out / "report.md").read_text()
    assert "unit latency, latency@p50, slow in seconds" in report
    assert "p95 slow: 95% of the queries have a value below this one" in report


def test_a_failure_costs_its_values_and_counts_as_an_error(folder: Path, install: Install) -> None:
    price = {"input": 1, "output": 100}
    evaluation, _ = evaluate(
        folder, install, metrics=["error_rate", "tokens", {"use": "cost", "price": price}], reports=["json"]
    )
    cells = {cell.metric: (cell.mean, cell.scored) for cell in evaluation.aggregates if cell.system == "rag"}
    assert cells["error_rate"] == (0.01, 100)
    assert cells["tokens"] == (1010.0, 99)
    mean, scored = cells["cost"]
    assert mean == pytest.approx(0.002)
    assert scored == 99
