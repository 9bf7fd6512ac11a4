"""The columns of files of answers: their names in a spec, and which files have answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from rageval_spec.reading.formats import column_layouts
from rageval_spec.reading.question_files import REFERENCES, answers_in, contexts_in, explain_rivals, find_rivals
from rageval_spec.recorded.messages import MESSAGES

_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "seconds": ("seconds", "latency"),
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "cost": ("cost",),
    "cache_read_tokens": ("cache_read_tokens", "cached_tokens"),
    "cache_write_tokens": ("cache_write_tokens",),
}
_MILLISECONDS = ("latency_ms", "latencyMs")
CONTEXT_IDS = ("context_ids", "retrieved_context_ids")
SCORES = ("context_scores", "retrieved_context_scores", "retrieval_scores", "scores")
"""Beside contexts or their ids. Lists of numbers: `scores` can also be what people or judges said."""


class AnswerColumns(column_layouts.RunColumns):
    """The names of the columns of a run or of answers."""

    question: str | None = Field(
        default=None,
        description="The question, for answers without ids. Default: `question`, `query`, `user_input`, `input`...",
    )
    answer: str | None = Field(
        default=None,
        description="The answer. Default: `answer`, `response`, `actual_output`, `actualOutput`, `output`...",
    )
    contexts: str | None = Field(
        default=None,
        description=(
            "The texts that it is based on: a list of texts, or of objects with `text`, `page_content` or `content`. "
            "Default: `contexts`, `retrieved_contexts`, `retrieval_context`, `retrievalContext` or `context`."
        ),
    )
    context_ids: str | None = Field(
        default=None,
        description="The ids of the contexts' documents. Default: `context_ids` or `retrieved_context_ids`.",
    )
    scores: str | None = Field(
        default=None,
        exclude_if=lambda name: name is None,
        description="The retriever's scores of the contexts: a list of numbers, null for a context without one. "
        "Default: `context_scores`, `retrieved_context_scores`, `retrieval_scores` or `scores`.",
    )
    seconds: str | None = Field(
        default=None, description="How long it took, in seconds. Default: `seconds`, `latency` or `latency_ms`."
    )
    input_tokens: str | None = Field(
        default=None, description="Input tokens. Default: `input_tokens` or `prompt_tokens`."
    )
    output_tokens: str | None = Field(
        default=None, description="Output tokens. Default: `output_tokens` or `completion_tokens`."
    )
    cost: str | None = Field(default=None, description="The cost in US dollars. Default: `cost`.")
    cache_read_tokens: str | None = Field(
        default=None,
        description="Input tokens from the provider's cache. Default: `cache_read_tokens` or `cached_tokens`.",
    )
    cache_write_tokens: str | None = Field(
        default=None,
        description="Input tokens written to the provider's cache. Default: `cache_write_tokens`.",
    )
    steps: str | None = Field(
        default=None,
        exclude_if=lambda name: name is None,
        description="What an agent did: calls of tools, what they gave, documents that they retrieved. Default: "
        "`steps`, `intermediate_steps`, `tools_called`, `tool_calls`, `trajectory`, or the calls in `messages`.",
    )
    error: str | None = Field(default=None, description="Why there is no answer. Default: `error`.")


@dataclass(frozen=True, slots=True)
class AnswerNames:
    """The names of the parts in a file, best name first."""

    query_id: tuple[str, ...]
    question: tuple[str, ...]
    answer: tuple[str, ...]
    contexts: tuple[str, ...]
    context_ids: tuple[str, ...]
    scores: tuple[str, ...]
    error: tuple[str, ...]
    steps: tuple[str, ...]
    numbers: Mapping[str, tuple[str, ...]]
    milliseconds: tuple[str, ...]

    def list_first(self) -> dict[str, str]:
        """The first name of each part that the file has."""
        parts = ("query_id", "question", "answer", "contexts", "context_ids", "scores", "error", "steps")
        found = {part: getattr(self, part) for part in parts} | dict(self.numbers)
        return {part: names[0] for part, names in found.items() if names}

    def list_others(self, present: Iterable[str]) -> list[str]:
        """The columns of a file that no part is read from, and `scores`, in which other scores can be."""
        parts = (self.query_id, self.question, self.answer, self.contexts, self.context_ids, self.error, self.steps)
        read = {name for names in (*parts, *self.numbers.values(), self.milliseconds) for name in names}
        return [name for name in present if name not in read]


def find_answer_names(columns: AnswerColumns, present: Sequence[str], steps: Sequence[str] = ()) -> AnswerNames:
    """The names of the parts in a file with these columns: the one that the spec gives, or those with known names.

    Args:
        columns: the names that the spec gives.
        present: the names of the file's columns.
        steps: the usual names of what an agent did.
    """

    def names(part: str, usual: Iterable[str]) -> tuple[str, ...]:
        mapped = getattr(columns, part)
        return tuple(name for name in usual if name in present) if mapped is None else (mapped,)

    is_conversation = not contexts_in(present) and "error" not in present
    answer = names("answer", answers_in(present) or ("answer", *([MESSAGES] if is_conversation else [])))
    contexts, ids = names("contexts", contexts_in(present)), names("context_ids", CONTEXT_IDS)
    return AnswerNames(
        query_id=names("query_id", column_layouts.QUESTION_IDS),
        question=names("question", (name for name in column_layouts.QUESTIONS if name not in answer)),
        answer=answer,
        contexts=contexts,
        context_ids=ids,
        scores=names("scores", SCORES if contexts or ids else ()),
        error=names("error", ("error",)),
        steps=names("steps", steps),
        numbers={part: names(part, usual) for part, usual in _NUMBERS.items()},
        milliseconds=() if columns.seconds else tuple(name for name in _MILLISECONDS if name in present),
    )


def explain_ambiguity(columns: AnswerColumns, present: Sequence[str]) -> tuple[str, str] | None:
    """Why no column certainly has a system's answers, and what to write; None if one does."""
    if columns.answer is not None or answers_in(present) or not (rivals := find_rivals(present, "answer")):
        return None
    return explain_rivals(rivals, "answer")


