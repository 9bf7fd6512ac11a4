from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.rows import first_keys, parse_list, read_rows, row_format_of
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
    assert first_keys(lines) == first_keys(table) == ["a", "b"]


def test_rows_of_parquet_are_typed_and_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1, 2], "b": [["x"], None]}).write_parquet(path)
    assert list(read_rows(path)) == [
        (f"{path}: row 1", {"a": 1, "b": ["x"]}),
        (f"{path}: row 2", {"a": 2, "b": None}),
    ]
    assert first_keys(path) == ["a", "b"]


def test_a_format_and_a_separator_overrule_the_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", "a;b\n1;2\n")
    assert list(read_rows(path, "csv", ";")) == [(f"{path}:2", {"a": "1", "b": "2"})]
    assert first_keys(path, "csv", ";") == ["a", "b"]
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
