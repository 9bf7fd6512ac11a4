"""Finds the parts of an answer in a reply: at the paths that a spec names, or at the usual places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rageval_spec.reading.answer_rows import (
    AnswerRow,
    Contexts,
    UnusableReplyError,
    read_amount,
    read_contexts,
    read_count,
    read_ids,
    read_text,
)
from rageval_spec.reading.json_path import JsonPath, PathError, parse_path
from rageval_spec.reading.json_values import list_keys, name_kind


@dataclass(frozen=True, slots=True)
class ReplyLayout:
    """The paths of the parts of a reply. A part that is None is looked up at its usual places.

    A part with a path must exist, except for tokens and cost. Of the usual places, the first with a value counts.
    """

    answer: JsonPath | None = None
    contexts: JsonPath | None = None
    context_ids: JsonPath | None = None
    input_tokens: JsonPath | None = None
    output_tokens: JsonPath | None = None
    cost: JsonPath | None = None

    def read(self, content: Any) -> AnswerRow:
        """The answer in a reply.

        Raises:
            UnusableReplyError: it has no answer, or a part has the wrong type.
        """
        try:
            answer = read_text(self.answer.find(content), self.answer.text) if self.answer else find_answer(content)
            contexts = self._contexts(content)
            ids = self._ids(content, contexts)
            return AnswerRow(
                answer=answer,
                contexts=None if contexts is None else contexts.texts,
                context_ids=ids,
                scores=None if contexts is None else contexts.scores,
                input_tokens=_read_number(self.input_tokens, "input_tokens", content, read_count),
                output_tokens=_read_number(self.output_tokens, "output_tokens", content, read_count),
                cost=_read_number(self.cost, "cost", content, read_amount),
            )
        except PathError as error:
            raise UnusableReplyError(str(error)) from None

    def _contexts(self, content: Any) -> Contexts | None:
        if self.contexts is not None:
            found = self.contexts.find(content)
            return None if found is None else read_contexts(found, self.contexts.text)
        found = find_first(content, USUAL["contexts"])
        return None if found is None else read_contexts(found)

    def _ids(self, content: Any, contexts: Contexts | None) -> tuple[str, ...] | None:
        path = self.context_ids
        found = find_first(content, USUAL["context_ids"]) if path is None else path.find(content)
        if found is None:
            return None if contexts is None else contexts.ids
        ids = read_ids(found, "context_ids" if path is None else path.text)
        if contexts is not None and len(ids) != len(contexts.texts):
            raise UnusableReplyError(f"it has {len(contexts.texts)} contexts and {len(ids)} context_ids")
        return ids


USUAL: Mapping[str, tuple[JsonPath, ...]] = {
    part: tuple(map(parse_path, paths))
    for part, paths in {
        "answer": (
            "answer",
            "response",
            "actual_output",
            "actualOutput",
            "output",
            "output_text",
            "choices[0].message.content",
            "message.content",
            "choices[0].text",
            "content[0].text",
            "generated_text",
            "result",
            "text",
        ),
        "contexts": (
            "contexts",
            "retrieved_contexts",
            "retrieval_context",
            "retrievalContext",
            "context",
            "source_documents",
        ),
        "context_ids": ("context_ids", "retrieved_context_ids"),
        "input_tokens": (
            "input_tokens",
            "usage.input_tokens",
            "usage.prompt_tokens",
            "prompt_tokens",
            "prompt_eval_count",
        ),
        "output_tokens": (
            "output_tokens",
            "usage.output_tokens",
            "usage.completion_tokens",
            "completion_tokens",
            "eval_count",
        ),
        "cost": ("cost", "usage.cost"),
    }.items()
}
"""The usual places of a reply's parts: OpenAI and compatible servers, ragas, DeepEval, LangChain."""


def find_answer(content: Any) -> str:
    """The text at the first usual place that has one. A reply that is a text is the answer.

    Raises:
        UnusableReplyError: the reply has no answer.
    """
    if isinstance(content, str):
        return read_text(content, "the reply")
    if isinstance(content, Mapping):
        found = [value for path in USUAL["answer"] if (value := _find(path, content)) is not _NOTHING]
        for value in found:
            if isinstance(value, (str, bool, int, float)):
                return read_text(value, "the answer")
        if found:
            why = "it is null" if found[0] is None else f"it is {name_kind(found[0])}, not text"
            raise UnusableReplyError(f"the reply has no answer: {why}")
        raise UnusableReplyError(f"the reply has no answer at any usual place; it has {list_keys(list(content))}")
    if content is None:
        raise UnusableReplyError("the reply has no answer: it is null")
    raise UnusableReplyError(f"the reply is {name_kind(content)}, not an object with an answer")


_NOTHING = object()


def find_first(content: Any, paths: Sequence[JsonPath]) -> Any:
    """The first value found at one of several places, or None."""
    found = (value for path in paths if (value := _find(path, content)) is not _NOTHING)
    return next((value for value in found if value is not None), None)


def _find(path: JsonPath, content: Any) -> Any:
    try:
        return path.find(content)
    except PathError:
        return _NOTHING


def _read_number(path: JsonPath | None, part: str, content: Any, read: Any) -> Any:
    """A number, or None. A usual place with something else is ignored; at a given path it is an error."""
    if path is None:
        found = find_first(content, USUAL[part])
        try:
            return None if found is None else read(found, part)
        except UnusableReplyError:
            return None
    found = _find(path, content)
    return None if found is _NOTHING or found is None else read(found, path.text)
