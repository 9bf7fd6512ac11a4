"""Every dataset says where its questions are, in the order of `Collection.queries`."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rageval_spec.plugin import Dataset, DatasetNode
from tests.plugins import build_dataset, write

QRELS = "query-id\tcorpus-id\tscore\nb\td1\t1\n"


def build(kind: str, folder: Path) -> Dataset[DatasetNode]:
    if kind == "beir":
        write(folder / "queries.jsonl", '{"_id": "b", "text": "two"}\n\n{"_id": "a", "text": "one"}\n', ".gz")
        write(folder / "qrels" / "test.tsv", QRELS)
        return build_dataset("beir", folder, path=".")
    if kind == "jsonl":
        write(folder / "golden.jsonl", '{"id": "b", "question": "two"}\n\n{"id": "a", "question": "one"}\n')
        return build_dataset("jsonl", folder, path="golden.jsonl")
    if kind == "json":
        write(folder / "golden.json", '{"test_cases": [\n{"id": "b", "query": "two"},\n\n{"id": "a", "query": "one"}]}')
        return build_dataset("jsonl", folder, path="golden.json")
    if kind == "csv":
        write(folder / "golden.csv", 'id,question\nb,"two"\n\na,one\n')
        return build_dataset("csv", folder, path="golden.csv")
    if kind == "parquet":
        pl.DataFrame({"id": ["b", "a"], "question": ["two", "one"]}).write_parquet(folder / "golden.parquet")
        return build_dataset("parquet", folder, path="golden.parquet")
    write(folder / "qrels.txt", "b 0 d1 1\n")
    write(folder / "queries.tsv", "b\ttwo\n\na\tone\n")
    return build_dataset("trec", folder, qrels="qrels.txt", queries="queries.tsv")


PLACES = {
    "beir": ["queries.jsonl.gz:1", "queries.jsonl.gz:3"],
    "jsonl": ["golden.jsonl:1", "golden.jsonl:3"],
    "json": ["golden.json:2", "golden.json:4"],
    "csv": ["golden.csv:2", "golden.csv:4"],
    "parquet": ["golden.parquet: row 1", "golden.parquet: row 2"],
    "trec": ["queries.tsv:1", "queries.tsv:3"],
}


@pytest.mark.parametrize("kind", PLACES)
def test_questions_have_places(tmp_path: Path, kind: str) -> None:
    dataset = build(kind, tmp_path)
    found = dataset.iterate_questions()
    assert found is not None
    places, rows = zip(*found, strict=True)
    assert [place.removeprefix(f"{tmp_path}/") for place in places] == PLACES[kind]
    texts = [row.get("text") or row.get("question") or row.get("query") for row in rows]
    queries = dataset.open().queries
    assert queries is not None
    assert texts == queries["text"].to_list() == ["two", "one"]


def test_judgements_alone_have_no_questions(tmp_path: Path) -> None:
    write(tmp_path / "qrels.txt", "b 0 d1 1\n")
    assert build_dataset("trec", tmp_path, qrels="qrels.txt").iterate_questions() is None
    write(tmp_path / "qrels" / "test.tsv", QRELS)
    assert build_dataset("beir", tmp_path, path=".").iterate_questions() is None
    write(tmp_path / "qrels.csv", "query_id,doc_id,relevance\nb,d1,1\n")
    assert build_dataset("csv", tmp_path, path="qrels.csv").iterate_questions() is None
