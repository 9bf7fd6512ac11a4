from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rageval_spec.errors import DataError
from tests.plugins import COMPRESSIONS, build_dataset, write


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_qrels_queries_and_documents(tmp_path: Path, compression: str) -> None:
    write(tmp_path / "qrels.txt", "q1 0 d1 1\nq1 0 d2 -1\nq2 0 d1 2\n", compression)
    write(tmp_path / "queries.tsv", "q1\thow\tso\r\nq2\t\r\n", compression)
    write(tmp_path / "docs.jsonl", '{"id": "d1", "contents": "x"}\n', compression)
    names = {key: f"{name}{compression}" for key, name in [("queries", "queries.tsv"), ("corpus", "docs.jsonl")]}
    collection = build_dataset("trec", tmp_path, qrels=f"qrels.txt{compression}", **names).open()
    assert collection.qrels is not None and collection.queries is not None and collection.corpus is not None
    assert collection.qrels.rows() == [("q1", "d1", 1), ("q1", "d2", -1), ("q2", "d1", 2)]
    assert dict(collection.qrels.schema) == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    assert collection.queries.rows() == [("q1", "how\tso"), ("q2", "")]
    assert collection.corpus.rows() == [("d1", "", "x")]
    assert not collection.drops_self_retrieval


def test_qrels_are_enough(tmp_path: Path) -> None:
    write(tmp_path / "qrels.txt", "q1 0 d1 1\n")
    dataset = build_dataset("trec", tmp_path, qrels="qrels.txt")
    collection = dataset.open()
    assert collection.queries is None and collection.corpus is None
    assert [(file.path, file.key) for file in dataset.inputs()] == [(tmp_path / "qrels.txt", ("qrels",))]


def test_queries_can_be_json_lines(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", '{"_id": 1, "text": "how"}\n')
    collection = build_dataset("trec", tmp_path, qrels="qrels.txt", queries="queries.jsonl").open()
    assert collection.queries is not None
    assert collection.queries.rows() == [("1", "how")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1\ta\n\nq2 b\n", ":3: no tab; each line must be id, tab, text"),
        ("q1\ta\nq2\tb\nq1\tc\n", ":3: the query 'q1' is listed twice, first at "),
        ("q1\ta\n\tb\n", ":2: no query_id"),
        ("\n\n", ": the file has only blank lines"),
    ],
)
def test_a_wrong_query_line_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path / "queries.tsv", content)
    with pytest.raises(DataError) as caught:
        _ = build_dataset("trec", tmp_path, qrels="qrels.txt", queries="queries.tsv").open().queries
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_wrong_judgement_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "qrels.txt", "q1 0 d1 1\nq1 0 d2 high\n")
    with pytest.raises(DataError) as caught:
        _ = build_dataset("trec", tmp_path, qrels="qrels.txt").open().qrels
    assert str(caught.value).startswith(f"{path}:2")
