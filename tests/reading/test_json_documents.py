from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.json_documents import NotOneDocumentError, read_document
from tests.plugins import write

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
        ('{"question": [NaN]}', ": not JSON: NaN is not a JSON number; write null"),
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