def holds_answers(present: Collection[str], columns: AnswerColumns) -> bool:
    """Whether a file with these columns contains answers rather than a run."""
    if columns.answer is not None or columns.contexts is not None:
        return True
    if any(name in present for name in (columns.doc_id, *column_layouts.RUN[1].known)):
        return False
    return bool(answers_in(present) or contexts_in(present) or {"answer", "error", "messages"} & set(present))


NO_ANSWERS = "name a file with answers"
"""The advice if no column can be one of answers."""


def advise_answers(present: Sequence[str]) -> str:
    """What to write for a file without known columns of answers. Gold answers are never proposed as answers."""
    gold = [name for name in present if name in REFERENCES or "expected" in name.lower() or name.startswith("assert")]
    asked = [name for name in column_layouts.QUESTIONS if name != "text"]
    wanted = ("answer",) if any(name in present for name in column_layouts.QUESTION_IDS) else ("answer", "query_id")
    guessed = column_layouts.guess_names(
        wanted, present, (*gold, *asked, *column_layouts.QUESTION_IDS, "vars", "inputs")
    )
    if "answer" not in guessed:
        return NO_ANSWERS
    return f"write {column_layouts.write_mapping(('columns',), guessed)}"


_PROVIDER_FAILED = 2
"""What promptfoo writes as `failureReason` if the provider failed, and not an assertion."""


def unwrap(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Flatten a row of promptfoo, whose `response` contains the output and the tokens.

    Where a response has an output, the row's error only says which assertion failed, so it is left out.
    """
    response = row.get("response")
    if not isinstance(response, Mapping):
        return row
    usage = response.get("tokenUsage")
    tokens = usage if isinstance(usage, Mapping) else {}
    flat = {"input_tokens": tokens.get("prompt"), "output_tokens": tokens.get("completion")}
    found = {key: value for key, value in flat.items() if value is not None}
    output = response.get("output")
    if output is not None and row.get("failureReason") != _PROVIDER_FAILED and "error" in row:
        found["error"] = None
        row = {key: value for key, value in row.items() if key != "error"}
    is_text = output is None or isinstance(output, str)
    return {**found, **row, "response": output if is_text else json.dumps(output, ensure_ascii=False)}
