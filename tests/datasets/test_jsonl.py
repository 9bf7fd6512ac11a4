from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from tests.plugins import COMPRESSIONS, build_dataset, write


def open_rows(folder: Path, *rows: dict[str, Any], **keys: Any) -> Collection:
    write(folder / "golden.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return build_dataset("jsonl", folder, path="golden.jsonl", **keys).open()


@pytest.mark.parametrize("id_key", ["query_id", "_id", "id"])
@pytest.mark.parametrize("text_key", ["query", "question", "text", "user_input"])
@pytest.mark.parametrize("relevant_key", ["relevant", "relevant_doc_ids", "reference_context_ids", "qrels"])
def test_known_layouts_need_no_mapping(tmp_path: Path, id_key: str, text_key: str, relevant_key: str) -> None:
    rows: list[dict[str, Any]] = [
        {id_key: "q1", text_key: "a", relevant_key: ["d1", 2]},
        {id_key: 2, text_key: "b", relevant_key: ["d1"]},
    ]
    collection = open_rows(tmp_path, *rows)
    assert collection.queries is not None and collection.qrels is not None
    assert collection.queries.rows() == [("q1", "a"), ("2", "b")]
    assert collection.qrels.rows() == [("q1", "d1", 1), ("q1", "2", 1), ("2", "d1", 1)]
    assert dict(collection.qrels.schema) == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    assert collection.corpus is None


def test_relevant_documents_come_as_one_id_a_list_or_grades(tmp_path: Path) -> None:
    values: list[Any] = ["d1", 7, ["d1"], {"d1": 2, "d2": 0, "d3": -1, "d4": 3.0}, [], {}, None]
    rows = [{"id": f"q{number}", "query": "x", "relevant": value} for number, value in enumerate(values)]
    collection = open_rows(tmp_path, *rows, {"id": "q7", "query": "no judgement"})
    assert collection.queries is not None and collection.qrels is not None
    assert collection.qrels.rows() == [
        ("q0", "d1", 1),
        ("q1", "7", 1),
        ("q2", "d1", 1),
        ("q3", "d1", 2),
        ("q3", "d2", 0),
        ("q3", "d3", -1),
        ("q3", "d4", 3),
    ]
    assert collection.queries.height == 8


def test_the_first_query_can_lack_relevant_documents(tmp_path: Path) -> None:
    collection = open_rows(tmp_path, {"id": "q1", "query": "x"}, {"id": "q2", "query": "y", "relevant": ["d1"]})
    assert collection.qrels is not None
    assert collection.qrels.rows() == [("q2", "d1", 1)]


def test_fields_map_other_names(tmp_path: Path) -> None:
    row = {"nr": "q1", "id": "no", "ask": "a", "text": "no", "gold": ["d1"], "relevant": ["no"]}
    collection = open_rows(tmp_path, row, columns={"query_id": "nr", "text": "ask", "relevant": "gold"})
    assert collection.queries is not None and collection.qrels is not None
    assert collection.queries.rows() == [("q1", "a")]
    assert collection.qrels.rows() == [("q1", "d1", 1)]


def test_rows_without_ids_are_numbered(tmp_path: Path) -> None:
    rows = [{"query": "a", "relevant": ["d1"]}, {"query": "b", "relevant": ["d2"]}]
    with pytest.raises(DataError, match=r":1: no column 'query_id', '_id', .*, or number the rows with 'ids: row'"):
        _ = open_rows(tmp_path, *rows, ids="field").queries
    for keys in ({}, {"ids": "row"}, {"ids": "auto"}):
        collection = open_rows(tmp_path, *rows, **keys)
        assert collection.queries is not None and collection.qrels is not None
        assert collection.queries.rows() == [("1", "a"), ("2", "b")]
        assert collection.qrels.rows() == [("1", "d1", 1), ("2", "d2", 1)]


def test_ids_are_taken_where_any_row_has_one(tmp_path: Path) -> None:
    collection = open_rows(tmp_path, {"query": "a"}, {"id": "q2", "query": "b"})
    with pytest.raises(DataError, match=r":1: no column 'query_id', "):
        _ = collection.queries
    numbered = open_rows(tmp_path, {"id": "x", "query": "a"}, {"id": "x", "query": "b"}, ids="row")
    assert numbered.queries is not None and numbered.queries["query_id"].to_list() == ["1", "2"]


def test_rows_are_not_numbered_where_another_file_has_their_judgements(tmp_path: Path) -> None:
    write(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td2\t3\n")
    with pytest.raises(DataError, match=r":1: no column 'query_id', "):
        _ = open_rows(tmp_path, {"query": "a"}, qrels="qrels.tsv").queries


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_judgements_and_documents_can_be_separate_files(tmp_path: Path, compression: str) -> None:
    write(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td2\t3\n", compression)
    write(tmp_path / "corpus.jsonl", '{"key": "d2", "body": "x"}\n', compression)
    collection = open_rows(
        tmp_path,
        {"id": "q1", "query": "a", "relevant": ["d1"]},
        qrels=f"qrels.tsv{compression}",
        corpus=f"corpus.jsonl{compression}",
        columns={"corpus": {"doc_id": "key", "text": "body"}},
    )
    assert collection.qrels is not None and collection.corpus is not None
    assert collection.qrels.rows() == [("q1", "d2", 3)]
    assert collection.corpus.rows() == [("d2", "", "x")]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"id": "q1", "query": "b", "relevant": ["d2"]}, ":2: the query 'q1' is listed twice, first at "),
        ({"id": "", "query": "b", "relevant": ["d2"]}, ":2: no query_id"),
        ({"query": "b", "relevant": ["d2"]}, ":2: no query_id"),
        ({"id": "q2", "query": "b", "relevant": ["d2", "d2"]}, ":2: the document 'd2' is judged twice for query 'q2'"),
        ({"id": "q2", "query": "b", "relevant": {"d2": 0.5}}, ":2: the relevance of document 'd2' for query 'q2' must"),
        (
            {"id": "q2", "query": "b", "relevant": {"d2": True}},
            ":2: the relevance of document 'd2' for query 'q2' must",
        ),
        (
            {"id": "q2", "query": "b", "relevant": {"d2": None}},
            ":2: the relevance of document 'd2' for query 'q2' must",
        ),
        ({"id": "q2", "query": "b", "relevant": [["d2"]]}, ":2: the id of a relevant document must be text or an int"),
        ({"id": "q2", "query": "b", "relevant": [""]}, ":2: no doc_id"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(tmp_path: Path, second: dict[str, Any], message: str) -> None:
    collection = open_rows(tmp_path, {"id": "q1", "query": "a", "relevant": ["d1"]}, second)
    with pytest.raises(DataError) as caught:
        _ = collection.qrels
    assert str(caught.value).startswith(f"{tmp_path / 'golden.jsonl'}{message}")


@pytest.mark.parametrize(
    "second", [{"id": "q1", "query": "b"}, {"query": "b"}, {"id": "q2"}, {"id": "q2", "query": []}]
)
def test_a_wrong_query_is_named_with_its_line(tmp_path: Path, second: dict[str, Any]) -> None:
    collection = open_rows(tmp_path, {"id": "q1", "query": "a"}, second)
    with pytest.raises(DataError, match=r"golden\.jsonl:2: "):
        _ = collection.queries


def test_a_file_without_judgements_says_where_they_were_looked_for(tmp_path: Path) -> None:
    collection = open_rows(tmp_path, {"id": "q1", "query": "a"})
    assert collection.qrels is None and collection.why_no_qrels is not None
    assert collection.why_no_qrels.startswith("no row has relevant documents in 'relevant' or ")
    assert collection.why_no_qrels.endswith("name it in 'columns.relevant', or give 'qrels'")
    with pytest.raises(DataError, match=r"no row has relevant documents in 'gold'; correct 'columns\.relevant'"):
        _ = open_rows(tmp_path, {"id": "q1", "query": "a"}, columns={"relevant": "gold"}).qrels


ROWS: list[dict[str, Any]] = [
    {"id": "q1", "query": "a", "relevant": ["d1"]},
    {"id": "q2", "query": "b", "ground_truth": "x"},
]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ROWS),
        json.dumps({"goldens": ROWS}, indent=2),
        json.dumps({"name": "[", "test_cases": ROWS}),
        json.dumps({"version": 3, "results": {"stats": [1], "results": ROWS}}, indent=1),
        "".join(json.dumps(row) + "\n" for row in ROWS),
        json.dumps([{"id": row["id"], "vars": row} for row in ROWS]),
    ],
)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_json_file_can_contain_a_list(tmp_path: Path, content: str, compression: str) -> None:
    write(tmp_path / "golden.json", content, compression)
    collection = build_dataset("jsonl", tmp_path, path=f"golden.json{compression}").open()
    assert collection.queries is not None and collection.qrels is not None and collection.references is not None
    assert collection.queries.rows() == [("q1", "a"), ("q2", "b")]
    assert collection.qrels.rows() == [("q1", "d1", 1)]
    assert collection.references["references"].to_list() == [[], ["x"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", ": the file has no object"),
        ("", ": the file is empty"),
        ("[1]", ":1: expected a list of JSON objects, not 1"),
        ('[{"id": "q1",\n "query": }]', ":2:11: not JSON"),
        (
            '[\n{"id": "q1", "query": "a"},\n\n{"id": "q1", "query": "b"}]',
            ":4: the query 'q1' is listed twice, first at ",
        ),
        ('[{"id": "q1", "query": NaN}]', ":1: not JSON: NaN is not a JSON number; write null"),
        ("[" * 100_000, ": the JSON has too many lists"),
    ],
)
def test_a_wrong_list_is_named_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path / "golden.json", content)
    with pytest.raises(DataError) as caught:
        _ = build_dataset("jsonl", tmp_path, path="golden.json").open().queries
    assert str(caught.value).startswith(f"{path}{message}")


