""""""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.column_names import QrelsColumns
from rageval_spec.reading.missing_columns import find_absent, refuse_absent
from rageval_spec.reading.rows import (
    parse_list,
    read_rows,
    row_format_of,
    split_ids,
)
from tests.plugins import COMPRESSIONS, write

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=5),
)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.csv", "csv"),
        ("a.TSV", "csv"),
        ("a.csv.gz", "csv"),
        ("a.parquet", "parquet"),
        ("a.json", "json"),
        ("a.jsonl.zst", "json"),
        ("a", "json"),
        ("csv", "json"),
    ],
)
def test_the_name_says_the_format(name: str, form: str) -> None:
    assert row_format_of(Path(name)) == form


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_rows_of_every_format_have_their_place(tmp_path: Path, compression: str) -> None:
    lines = write(tmp_path / "a.jsonl", '{"a": 1, "b": ["x"]}\n\n{"b": null}\n', compression)
    assert list(read_rows(lines)) == [(f"{lines}:1", {"a": 1, "b": ["x"]}), (f"{lines}:3", {"b": None})]
    table = write(tmp_path / "a.csv", 'a,b\n1,"x\ny"\n2,\n', compression)
    assert list(read_rows(table)) == [(f"{table}:2", {"a": "1", "b": "x\ny"}), (f"{table}:4", {"a": "2", "b": ""})]


def test_rows_of_parquet_are_typed_and_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1, 2], "b": [["x"], None]}).write_parquet(path)
    assert list(read_rows(path)) == [
        (f"{path}: row 1", {"a": 1, "b": ["x"]}),
        (f"{path}: row 2", {"a": 2, "b": None}),
    ]


def test_a_format_and_a_separator_overrule_the_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", "a;b\n1;2\n")
    assert list(read_rows(path, "csv", ";")) == [(f"{path}:2", {"a": "1", "b": "2"})]
    with pytest.raises(DataError):
        list(read_rows(path))


@given(content=ANY_JSON)
def test_any_json_file_is_rows_or_is_refused(content: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(content))
    try:
        rows = list(read_rows(path))
    except DataError as error:
        assert str(error).startswith(str(path))
    else:
        assert rows and all(isinstance(row, dict) for _, row in rows)


@given(texts=st.lists(st.text()))
def test_a_list_survives_each_way_to_print_it(texts: list[str]) -> None:
    assert parse_list("here", "it", json.dumps(texts)) == texts
    assert parse_list("here", "it", repr(texts)) == texts


@given(texts=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
def test_a_list_survives_numpy_s_way_to_print_it(texts: list[str]) -> None:
    printed = "[" + " ".join(map(repr, texts)) + "]"
    assert parse_list("here", "it", printed) == texts


@given(text=st.text())
def test_any_text_is_a_list_or_itself_or_is_refused(text: str) -> None:
    try:
        found = parse_list("here", "it", text)
    except DataError as error:
        assert str(error).startswith("here: it begins like a list but is not one")
        assert text.strip().startswith(('["', "['", "[{", "[]"))
    else:
        assert found == text or isinstance(found, list)


@pytest.mark.parametrize("value", [None, 7, 1.5, ["a"], {"a": 1}, "", "plain", "[1] says so", "[x]"])
def test_text_that_does_not_begin_as_a_list_is_unchanged(value: Any) -> None:
    assert parse_list("here", "it", value) == value


@pytest.mark.parametrize(
    "text",
    [
        '["a", "b',
        "['a' + 'b']",
        "[{'a': open('x')}]",
        "['a'].append('b')",
        "['" + "x" * 10_000,
        '["a"]["b"]',
        "[]" * 5000,
        '["a", ' + "[" * 100_000,
    ],
)
def test_text_that_only_begins_as_a_list_is_refused_and_never_run(text: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_list("a.csv:2", "'contexts'", text)
    assert str(caught.value).startswith("a.csv:2: 'contexts' begins like a list but is not one; write it as JSON: ")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("d1", ["d1"]),
        ("d1, d2", ["d1", "d2"]),
        ("d1; d2,x", ["d1", "d2,x"]),
        ("d1\nd2;x", ["d1", "d2;x"]),
        ("d1 | d2", ["d1", "d2"]),
        ('["d1", "d,2"]', ["d1", "d,2"]),
        ("['d1', 'd2']", ["d1", "d2"]),
        ("['d1'\n 'd2']", ["d1", "d2"]),
        ("[1, 2]", ["1", "2"]),
        ("[1 2]", ["1", "2"]),
        ("[1.0, 2.]", ["1", "2"]),
        ("[7]", ["7"]),
        ('{"d1": 2}', {"d1": 2}),
        (7, 7),
        (None, None),
        ("", []),
        (" , ", []),
    ],
)
def test_ids_in_one_cell(cell: Any, ids: Any) -> None:
    assert split_ids("f:1", "'relevant'", cell) == ids


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ('{"d1": ', "f:1: 'relevant' is not JSON"),
        ("['d1', nan]", "f:1: 'relevant' begins like a list but is not one; write it as JSON"),
        ("('d1', 'd2')", "f:1: 'relevant' begins like a list but is not one; write it as JSON"),
        ("[d1, d2]", "f:1: 'relevant' begins like a list but is not one; write it as JSON"),
    ],
)
def test_a_list_that_is_none_is_an_error(cell: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        split_ids("f:1", "'relevant'", cell)


def test_each_absent_name_is_a_fault_at_its_key_with_the_nearest_names_first() -> None:
    columns = QrelsColumns(query_id="topic", doc_id="dokid", relevance="grade")
    faults = list(find_absent(("columns", "qrels"), columns, ["docid", "query", "grade"], "qrels.csv"))
    assert [(fault.key, fault.message, fault.code) for fault in faults] == [
        (("columns", "qrels", "query_id"), "qrels.csv has no column 'topic'", "unclear-columns"),
        (("columns", "qrels", "doc_id"), "qrels.csv has no column 'dokid'", "unclear-columns"),
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
