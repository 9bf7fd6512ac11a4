from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.errors import DataError
from tests.plugins import build_dataset


def write_qrels(folder: Path, **columns: Any) -> Path:
    whole = {"query_id": ["q0", "q1"], "doc_id": ["d0", "d1"], "relevance": [1, 1], **columns}
    pl.DataFrame(whole).write_parquet(folder / "qrels.parquet")
    return folder / "qrels.parquet"


def test_three_files_give_three_tables(tmp_path: Path) -> None:
    write_qrels(tmp_path, query_id=[1, 2], relevance=[2.0, 0.0])
    pl.DataFrame({"id": [1, 2], "query": ["a", "b"]}).write_parquet(tmp_path / "queries.parquet")
    documents = {"doc_id": pl.Series(["d1", "d2"], dtype=pl.Categorical), "text": ["x", ""]}
    pl.DataFrame(documents).write_parquet(tmp_path / "corpus.parquet")
    names = {"queries": "queries.parquet", "corpus": "corpus.parquet"}
    collection = build_dataset("parquet", tmp_path, path="qrels.parquet", **names).open()
    assert collection.qrels is not None and collection.queries is not None and collection.corpus is not None
    assert collection.qrels.rows() == [("1", "d0", 2), ("2", "d1", 0)]
    assert dict(collection.qrels.schema) == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    assert collection.queries.rows() == [("1", "a"), ("2", "b")]
    assert collection.corpus.rows() == [("d1", "", "x"), ("d2", "", "")]
    assert dict(collection.corpus.schema) == dict.fromkeys(("doc_id", "title", "text"), pl.String)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"relevance": [1.0, 0.5]},
            ": row 2: the relevance of document 'd1' for query 'q1' must be an integer, not 0.5",
        ),
        (
            {"relevance": [1, None]},
            ": row 2: the relevance of document 'd1' for query 'q1' must be an integer, not None",
        ),
        ({"relevance": [1.0, float("nan")]}, ": row 2: the relevance of document 'd1'"),
        ({"relevance": [True, False]}, ": the column 'relevance' must hold numbers, not Boolean"),
        ({"query_id": ["q0", None]}, ": row 2: no query_id"),
        ({"query_id": [0.0, 1.5]}, ": the column 'query_id' must hold text or integers, not Float64"),
        ({"doc_id": [["d0"], ["d1"]]}, ": the column 'doc_id' must hold text or integers, not List(String)"),
        ({"query_id": ["q0", "q0"], "doc_id": ["d0", "d0"]}, ": row 2: the document 'd0' is judged twice for query"),
    ],
)
def test_a_wrong_table_is_refused_with_the_row(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = write_qrels(tmp_path, **columns)
    with pytest.raises(DataError) as caught:
        _ = build_dataset("parquet", tmp_path, path="qrels.parquet").open().qrels
    assert str(caught.value).startswith(f"{path}{message}")


def test_numbers_in_text_columns_count(tmp_path: Path) -> None:
    write_qrels(tmp_path, relevance=["1", "2.0"])
    collection = build_dataset("parquet", tmp_path, path="qrels.parquet").open()
    assert collection.qrels is not None
    assert collection.qrels["relevance"].to_list() == [1, 2]


def test_files_that_are_not_parquet_are_refused(tmp_path: Path) -> None:
    path = write_qrels(tmp_path)
    whole = path.read_bytes()
    for content, message in (
        (b"query_id,doc_id\n", "this is CSV, not Parquet"),
        (whole[:-20], "not a Parquet file, or a damaged one"),
        (whole[:10], "not a Parquet file, or a damaged one"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            _ = build_dataset("parquet", tmp_path, path="qrels.parquet").open().qrels


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    path = write_qrels(tmp_path)
    pl.read_parquet(path).clear().write_parquet(path)
    with pytest.raises(DataError, match="no rows"):
        _ = build_dataset("parquet", tmp_path, path="qrels.parquet").open().qrels
