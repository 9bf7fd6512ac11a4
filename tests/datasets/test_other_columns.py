"""The columns of questions that no part is read from, in every format."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import Collection
from tests.datasets.test_gold_answers import open_rows
from tests.plugins import build_dataset

ROWS: list[dict[str, Any]] = [
    {"id": "q1", "question": "a?", "reference": "x", "level": "hard", "hops": 2},
    {"id": "q2", "question": "b?", "reference": "y", "level": "easy", "hops": 1},
]


def columns(collection: Collection) -> dict[str, dict[str, Any]]:
    assert collection.columns is not None
    assert collection.columns.columns == ["query_id", "columns"]
    return {query_id: json.loads(text) for query_id, text in collection.columns.iter_rows()}


@pytest.mark.parametrize("word", ["jsonl", "csv", "parquet"])
def test_what_no_part_is_read_from_stays(tmp_path: Path, word: str) -> None:
    one = "1" if word == "csv" else 1
    two = "2" if word == "csv" else 2
    collection = open_rows(tmp_path, word, ROWS)
    assert columns(collection) == {"q1": {"hops": two, "level": "hard"}, "q2": {"hops": one, "level": "easy"}}
    dataset = build_dataset(word, tmp_path, path=f"golden.{word}")
    assert set(dataset.list_other_columns() or ()) == {"level", "hops"}


@pytest.mark.parametrize("word", ["jsonl", "csv", "parquet"])
def test_a_file_without_other_columns_has_none(tmp_path: Path, word: str) -> None:
    rows = [{"user_input": "why?", "retrieved_contexts": ["no"], "response": "no", "reference": "gold"}]
    assert open_rows(tmp_path, word, rows).columns is None


def test_a_column_whose_part_is_mapped_elsewhere_is_another_column(tmp_path: Path) -> None:
    rows = [{"question": "a?", "reference": "draft", "gold": "x"}]
    collection = open_rows(tmp_path, "jsonl", rows, columns={"reference": "gold"})
    assert columns(collection) == {"1": {"reference": "draft"}}


def test_the_columns_of_a_queries_file_are_read_and_those_of_judgements_are_not(tmp_path: Path) -> None:
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,relevance,judge\nq1,d1,1,ann\n")
    (tmp_path / "queries.csv").write_text("query_id,text,topic\nq1,a,billing\n")
    collection = build_dataset("csv", tmp_path, path="qrels.csv", queries="queries.csv").open()
    assert columns(collection) == {"q1": {"topic": "billing"}}
    assert build_dataset("csv", tmp_path, path="qrels.csv").open().columns is None


def test_values_are_as_the_file_has_them(tmp_path: Path) -> None:
    row = '{"id":"q1","question":"a?","tags":["b","a"],"more":{"z":1,"a":null},"half":"\\ud800","big":1e400}\n'
    (tmp_path / "g.jsonl").write_text(row + '{"id":"q2","question":"b?"}\n')
    table = build_dataset("jsonl", tmp_path, path="g.jsonl").open().columns
    assert table is not None
    assert table["columns"].to_list() == [
        '{"big":null,"half":"\\ud800","more":{"a":null,"z":1},"tags":["b","a"]}',
        "{}",
    ]


def test_parquet_values_that_json_lacks_become_text(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["q1"], "question": ["a?"], "day": [date(2024, 5, 1)], "raw": [b"\x00"]})
    frame.write_parquet(tmp_path / "g.parquet")
    collection = build_dataset("parquet", tmp_path, path="g.parquet").open()
    assert columns(collection) == {"q1": {"day": "2024-05-01", "raw": "AA=="}}


def test_the_metadata_of_beir_queries_are_columns(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\n")
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "how", "metadata": {"year": 2001, "kind": "inner"}, "kind": "own"}\n'
        '{"_id": "q2", "text": "why"}\n'
    )
    dataset = build_dataset("beir", tmp_path, path=".")
    assert columns(dataset.open()) == {"q1": {"kind": "own", "year": 2001}, "q2": {}}
    assert list(dataset.list_other_columns() or ()) == ["year", "kind"]


def test_what_promptfoo_merges_is_not_listed_twice(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_text('{"vars": {"question": "a?", "level": "hard"}}\n')
    collection = build_dataset("jsonl", tmp_path, path="g.jsonl").open()
    assert columns(collection) == {"1": {"level": "hard"}}
