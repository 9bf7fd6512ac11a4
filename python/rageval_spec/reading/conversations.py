"""Rows of question files whose question is the last turn of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rageval_spec.data.conversation import MESSAGES, find_question, read_turns
from rageval_spec.reading.layouts import QUESTIONS


def holds_conversation(row: Mapping[str, Any]) -> bool:
    """Whether `ask_last_turn` may change a row with these values."""
    return MESSAGES in row or any(isinstance(row.get(name), (list, dict)) for name in QUESTIONS)


def ask_last_turn(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the last turn of the user as its question, if it has a conversation instead of one.

    The conversation stays, under `messages`. It is under that name in the file, or in the place of a question as ragas
    writes it (`user_input`).
    """
    if not holds_conversation(row):
        return row
    for name in QUESTIONS:
        value = row.get(name)
        if isinstance(value, (list, dict)) and (question := _find_text(value)) is not None:
            return {**row, name: question, MESSAGES: row.get(MESSAGES, value)}
    if any(row.get(name) is not None for name in QUESTIONS) or (question := _find_text(row.get(MESSAGES))) is None:
        return row
    return {**row, "question": question}


def _find_text(value: Any) -> str | None:
    turns = read_turns(value)
    place = None if turns is None else find_question(turns)
    return None if turns is None or place is None else str(turns[place]["content"])
