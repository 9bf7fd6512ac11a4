""""""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.trulens import source as database
from rageval_spec.exchange.trulens.source import (
    TrulensSourceNode,
    copy_database,
    list_tables,
    open_to_read,
    open_to_write,
)
from tests.exchange.trulens.database import TABLES, add_event, add_older, make_database, query
from tests.exchange.trulens.reading import read


def test_records_are_read_newest_first(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    add_older(path)
    assert [trace.question for trace in read(path)] == ["Question 3?", "Question 2?", "Question 1?", "Old question?"]
    assert {trace.version for trace in read(path)} == {"v1", "v0"}
    assert [trace.question for trace in read(path, limit=2)] == ["Question 3?", "Question 2?"]
    assert [trace.question for trace in read(path, app="legacy")] == ["Old question?"]
    assert [trace.question for trace in read(path, app="support", limit=1)] == ["Question 3?"]


def test_a_dataset_s_ground_truths_are_questions_with_references(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    add_older(path)
    (truth,) = read(path, dataset="golden")
    assert (truth.id, truth.question, truth.references, truth.relevant) == ("q1", "Why?", ("So.",), ("d1",))
    with pytest.raises(UsageError, match="there is no dataset 'silver'; the datasets are golden"):
        read(path, dataset="silver")


def test_reading_changes_nothing(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    before = path.read_bytes()
    read(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["t.sqlite"]


def test_a_file_that_is_no_database_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nope\.sqlite: there is no such file"):
        read(tmp_path / "nope.sqlite")
    page = tmp_path / "page.sqlite"
    page.write_text("<!DOCTYPE html>" * 100)
    with pytest.raises(DataError, match=r"page\.sqlite: not a SQLite database, or a damaged one"):
        read(page)
    half = make_database(tmp_path / "half.sqlite", 40)
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
    with pytest.raises(DataError, match=r"half\.sqlite: not a SQLite database, or a damaged one"):
        read(half)


@pytest.mark.parametrize("settings", [{"since": "7d"}, {"app": "x"}])
def test_a_dataset_cannot_be_narrowed(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="does not go together with `dataset`"):
        TrulensSourceNode(path="x", dataset="golden", **settings)


def test_an_app_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    add_older(path)
    with pytest.raises(UsageError, match="there is no app 'suport'; did you mean 'support'"):
        read(path, app="suport")


def test_a_folder_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this is a folder; name the SQLite file in it"):
        read(tmp_path)


TEXTS = st.text("abc? ", min_size=1, max_size=20).filter(str.strip)


def test_a_record_has_its_question_answer_contexts_and_usage(tmp_path: Path) -> None:
    trace = read(make_database(tmp_path / "t.sqlite"))[-1]
    assert (trace.id, trace.question, trace.answer) == ("rec1", "Question 1?", "Answer 1.")
    assert [one.text for one in trace.documents or ()] == ["Text 0.", "Text 1."]
    assert (trace.seconds, trace.input_tokens, trace.output_tokens, trace.cost) == (1.5, 100, 20, 0.25)
    assert trace.model == "gpt"
    assert [(one.name, one.value, one.comment, one.source) for one in trace.feedback] == [
        ("length", 0.5, "short", "program")
    ]
    assert trace.link.to_dict() == {"tool": "trulens", "trace_id": "rec1", "project": "support", "app_version": "v1"}


def test_a_record_that_failed_has_an_error_and_no_answer(tmp_path: Path) -> None:
    trace = read(make_database(tmp_path / "t.sqlite"))[0]
    assert trace.answer is None
    assert trace.error


def test_the_window_is_in_the_zone_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        path = make_database(tmp_path / "t.sqlite")
        traces = read(path, since="2026-11-22T04:02:00Z")
        assert [trace.question for trace in traces] == ["Question 3?", "Question 2?"]
        assert traces[0].started == "2026-11-22T04:03:00Z"
        assert [trace.question for trace in read(path, until="2026-11-22T04:02:00Z")] == ["Question 1?"]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(("column", "text"), [("trace", "{"), ("record", "[1]"), ("trace", "null")])
def test_what_is_not_json_is_named(tmp_path: Path, column: str, text: str) -> None:
    path = make_database(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE trulens_events SET {column} = ? WHERE event_id = '20002'", [text])
    with pytest.raises(DataError, match=r"t\.sqlite: the event 20002 holds"):
        read(path)


@given(TEXTS, TEXTS, st.lists(TEXTS, min_size=1, max_size=4, unique=True))
def test_what_trulens_knows_of_a_record_comes_back(
    tmp_path_factory: pytest.TempPathFactory, question: str, answer: str, contexts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES)
        ends: dict[str, Any] = {"record_root.input": question, "record_root.output": answer}
        add_event(connection, 1, 1, "record_root", ends)
        add_event(connection, 1, 2, "retrieval", {"retrieval.retrieved_contexts": contexts})
    (trace,) = read(path)
    assert (trace.question, trace.answer) == (question, answer)
    assert [one.text for one in trace.documents or ()] == contexts


def test_a_record_whose_events_are_far_apart_is_read_whole(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 30)
    with closing(sqlite3.connect(path)) as connection, connection:
        add_event(connection, 5, 7, "retrieval", {"retrieval.retrieved_contexts": ["late"]})
    traces = read(path)
    assert len(traces) == 30
    assert [one.text for one in traces[-5].documents or ()] == ["Text 0.", "Text 1.", "late"]


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


def test_a_connection_to_read_cannot_write(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    with pytest.raises(DataError, match="readonly"), open_to_read(path) as connection:
        connection.execute("DELETE FROM trulens_events")


def test_a_failure_undoes_everything(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    with pytest.raises(KeyboardInterrupt), open_to_write(path) as connection:
        connection.execute("DELETE FROM trulens_events")
        raise KeyboardInterrupt
    assert query(path, "SELECT count(*) FROM trulens_events") == [(10,)]


def test_a_database_that_is_in_use_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0.0)
    path = make_database(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DataError, match="another program is writing to it"), open_to_write(path):
            pass


def test_the_copy_is_made_once_and_keeps_the_first_state(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    copy = copy_database(path)
    assert copy.name == "t.sqlite.before-rageval"
    with open_to_write(path) as connection:
        connection.execute("DELETE FROM trulens_events")
    assert copy_database(path) == copy
    assert query(copy, "SELECT count(*) FROM trulens_events") == [(10,)]


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE things (id)")
    with pytest.raises(DataError, match=r"other\.sqlite: not a database of TruLens"), open_to_read(path) as connection:
        list_tables(connection, path)


def test_a_table_of_another_version_is_refused(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE trulens_feedbacks RENAME COLUMN multi_result TO other")
    message = "the table trulens_feedbacks has no column 'multi_result': .*migrate_database"
    with pytest.raises(DataError, match=message), open_to_read(path) as connection:
        list_tables(connection, path)
