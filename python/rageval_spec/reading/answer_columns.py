"""The columns of files of answers: their names in a spec, and which files have answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import Field

from rageval_spec.reading.layouts import RUN, RunColumns
from rageval_spec.reading.questions import answers_in, contexts_in


class AnswerColumns(RunColumns):
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
    steps: str | None = Field(
        default=None,
        exclude_if=lambda name: name is None,
        description="What an agent did: calls of tools, what they gave, documents that they retrieved. Default: "
        "`steps`, `intermediate_steps`, `tools_called`, `tool_calls`, `trajectory`, or the calls in `messages`.",
    )
    error: str | None = Field(default=None, description="Why there is no answer. Default: `error`.")


def holds_answers(present: Collection[str], columns: AnswerColumns) -> bool:
    """Whether a file with these columns contains answers rather than a run."""
    if columns.answer is not None or columns.contexts is not None:
        return True
    if any(name in present for name in (columns.doc_id, *RUN[1].known)):
        return False
    return bool(answers_in(present) or contexts_in(present) or {"answer", "error", "messages"} & set(present))


def unwrap(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Flatten a row of promptfoo, whose `response` contains the output and the tokens."""
    response = row.get("response")
    if not isinstance(response, Mapping):
        return row
    usage = response.get("tokenUsage")
    tokens = usage if isinstance(usage, Mapping) else {}
    flat = {"input_tokens": tokens.get("prompt"), "output_tokens": tokens.get("completion")}
    found = {key: value for key, value in flat.items() if value is not None}
    return {**found, **row, "response": response.get("output")}
