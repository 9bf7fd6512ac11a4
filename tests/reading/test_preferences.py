"""Choices between two answers are read from tables as people write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.data.preferences import Preference
from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.preferences import read_preferences


def write(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


def test_a_csv_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("query_id,first,second,verdict,annotator\nq1,long,short,First,ann\nq2,x,y,,ann\nq3,x,,tie,\n")
    assert read_preferences([path]) == [
        Preference("q1", "long", "short", "first", "ann", place=f"{path}:2"),
        Preference("q3", "x", "", "tie", place=f"{path}:4"),
    ]


@pytest.mark.parametrize(
    ("verdict", "choice"),
    [
        ("a", "first"),
        ("B", "second"),
        (1, "first"),
        (2.0, "second"),
        (0, "tie"),
        ("draw", "tie"),
        ("model_b", "second"),
    ],
)
def test_verdicts_are_understood_as_people_write_them(tmp_path: Path, verdict: object, choice: str) -> None:
    path = write(tmp_path, {"id": "q", "response_a": "x", "response_b": "y", "winner": verdict, "metric": "m"})
    (found,) = read_preferences([path])
    assert (found.choice, found.metric) == (choice, "m")


def test_another_column_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "q", "one": "x", "two": "y", "better": "first"})
    columns = ("first=one", "second=two", "verdict=better")
    assert read_preferences([path], columns)[0].first == "x"


@pytest.mark.parametrize(
    ("row", "columns", "message"),
    [
        ({"id": "q", "first": "x", "second": "y", "verdict": "maybe"}, (), "the verdict is 'maybe'; write 'first'"),
        ({"id": "q", "first": "x", "verdict": "first"}, (), "no column has the second answer"),
        ({"id": "", "first": "x", "second": "y", "verdict": 1}, (), "the query id is empty"),
        ({"id": "q", "first": "x", "second": "y", "verdict": None}, (), "no row has a verdict"),
        ({"id": "q", "first": "x", "second": "y", "verdict": 1}, ("verdict=nope",), "there is no column 'nope'"),
    ],
)
def test_what_cannot_be_read_is_said(
    tmp_path: Path, row: dict[str, object], columns: tuple[str, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_preferences([write(tmp_path, row)], columns)


@pytest.mark.parametrize("column", ["verdict", "verdict=", "thrid=x"])
def test_a_wrong_option_is_refused(tmp_path: Path, column: str) -> None:
    with pytest.raises(UsageError):
        read_preferences([write(tmp_path, {"id": "q"})], [column])
