from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from rageval_spec.errors import DataError
from tests.plugins import COMPRESSIONS, build_dataset, write

CORPUS = '{"_id": "d1", "title": "T", "text": "x", "metadata": {"a": []}}\n{"_id": "d2", "title": "", "text": ""}\n'
QUERIES = '{"_id": "q1", "text": "how"}\n{"_id": "q2", "text": "not judged", "metadata": {}}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n"


def write_folder(folder: Path, compression: str = "") -> None:
    write(folder / "corpus.jsonl", CORPUS, compression)
    write(folder / "queries.jsonl", QUERIES, compression)
    write(folder / "qrels" / "test.tsv", QRELS, compression)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_folder_gives_three_tables(tmp_path: Path, compression: str) -> None:
    write_folder(tmp_path / "nfc", compression)
    collection = build_dataset("beir", tmp_path, path="nfc").open()
    assert collection.qrels is not None and collection.queries is not None and collection.corpus is not None
    assert collection.name == "golden"
    assert collection.qrels.rows() == [("q1", "d1", 2), ("q1", "d2", 0)]
    assert dict(collection.qrels.schema) == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    assert collection.queries.rows() == [("q1", "how"), ("q2", "not judged")]
    assert collection.corpus.rows() == [("d1", "T", "x"), ("d2", "", "")]
    assert collection.drops_self_retrieval


def test_a_missing_split_says_which_there_are(tmp_path: Path) -> None:
    write_folder(tmp_path)
    write(tmp_path / "qrels" / "train.tsv", QRELS, ".gz")
    dataset = build_dataset("beir", tmp_path, path=".", split="dev")
    named = dataset.inputs()[0]
    assert (named.path, named.key) == (tmp_path / "qrels" / "dev.tsv", ("split",))
    assert named.hint == "the splits there are: test, train"
    with pytest.raises(DataError, match=r"dev\.tsv: no such file; the splits there are: test, train"):
        _ = dataset.open().qrels


def test_a_folder_without_qrels_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no split at all"):
        _ = build_dataset("beir", tmp_path, path=".").open().qrels


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    (named,) = build_dataset("beir", tmp_path, path="nowhere").inputs()
    assert (named.path, named.key, named.kind) == (tmp_path / "nowhere", ("path",), "folder")


def test_judgements_are_enough_for_a_collection(tmp_path: Path) -> None:
    write(tmp_path / "qrels" / "test.tsv", QRELS)
    dataset = build_dataset("beir", tmp_path, path=".")
    collection = dataset.open()
    assert collection.queries is None and collection.corpus is None
    assert [file.path.name for file in dataset.inputs()] == ["test.tsv"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\n', ":2: the document 'd1' is listed"),
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}\n{"text": "y"}\n', ":2: no doc_id"),
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}\n{"_id": "d2"}\n', ":2: the document 'd2' has neither title nor"),
        (
            "corpus.jsonl",
            '{"_id": "d1", "body": "x"}\n',
            ":1: no column 'text', 'contents' or 'segment'; the columns are ",
        ),
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": ["a", "b"]}\n', ":2: 'text' must be text"),
        ("queries.jsonl", '{"_id": "q1", "text": "x"}\n{"_id": "q2"}\n', ":2: the query 'q2' has no text"),
        ("queries.jsonl", "not json\n", ":1:1: not JSON"),
        ("queries.jsonl", "", ": the file is empty"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t0.5\n", ":2"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    write_folder(tmp_path)
    path = write(tmp_path / name, content)
    collection = build_dataset("beir", tmp_path, path=".").open()
    with pytest.raises(DataError) as caught:
        _ = (collection.corpus, collection.queries, collection.qrels)
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judgements"),
    [
        ("2wikimultihop", 6119, 101, 248),
        ("adi", 82, 35, 170),
        ("cranfield", 1400, 225, 1837),
        ("medline", 1033, 30, 696),
        ("nq_oracle", 2600, 2655, 2655),
        ("scifact", 5183, 1109, 339),
        ("xquad_de", 240, 1190, 1190),
    ],
)
def test_real_collections_read_whole(
    shared_data: Path, name: str, documents: int, queries: int, judgements: int
) -> None:
    collection = build_dataset("beir", shared_data / "retrieval", path=name).open()
    assert collection.qrels is not None and collection.queries is not None and collection.corpus is not None
    heights = (collection.corpus.height, collection.queries.height, collection.qrels.height)
    assert heights == (documents, queries, judgements)
    assert set(collection.qrels["query_id"]) <= set(collection.queries["query_id"])
    assert set(collection.qrels["doc_id"]) <= set(collection.corpus["doc_id"])


def test_questions_have_the_nuggets_of_a_file(tmp_path: Path) -> None:
    write_folder(tmp_path / "nfc")
    write(tmp_path / "bank.jsonl", '{"qid": "q1", "nuggets": ["a fact"]}\n')
    dataset = build_dataset("beir", tmp_path, path="nfc", nuggets="bank.jsonl")
    assert "nuggets" in (dataset.find_parts() or ()) and dataset.inputs()[-1].path == tmp_path / "bank.jsonl"
    columns = dataset.open().columns
    assert columns is not None
    assert {query_id: json.loads(text).get("nuggets") for query_id, text in columns.iter_rows()} == {
        "q1": [{"id": "1", "text": "a fact", "importance": "vital"}],
        "q2": None,
    }
    write(tmp_path / "bank.jsonl", '{"qid": "q1", "nuggets": [1]}\n')
    (fault,) = dataset.check_files()
    assert fault.key == ("nuggets",) and "bank.jsonl:1: nuggets[0] is 1" in fault.message
