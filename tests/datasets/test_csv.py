from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rageval_spec.errors import DataError
from tests.datasets.bad_rows import QRELS
from tests.plugins import COMPRESSIONS, build_dataset, write


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_three_files_give_three_tables(tmp_path: Path, compression: str) -> None:
    write(tmp_path / "qrels.csv", "query_id,doc_id,relevance\nq1,d1,2\nq1,d2,0\nq2,d1,-1\n", compression)
    write(tmp_path / "queries.tsv", 'id\tquestion\nq1\thow "so"\nq2\t\n', compression)
    write(tmp_path / "corpus.csv", 'id,title,text\nd1,T,"a, b"\nd2,,\n', compression)
    names = {key: f"{name}{compression}" for key, name in [("queries", "queries.tsv"), ("corpus", "corpus.csv")]}
    collection = build_dataset("csv", tmp_path, path=f"qrels.csv{compression}", **names).open()
    assert collection.qrels is not None and collection.queries is not None and collection.corpus is not None
    assert collection.qrels.rows() == [("q1", "d1", 2), ("q1", "d2", 0), ("q2", "d1", -1)]
    assert dict(collection.qrels.schema) == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    assert collection.queries.rows() == [("q1", 'how "so"'), ("q2", "")]
    assert dict(collection.queries.schema) == {"query_id": pl.String, "text": pl.String}
    assert collection.corpus.rows() == [("d1", "T", "a, b"), ("d2", "", "")]
    assert dict(collection.corpus.schema) == dict.fromkeys(("doc_id", "title", "text"), pl.String)
    assert not collection.drops_self_retrieval


def test_columns_map_other_names(tmp_path: Path) -> None:
    write(tmp_path / "qrels.txt", "topic;page;grade;score\nq1;d1;3;9\n")
    write(tmp_path / "queries.txt", "nr;words;text\nq1;how;no\n")
    write(tmp_path / "corpus.txt", "page;head;body\nd1;T;B\n")
    collection = build_dataset(
        "csv",
        tmp_path,
        path="qrels.txt",
        columns={
            "query_id": "topic",
            "doc_id": "page",
            "relevance": "grade",
            "queries": {"query_id": "nr", "text": "words"},
            "corpus": {"doc_id": "page", "title": "head", "text": "body"},
        },
        queries="queries.txt",
        corpus="corpus.txt",
        separator=";",
    ).open()
    assert collection.qrels is not None and collection.queries is not None and collection.corpus is not None
    assert collection.qrels.rows() == [("q1", "d1", 3)]
    assert collection.queries.rows() == [("q1", "how")]
    assert collection.corpus.rows() == [("d1", "T", "B")]


@pytest.mark.parametrize(("row", "message"), QRELS.values(), ids=QRELS)
def test_a_wrong_judgement_is_named_with_its_line(tmp_path: Path, row: tuple[str, ...], message: str) -> None:
    path = write(tmp_path / "qrels.csv", f"query_id,doc_id,relevance\nq0,d0,1\n\n{','.join(row)}\n")
    with pytest.raises(DataError) as caught:
        _ = build_dataset("csv", tmp_path, path="qrels.csv").open().qrels
    assert str(caught.value).startswith(f"{path}:4: ")
    assert message in str(caught.value)


def test_a_whole_number_can_be_written_with_a_decimal_point(tmp_path: Path) -> None:
    write(tmp_path / "qrels.csv", "query_id,doc_id,relevance\nq1,d1,2.0\nq1,d2, 1 \nq1,d3,1e0\n")
    collection = build_dataset("csv", tmp_path, path="qrels.csv").open()
    assert collection.qrels is not None
    assert collection.qrels["relevance"].to_list() == [2, 1, 1]


def test_a_missing_mapped_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "qrels.csv", "query_id,doc_id,relevance\nq1,d1,1\n")
    dataset = build_dataset("csv", tmp_path, path="qrels.csv", columns={"relevance": "grade"})
    with pytest.raises(DataError) as caught:
        _ = dataset.open().qrels
    there = "'query_id', 'doc_id', 'relevance'"
    assert str(caught.value) == f"{path}:1: no column 'grade'; the columns are {there}; correct 'columns.relevance'"


def test_an_unknown_column_is_refused_with_the_key_that_names_it(tmp_path: Path) -> None:
    write(tmp_path / "qrels.csv", "query_id,page,relevance\nq1,d1,1\n")
    with pytest.raises(
        DataError, match=r"no column 'doc_id', 'corpus-id' or 'docid'; .*write columns: {doc_id: page}$"
    ):
        _ = build_dataset("csv", tmp_path, path="qrels.csv").open().qrels


def test_a_query_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    write(tmp_path / "qrels.csv", "query_id,doc_id,relevance\nq1,d1,1\n")
    path = write(tmp_path / "queries.csv", "query_id,text\nq1,a\nq2,b\nq1,c\n")
    with pytest.raises(DataError) as caught:
        _ = build_dataset("csv", tmp_path, path="qrels.csv", queries="queries.csv").open().queries
    assert str(caught.value) == f"{path}:4: the query 'q1' is listed twice, first at {path}:2"


def test_files_are_named_before_anything_is_read(tmp_path: Path) -> None:
    inputs = build_dataset("csv", tmp_path, path="qrels.csv", corpus="corpus.csv").inputs()
    assert [(file.path, file.key) for file in inputs] == [
        (tmp_path / "qrels.csv", ("path",)),
        (tmp_path / "corpus.csv", ("corpus",)),
    ]
    collection = build_dataset("csv", tmp_path, path="qrels.csv").open()
    assert collection.queries is None and collection.corpus is None
