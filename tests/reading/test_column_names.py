from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.answer_columns import unwrap
from rageval_spec.reading.column_names import LONGEST_READ, find_absent, list_columns, refuse_absent
from rageval_spec.reading.layouts import QrelsColumns
from rageval_spec.reading.recognition import ForeignFileError
from tests.plugins import write


def test_all_keys_of_all_rows_are_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": 1}\n{"b": 2, "a": 1}\n{"c": null}\n')
    assert list_columns(path, "json") == ["a", "b", "c"]


def test_the_columns_of_a_table_are_its_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a;b\n1;2\n")
    assert list_columns(path, "csv", separator=";") == ["a", "b"]


def test_rows_are_unwrapped_first(tmp_path: Path) -> None:
    row: dict[str, Any] = {"response": {"output": "x", "tokenUsage": {"prompt": 7}}}
    path = write(tmp_path / "a.jsonl", json.dumps(row))
    assert list_columns(path, "json") == ["response"]
    assert list_columns(path, "json", unwrap) == ["input_tokens", "response"]


@pytest.mark.parametrize("content", [None, "", '{"a"', "[1, 2]", '{"a": 1}\n{"a": NaN}\n'])
def test_the_columns_of_an_unreadable_file_are_unknown(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "a.jsonl"
    if content is not None:
        write(path, content)
    assert list_columns(path, "json") is None
    assert list_columns(tmp_path, "json") is None


def test_a_large_file_is_recognised_without_reading_all_of_it(tmp_path: Path) -> None:
    rows = '{"a": 1}\n' * (LONGEST_READ // 9 + 1)
    assert list_columns(write(tmp_path / "a.jsonl", rows + '{"b": 1}\n'), "json") is None
    with pytest.raises(ForeignFileError, match="this is CSV with the columns 'x', 'y', not JSON Lines"):
        list_columns(write(tmp_path / "b.jsonl", "x,y\n" + rows), "json")


def test_a_file_of_another_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(ForeignFileError, match="not JSON Lines; write use: csv"):
        list_columns(write(tmp_path / "a.jsonl", "query_id,doc_id\nq1,d1\n"), "json")


def test_each_absent_name_is_a_fault_at_its_key_with_the_nearest_names_first() -> None:
    columns = QrelsColumns(query_id="topic", doc_id="dokid", relevance="grade")
    faults = list(find_absent(("columns", "qrels"), columns, ["docid", "query", "grade"], "qrels.csv"))
    assert [(fault.key, fault.message, fault.code) for fault in faults] == [
        (("columns", "qrels", "query_id"), "qrels.csv has no column 'topic'", "columns"),
        (("columns", "qrels", "doc_id"), "qrels.csv has no column 'dokid'", "columns"),
    ]
    assert faults[1].hint is not None and faults[1].hint.startswith("the columns are 'docid', ")


def test_names_of_a_file_with_unknown_columns_are_not_judged() -> None:
    assert list(find_absent((), QrelsColumns(doc_id="page"), None, "qrels.csv")) == []
    assert list(find_absent((), QrelsColumns(), ["a"], "qrels.csv")) == []


@pytest.mark.parametrize(
    ("present", "hint"),
    [
        ([], "the file has no columns"),
        (["a"], "the only column is 'a'"),
        (["a", "b"], "the columns are 'a', 'b'"),
        ([f"c{number:02}" for number in range(13)], "the columns are 'c00', 'c01', 'c02', 'c03', "),
    ],
)
def test_the_columns_that_are_there_are_listed_up_to_a_dozen(present: list[str], hint: str) -> None:
    (fault,) = find_absent((), QrelsColumns(doc_id="zzz"), present, "f")
    assert fault.hint is not None and fault.hint.startswith(hint)
    assert fault.hint.endswith(", ...") == (len(present) > 12)
    assert fault.hint.count("'") <= 24


def test_names_that_no_row_has_are_refused_all_at_once() -> None:
    names = {"answer": "said", "cost": None, "error": "why", "question": "q"}
    with pytest.raises(DataError) as caught:
        refuse_absent(Path("a.jsonl"), names, {"q", "id"}, "columns", "; the columns are 'q', 'id'")
    assert str(caught.value) == (
        "a.jsonl: no row has 'said' or 'why'; the columns are 'q', 'id'; correct 'columns.answer', 'columns.error'"
    )
    refuse_absent(Path("a.jsonl"), {"question": "q", "cost": None}, {"q"}, "columns", "")
