"""Finds the parts of an answer in a reply: at the paths that a spec names, or at the usual places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rageval_spec.data.trace import Step
from rageval_spec.reading.agent_steps import dump_steps, list_retrieved, read_steps
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

    Attributes:
        retrieves: the path of the ids of the documents that a retriever found, best first. Such a reply needs no
            answer, and only what has a path is read from it.
        scores: the path of the scores of these documents.
    """

    answer: JsonPath | None = None
    contexts: JsonPath | None = None
    context_ids: JsonPath | None = None
    input_tokens: JsonPath | None = None
    output_tokens: JsonPath | None = None
    cost: JsonPath | None = None
    steps: JsonPath | None = None
    retrieves: JsonPath | None = None
    scores: JsonPath | None = None

    def read(self, content: Any, answer: str | None = None) -> AnswerRow:
        """The answer in a reply; `answer` is its text if the reply came in pieces.

        Raises:
            UnusableReplyError: it has no answer, or a part has the wrong type.
        """
        try:
            if self.retrieves is not None:
                return self._read_retrieval(content, self.retrieves)
            if answer is None:
                answer = read_text(self.answer.find(content), self.answer.text) if self.answer else find_answer(content)
            steps = self._steps(content)
            contexts = self._contexts(content)
            ids = self._ids(content, contexts)
            if contexts is None and ids is None and (contexts := find_contexts(steps)) is not None:
                ids = contexts.ids
            return AnswerRow(
                answer=answer,
                contexts=None if contexts is None else contexts.texts,
                context_ids=ids,
                scores=None if contexts is None else contexts.scores,
                input_tokens=_read_number(self.input_tokens, "input_tokens", content, read_count),
                output_tokens=_read_number(self.output_tokens, "output_tokens", content, read_count),
                cost=_read_number(self.cost, "cost", content, read_amount),
                steps=dump_steps(steps),
            )
        except PathError as error:
            raise UnusableReplyError(str(error)) from None

    def _steps(self, content: Any) -> tuple[Step, ...]:
        """What an agent did. At a usual place, something that is no list of steps is ignored."""
        if self.steps is not None:
            found = self.steps.find(content)
            return () if found is None else read_steps(found, self.steps.text)
        found = find_first(content, USUAL["steps"])
        try:
            return () if found is None else read_steps(found)
        except UnusableReplyError:
            return ()

    def _read_retrieval(self, content: Any, path: JsonPath) -> AnswerRow:
        ids = read_ids(_find_list(path, content), path.text)
        contexts = None if self.contexts is None else self._contexts(content)
        scores = None if self.scores is None else _read_scores(_find_list(self.scores, content), self.scores.text)
        for found, what in ((contexts and contexts.texts, "contexts"), (scores, "scores")):
            if found is not None and len(found) != len(ids):
                raise UnusableReplyError(f"it has {len(ids)} ids and {len(found)} {what}")
        return AnswerRow(
            contexts=contexts and contexts.texts,
            context_ids=ids,
            scores=scores,
            input_tokens=_read_number(self.input_tokens, "input_tokens", content, read_count),
            output_tokens=_read_number(self.output_tokens, "output_tokens", content, read_count),
            cost=_read_number(self.cost, "cost", content, read_amount),
        )

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


def _find_list(path: JsonPath, content: Any) -> Any:
    """A list in a reply; one inside a list, as servers that take many queries at once reply, is that list."""
    found = path.find(content)
    if found is None:
        raise UnusableReplyError(f"{path.text} is null")
    if isinstance(found, Mapping):
        raise UnusableReplyError(f"{path.text} must be a list of ids, not an object; it has {list_keys(list(found))}")
    is_nested = isinstance(found, list) and len(found) == 1 and isinstance(found[0], list)
    return found[0] if is_nested else found


def _read_scores(value: Any, what: str) -> tuple[float, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(read_amount(item, f"{what}[{place}]", low=-math.inf) for place, item in enumerate(items))


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
        "steps": ("steps", "intermediate_steps", "tools_called", "tool_calls", "trajectory"),
    }.items()
}
"""The usual places of a reply's parts: OpenAI and compatible servers, ragas, DeepEval, LangChain."""


def find_contexts(steps: Sequence[Step]) -> Contexts | None:
    """The documents that steps retrieved, for an answer that names no contexts; None if they retrieved none."""
    documents = list_retrieved(steps)
    if not documents:
        return None
    ids, scores = [one.doc_id for one in documents], [one.score for one in documents]
    return Contexts(
        tuple(one.text or "" for one in documents),
        tuple(name for name in ids if name is not None) if None not in ids else None,
        tuple(score for score in scores if score is not None) if None not in scores else None,
    )


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