GOLDEN_SET = {
    "version": "1.2",
    "created": "2026-03-01",
    "metadata": {"reviewed": 2},
    "test_cases": [
        {
            "id": "t1",
            "query": "why?",
            "expected_answer": "because",
            "relevant_doc_ids": ["d1", "d2"],
            "difficulty": "easy",
            "category": "cause",
        },
        {"id": "t2", "query": "how?", "expected_answer": "so", "relevant_doc_ids": ["d3"], "difficulty": "hard"},
    ],
}


def test_a_golden_set_is_read_with_what_it_says_about_itself(tmp_path: Path) -> None:
    (tmp_path / "golden.json").write_text(json.dumps(GOLDEN_SET))
    collection = build_dataset("jsonl", tmp_path, path="golden.json").open()
    assert collection.about == {"version": "1.2", "created": "2026-03-01", "metadata": {"reviewed": 2}}
    assert collection.queries is not None
    assert collection.queries.rows() == [("t1", "why?"), ("t2", "how?")]
    assert collection.references is not None
    assert collection.references["references"].to_list() == [["because"], ["so"]]
    assert collection.qrels is not None
    assert collection.qrels.rows() == [("t1", "d1", 1), ("t1", "d2", 1), ("t2", "d3", 1)]
    assert collection.columns is not None
    assert json.loads(collection.columns["columns"][0]) == {"difficulty": "easy", "category": "cause"}


def test_json_lines_say_nothing_about_themselves(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "a", "query": "why?"}\n')
    assert build_dataset("jsonl", tmp_path, path="golden.jsonl").open().about == {}


def test_columns_of_questions_and_answers_are_rows(tmp_path: Path) -> None:
    (tmp_path / "golden.json").write_text('{"question": ["why?", "how?"], "answer": ["because", "so"]}')
    collection = build_dataset("jsonl", tmp_path, path="golden.json").open()
    assert collection.queries is not None
    assert collection.queries.rows() == [("1", "why?"), ("2", "how?")]
    assert collection.references is not None
    assert collection.references["references"].to_list() == [["because"], ["so"]]


def test_conversations_and_single_questions_can_be_in_one_file(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "user", "content": "and then?"}]
    rows = [{"id": "a", "question": "why?"}, {"id": "b", "messages": turns}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = build_dataset("jsonl", tmp_path, path="a.jsonl").open().queries
    assert queries is not None
    assert queries.rows() == [("a", "why?"), ("b", "and then?")]
