"""YAML files of questions: values as their author sees them, and a clear error with its line for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.formats.yaml_files import read_yaml_document, resolve_scalar
from tests.plugins import write


def rows_of(path: Path) -> list[tuple[int, dict[str, Any]]]:
    return list(read_yaml_document(path).rows)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("Yes", "Yes"),
        ("007", "007"),
        ("12:30", "12:30"),
        ("2026-01-05", "2026-01-05"),
        ("1e3", "1e3"),
        ("1.10", "1.10"),
        ("1_000", "1_000"),
        (".5", ".5"),
        ("-0", "-0"),
        ("NaN", "NaN"),
        (".nan", ".nan"),
        ("12345678901234567890", "12345678901234567890"),
        ("42", 42),
        ("-1.5", -1.5),
        ("true", True),
        ("null", None),
        ("", None),
    ],
)
def test_plain_values_are_what_their_author_sees(text: str, value: object) -> None:
    assert resolve_scalar(text) == value
    assert type(resolve_scalar(text)) is type(value)


@given(st.text())
def test_no_plain_value_is_changed_by_reading_it(text: str) -> None:
    value = resolve_scalar(text)
    assert value is None or (str(value).lower() if isinstance(value, bool) else str(value)) == text


def test_rows_have_their_lines_and_aliases_their_values(tmp_path: Path) -> None:
    text = 'version: 1.10\ntest_cases:\n  - &a\n    id: 007\n    answer: no\n  - <<: *a\n    id: "8"\n'
    path = write(tmp_path / "golden.yaml", text)
    assert rows_of(path) == [(4, {"id": "007", "answer": "no"}), (6, {"id": "8", "answer": "no"})]
    assert read_yaml_document(path).remarks == {"version": "1.10"}


def test_columns_and_single_rows_are_read(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path / "c.yaml", "question:\n- a?\n- b?\nanswer: [x, y]\n")) == [
        (2, {"question": "a?", "answer": "x"}),
        (3, {"question": "b?", "answer": "y"}),
    ]
    assert rows_of(write(tmp_path / "one.yaml", "\nquestion: a?\n")) == [(2, {"question": "a?"})]


BOMB = "a: &a [x, x]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}]\n"
    for old, new in zip("abcdefghijklmnopqrstuvwxy", "bcdefghijklmnopqrstuvwxyz", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        ("# only a comment\n", ": the file has no rows"),
        ("- question: [a\n", ":2:1: not YAML: "),
        ("- a\n- b\n", ":1: expected a list of objects with keys such as 'question', not a"),
        ("- {id: 1}\n- 7\n", ":2: expected a list of objects with keys such as 'question', not 7"),
        ("- question: !!python/object/apply:os.system [ls]\n", ":1: the tag tag:yaml.org,2002:python/object/apply:os"),
        ("- id: 1\n  id: 2\n", ":2: the key 'id' is listed twice in one object"),
        ("- id: 1\n---\n- id: 2\n", ":2: a second YAML document begins here; keep one document in a file"),
        ("- ? [a]\n  : b\n", ":1: a key must be text, not a list or an object"),
        ("a: &a [*a]\n", ":1: the alias *a refers to nothing that is complete before it"),
        ("[" * 200, ":1: lists and objects are nested more than 100 levels deep"),
        (BOMB, ":22: the aliases of this file repeat too much"),
        ("question: [a?, b?]\nanswer: [x]\n", ":1: the column 'question' has 2 values, but 'answer' has 1"),
    ],
)
def test_faults_have_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "golden.yaml", text)
    with pytest.raises(DataError) as error:
        rows_of(path)
    assert str(error.value).startswith(f"{path}{message}")
