""""""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.column_names import RecordColumn
from rageval_spec.reading.formats.json_files import NotOneDocumentError, read_document, read_json_lines
from tests.plugins import COMPRESSIONS, write

COLUMNS = (
    RecordColumn("key", ("key", "_id"), "id", advice="name it"),
    RecordColumn("text", ("text",), required=False),
    RecordColumn("number", ("number",), "number", required=False),
)
PLAIN = st.characters(exclude_categories=["Cs"])
ROWS = st.lists(
    st.fixed_dictionaries(
        {"key": st.text(PLAIN) | st.integers(-(2**60), 2**60) | st.sampled_from(["1.5", "true", "[]", "1e5"])},
        optional={
            "text": st.none() | st.text(PLAIN) | st.sampled_from(["[1, 2]", "[see below]", "{}", "true", "1.5"]),
            "number": st.none() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False),
            "other": st.lists(st.integers()) | st.dictionaries(st.text(PLAIN), st.text(PLAIN)),
        },
    ),
    min_size=1,
)


def dump(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@given(rows=ROWS)
def test_the_fast_and_the_careful_reader_agree_with_the_rows(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    quick = read_json_lines(write(folder / "quick", dump(rows)), COLUMNS).frame
    careful = read_json_lines(write(folder / "careful", "\ufeff" + dump(rows)), COLUMNS).frame
    for frame in (quick, careful):
        assert frame["key"].to_list() == [str(row["key"]) for row in rows]
        assert frame["text"].to_list() == [row.get("text") for row in rows]
        numbers = [row.get("number") for row in rows]
        assert [None if n is None else float(n) for n in frame["number"]] == [
            None if n is None else float(n) for n in numbers
        ]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressed_files_read_the_same(tmp_path: Path, compression: str) -> None:
    path = write(tmp_path / "rows.jsonl", '{"_id": "a", "text": "x"}\r\n\r\n{"_id": 7}\r\n{"_id": 8.0}', compression)
    frame = read_json_lines(path, COLUMNS).frame
    assert frame.rows() == [("a", "x", None), ("7", None, None), ("8", None, None)]


def test_rows_are_located_past_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '\n{"key": "a"}\n\n  \n{"key": "b"}\n')
    records = read_json_lines(path, COLUMNS)
    assert [records.locate(row) for row in range(2)] == [f"{path}:2", f"{path}:5"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"key": }', ":2:9: not JSON: Expecting value"),
        ('{"key": "b"} {"key": "c"}', ":2:14: not JSON: Extra data"),
        ('{"key": "b", "number": NaN}', ":2: not JSON: NaN is not a JSON number; write null"),
        ('["b"]', ':2: each line must be a JSON object in braces, not ["b"]'),
        ('{"key": ["b"]}', """:2: 'key' must be text or an integer, not ["b"]"""),
        ('{"key": true}', ":2: 'key' must be text or an integer, not true"),
        ('{"key": 1.5}', ":2: 'key' must be text or an integer, not 1.5"),
        ('{"key": "b", "text": ["one", "two"]}', """:2: 'text' must be text, not ["one", "two"]"""),
        ('{"key": "b", "text": {"a": 1}}', """:2: 'text' must be text, not {"a": 1}"""),
        ("[" * 100_000, ":2: the JSON has too many lists and objects inside one another"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, second: str, message: str) -> None:
    path = write(tmp_path / "rows.jsonl", f'{{"key": "a"}}\n{second}\n')
    with pytest.raises(DataError) as caught:
        read_json_lines(path, COLUMNS)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_missing_key_is_refused_with_those_that_are_there(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"docid": "a", "body": "x"}\n')
    with pytest.raises(DataError) as caught:
        read_json_lines(path, COLUMNS)
    assert str(caught.value) == f"{path}:1: no column 'key' or '_id'; the columns are 'docid', 'body'; name it"


def test_a_mapped_key_that_no_row_has_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"key": "a"}\n')
    mapped = RecordColumn("text", ("body",), required=False, mapped=True, setting=("columns",))
    with pytest.raises(DataError, match=r"no line has the key 'body'; correct 'columns\.text'"):
        read_json_lines(path, (COLUMNS[0], mapped))


def test_an_optional_key_can_be_missing_from_the_first_row(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"key": "a"}\n{"key": "b", "text": "late"}\n')
    assert read_json_lines(path, COLUMNS).frame["text"].to_list() == [None, "late"]


def test_a_file_of_blank_lines_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", "\n \n")
    with pytest.raises(DataError, match="the file has only blank lines"):
        read_json_lines(path, COLUMNS)


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["quick", "careful"])
def test_half_a_surrogate_pair_is_refused(tmp_path: Path, start: str) -> None:
    path = write(tmp_path / "rows.jsonl", start + '{"key": "a"}\n{"key": "b", "text": "\\ud83d"}\n')
    with pytest.raises(DataError, match=r":2: 'text' has half a surrogate pair, \\ud83d"):
        read_json_lines(path, COLUMNS)


def test_an_escaped_nul_is_text(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", '{"key": "a", "text": "\\u0000"}\n')
    assert read_json_lines(path, COLUMNS).frame["text"].to_list() == ["\0"]


GOLDEN = """{
  "version": "1.2",
  "created": "2026-03-01",
  "test_cases": [
    {"id": "a", "query": "why?"},

    {"id": "b", "query": "how?"}
  ]
}
"""


def test_rows_of_a_golden_set_have_their_lines(tmp_path: Path) -> None:
    found = read_document(write(tmp_path / "golden.json", GOLDEN))
    assert [(line, row["id"]) for line, row in found.rows] == [(5, "a"), (7, "b")]
    assert found.remarks == {"version": "1.2", "created": "2026-03-01"}


def test_rows_of_columns_have_the_lines_of_the_questions(tmp_path: Path) -> None:
    text = '{"answer": ["1",\n"2"],\n"question": [\n"a?",\n"b?"]}'
    rows = read_document(write(tmp_path / "golden.json", text)).rows
    assert list(rows) == [(4, {"answer": "1", "question": "a?"}), (5, {"answer": "2", "question": "b?"})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": ["a?", "b?"],\n"answer": ["1"]}', ":1: the column 'question' has 2 values, but 'answer' has 1"),
        (
            '{"columns": ["question"],\n"data": [["a?"],\n["b?", 1]]}',
            ":3: the row has 2 values, but the header has 1 column",
        ),
        ('[{"id": 1},\n 7]', ":2: expected a list of JSON objects, not 7"),
        ('"text"', ":1: expected an object or a list of objects, not 'text'"),
        ("null", ":1: expected an object or a list of objects, not null"),
        (GOLDEN[:60], ":4:"),
        ('{"question": [NaN]}', ":1: not JSON: NaN is not a JSON number; write null"),
        (
            '[{"question": "Is it NaN?"},\n {"question": "Q", "nps": -Infinity}]',
            ":2: not JSON: -Infinity is not a JSON",
        ),
    ],
)
def test_faults_have_their_place(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "golden.json", text)
    with pytest.raises(DataError) as error:
        list(read_document(path).rows)
    assert str(error.value).startswith(f"{path}{message}")


def test_json_lines_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotOneDocumentError):
        read_document(write(tmp_path / "rows.json", '{"id": 1}\n{"id": 2}\n'))
