"""Conversations and steps of agents as the page shows them: lines that are ready to be drawn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rageval_spec.data.conversation import MESSAGES, list_until_question, read_turns, write_turn
from rageval_spec.data.tables import STEPS
from rageval_spec.reading.agent_steps import load_steps

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.trace import Step


def separate_history(questions: pl.DataFrame) -> pl.DataFrame:
    """The questions with `history`, the lines of the turns before each, which `columns` then do not have.

    The table stays as it is if no question has a conversation.
    """
    import polars as pl

    columns = questions["columns"]
    if not columns.str.contains(f'"{MESSAGES}":', literal=True).any():
        return questions
    found = [_separate(text) for text in columns]
    history = pl.Series("history", [lines for _, lines in found], dtype=pl.List(pl.String))
    return questions.with_columns(history, pl.Series("columns", [kept for kept, _ in found], dtype=pl.String))


def summarize_steps(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples with each step as its kind, its call and what it gave. No column if no sample has steps."""
    import polars as pl

    if samples[STEPS].null_count() == samples.height:
        return samples.drop(STEPS)
    told = [None if text is None else json.dumps([_tell(step) for step in load_steps(text)]) for text in samples[STEPS]]
    return samples.with_columns(pl.Series(STEPS, told, dtype=pl.String))


def _separate(text: str | None) -> tuple[str | None, list[str] | None]:
    if text is None:
        return None, None
    columns: dict[str, Any] = json.loads(text)
    turns = list_until_question(read_turns(columns.get(MESSAGES)) or ())
    kept = {name: value for name, value in columns.items() if not turns or name != MESSAGES}
    return json.dumps(kept, ensure_ascii=False), [write_turn(turn) for turn in turns[:-1]] or None


def _tell(step: Step) -> tuple[str, str, str]:
    call = step.name if step.input is None else f"{step.name}({step.input})"
    documents = [": ".join(filter(None, (one.doc_id, one.text))) for one in step.documents or ()]
    said = f"\u2717 {step.error}" if step.error is not None else "\n".join(documents) or step.output or ""
    return step.kind, call, said
