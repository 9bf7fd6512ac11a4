"""The samples table agrees with the samples from which metrics are computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import SAMPLES, Collection, answers_table
from rageval_spec.pipeline.answers import NOT_ANSWERED, build_samples
from rageval_spec.pipeline.samples import SampleParts, tabulate_samples
from rageval_spec.runner import Options, run
from tests.answering import Canned
from tests.tiny import Install, install, write_spec

__all__ = ["install"]

QUERIES = pl.DataFrame({"query_id": ["q2", "q1", "q3", "q4"], "text": ["two", "one", "three", "four"]})
REFERENCES = pl.DataFrame(
    [
        {"query_id": "q1", "references": ["eins", "uno"], "reference_contexts": ["c"], "answerable": True},
        {"query_id": "q3", "references": [], "group": "g", "condition": "noisy"},
    ],
    schema={
        "query_id": pl.String,
        "references": pl.List(pl.String),
        "reference_contexts": pl.List(pl.String),
        "answerable": pl.Boolean,
        "group": pl.String,
        "condition": pl.String,
    },
)
QRELS = pl.DataFrame(
    {"query_id": ["q1", "q2", "q1", "q9"], "doc_id": ["b", "a", "c", "d"], "relevance": [2, 0, 1, 1]},
)
ROWS: list[dict[str, Any]] = [
    {"query_id": "q1", "answer": "1", "contexts": ["x", "y"], "context_ids": ["b", "a"], "seconds": 0.5, "cost": 0.1},
    {"query_id": "q2", "answer": "", "contexts": [], "input_tokens": 3, "output_tokens": 4, "scores": [1.0]},
    {"query_id": "q3", "answer": "left out", "error": "timed out"},
    {"query_id": "q7", "answer": "to a question that nobody asked"},
]


def collect(*, references: pl.DataFrame | None = REFERENCES, qrels: pl.DataFrame | None = QRELS) -> Collection:
    return Collection(
        "golden",
        load_queries=lambda: QUERIES,
        load_references=lambda: references,
        load_qrels=lambda: qrels,
    )


@pytest.mark.parametrize("references", [REFERENCES, None])
@pytest.mark.parametrize("qrels", [QRELS, None])
def test_the_table_equals_the_samples(references: pl.DataFrame | None, qrels: pl.DataFrame | None) -> None:
    asked, answers = collect(references=references, qrels=qrels), answers_table(ROWS)
    table = SampleParts.of(asked, "bot", answers).tabulate()
    assert table.columns == list(SAMPLES)
    assert set(table["dataset"]) == {"golden"}
    assert set(table["system"]) == {"bot"}
    samples = build_samples(asked, answers)
    assert table["query_id"].to_list() == ["q2", "q1", "q3", "q4"] == [sample.query_id for sample in samples]
    for row, sample in zip(table.iter_rows(named=True), samples, strict=True):
        relevant = row.pop("relevant")
        found = None if relevant is None else {one["doc_id"]: one["relevance"] for one in relevant}
        assert found == sample.relevant
        for name in set(row) - {"dataset", "system"}:
            expected = getattr(sample, name)
            assert row[name] == (list(expected) if isinstance(expected, tuple) else expected), name


def test_a_query_without_an_answer_says_why() -> None:
    table = SampleParts.of(collect(), "bot", answers_table(ROWS)).tabulate()
    found = dict(table.select("query_id", "error").iter_rows())
    assert found == {"q1": None, "q2": None, "q3": "timed out", "q4": NOT_ANSWERED}
    assert table["answer"].to_list() == ["", "1", None, None]


def test_no_system_that_answers_gives_a_table_without_rows() -> None:
    assert (tabulate_samples([]).height, tabulate_samples([]).columns) == (0, list(SAMPLES))


def evaluate(folder: Path, out: str, **sections: Any) -> Any:
    systems = {
        "bot": {"use": "canned", "answers": {"q1": "yes", "q3": {"answer": "no", "context_ids": ["d4"]}}},
        "good": {"use": "file", "path": "data/good.run"},
        "mute": {"use": "canned", "answers": {}},
    }
    path = write_spec(folder, systems=systems, metrics=["rr", "error_rate"], reports=["samples"], **sections)
    return run(path, Options(output=folder / out))


def test_an_evaluation_has_the_samples_of_the_systems_that_answer(tmp_path: Path, install: Install) -> None:
    install("systems", "canned", Canned)
    samples = evaluate(tmp_path, "out").evaluation.samples
    assert samples["system"].unique(maintain_order=True).to_list() == ["bot", "mute"]
    answers = samples.filter(pl.col("system") == "bot").select("query_id", "question", "answer").rows()
    assert ("q1", "red apple", "yes") in answers
    assert set(samples.filter(pl.col("system") == "mute")["error"]) == {NOT_ANSWERED}


def test_the_same_spec_and_data_give_the_same_bytes_of_samples(tmp_path: Path, install: Install) -> None:
    install("systems", "canned", Canned)
    for out in ("one", "two"):
        evaluate(tmp_path, out)
    first, second = ((tmp_path / out / "samples.parquet").read_bytes() for out in ("one", "two"))
    assert first == second
    assert pl.read_parquet(tmp_path / "one" / "samples.parquet").height > 0
