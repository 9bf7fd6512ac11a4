from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from tests.exchange.trulens.database import add_older, make_database
from tests.exchange.trulens.reading import read


def test_a_record_of_an_earlier_version(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    add_older(path)
    trace = read(path)[-1]
    assert (trace.id, trace.question, trace.answer) == ("old1", "Old question?", "Old answer.")
    assert (trace.seconds, trace.input_tokens, trace.output_tokens, trace.cost) == (2.0, 7, 3, 0.5)
    assert trace.started == "2025-01-01T00:00:00Z"
    assert [(one.name, one.value, one.comment) for one in trace.feedback] == [("groundedness", 0.5, "because")]


def test_a_window_selects_records(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    add_older(path)
    assert len(read(path, until="2025-06-01")) == 1
    assert len(read(path, since="2025-06-01", until="2026-01-01")) == 0


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE trulens_records SET input = ''", "the record old1 has no input"),
        ("UPDATE trulens_ground_truth SET ground_truth_json = '{}'", "the ground truth gt1 has no query"),
    ],
)
def test_a_row_without_a_question_is_named(tmp_path: Path, statement: str, message: str) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    add_older(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    with pytest.raises(DataError, match=message):
        read(path, **({"dataset": "golden"} if "truth" in statement else {}))
