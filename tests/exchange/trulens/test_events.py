from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from tests.exchange.trulens.database import TABLES, add_event, make_database
from tests.exchange.trulens.reading import read

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
