"""Feedback of users in lines of plain files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rageval_spec.data.traces import Feedback, Trace
from rageval_spec.monitoring.feeds.row_files import RowReader
from rageval_spec.monitoring.traces.sampling import is_disliked


def read(**row: Any) -> Trace:
    line = {"id": "1", "question": "Who?", "answer": "Ada.", **row}
    return RowReader().read(json.dumps(line).encode(), "log: byte 0")


@pytest.mark.parametrize(
    "row",
    [
        {"feedback": {"thumbs": 0}},
        {"feedback": {"thumbs": "down"}},
        {"feedback": {"thumbs": {"value": 0, "comment": "no"}}},
        {"feedback": [{"name": "thumbs", "value": 0, "source": "user"}]},
        {"feedback": {"name": "thumbs", "score": False}},
        {"feedback": "thumbs_down"},
        {"feedback": ["👎"]},
        {"feedback": False},
        {"feedback": '{"thumbs": 0}'},
        {"feedback.thumbs": 0},
        {"userFeedback": {"thumbs": 0}},
        {"thumbs": "down"},
        {"thumbs_down": True},
        {"thumbsDown": "yes"},
        {"feedback": {"thumbs": 0}, "thumbs_down": True},
    ],
)
def test_a_dislike_is_read_in_the_usual_forms(row: dict[str, Any]) -> None:
    trace = read(**row)
    assert dict(trace.list_columns())["feedback.thumbs"] == 0
    assert len([name for name, _ in trace.list_columns() if name == "feedback.thumbs"]) == 1
    assert is_disliked(trace)
    assert trace.feedback[0].source == "user"


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"rating": 4}, [Feedback("rating", 4.0, source="user")]),
        ({"feedback": 4}, [Feedback("rating", 4.0, source="user")]),
        ({"thumbs_up": True}, [Feedback("thumbs", 1.0, "thumbs_up", source="user")]),
        ({"thumbs_down": False, "thumbs_up": None}, []),
        ({"feedback": None}, []),
        ({"feedback": "it was slow"}, [Feedback("comment", None, "it was slow", source="user")]),
        ({"feedback": {"tone": "fine"}}, [Feedback("tone", None, "fine", source="user")]),
        ({"feedback": [{"name": "q", "value": 0, "source": "llm"}]}, [Feedback("q", 0.0, source="program")]),
    ],
)
def test_ratings_words_and_sources_are_read(row: dict[str, Any], found: list[Feedback]) -> None:
    assert [*read(**row).feedback] == found


@pytest.mark.parametrize("row", [{"feedback": {"thumbs": [1, 2]}}, {"thumbs_down": "maybe"}, {"rating": {"of": 5}}])
def test_what_is_not_understood_is_remarked_on(row: dict[str, Any]) -> None:
    reader = RowReader()
    line = {"question": "Who?", "answer": "Ada.", **row}
    assert reader.read(json.dumps(line).encode(), "log: byte 0").feedback == ()
    (remark,) = reader.remarks()
    (column,) = row
    assert remark.startswith(f"1 row has a doubtful value; the last: log: byte 0: '{column}' is not feedback: write {{")


def test_a_named_column_is_read_as_feedback() -> None:
    reader = RowReader(columns={"feedback": "$.ui.vote"})
    line = {"question": "Who?", "answer": "Ada.", "ui": {"vote": "down"}}
    assert is_disliked(reader.read(json.dumps(line).encode(), "log: byte 0"))
