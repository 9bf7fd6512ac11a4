from __future__ import annotations

import json

import polars as pl

from rageval_spec.reading.agent_steps import dump_steps, read_steps
from rageval_spec.reports.shared.page.conversations import separate_history, summarize_steps

CHAT = [
    {"role": "user", "content": "Rome?"},
    {"role": "assistant", "content": "Yes"},
    {"role": "user", "content": "And?"},
]


def test_earlier_turns_become_lines_and_leave_the_columns() -> None:
    columns = [json.dumps({"messages": CHAT, "level": 1}), json.dumps({"messages": "three"}), None]
    found = separate_history(pl.DataFrame({"columns": columns}))
    assert found["history"].to_list() == [["user: Rome?", "assistant: Yes"], None, None]
    assert [text and json.loads(text) for text in found["columns"]] == [{"level": 1}, {"messages": "three"}, None]


def test_questions_without_conversations_stay_as_they_are() -> None:
    questions = pl.DataFrame({"columns": ['{"level":1}', None]})
    assert separate_history(questions) is questions


def test_steps_become_their_kind_their_call_and_what_they_gave() -> None:
    steps = [
        {"name": "search", "input": "Rome", "output": [{"id": "d1", "text": "a city"}, {"text": "a name"}]},
        {"kind": "thought", "text": "hm"},
        {"name": "f", "input": "1", "error": "broken"},
    ]
    samples = pl.DataFrame({"steps": [dump_steps(read_steps(steps)), None]})
    first, second = summarize_steps(samples)["steps"]
    assert second is None
    assert json.loads(first) == [
        ["retrieval", "search(Rome)", "d1: a city\na name"],
        ["model", "thought", "hm"],
        ["tool", "f(1)", "\u2717 broken"],
    ]
    assert summarize_steps(samples.tail(1)).columns == []
