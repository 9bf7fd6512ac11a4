"""One query with everything known about it; judges and metrics of answers read it.

The query may be the question in a conversation: chat messages in the formats of OpenAI, Anthropic, LangChain and
ragas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Part = Literal[
    "answer",
    "contexts",
    "context_ids",
    "reference",
    "reference_contexts",
    "relevant",
    "answerable",
    "group",
    "condition",
]
"""The parts that a query can lack. Every query has a question."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A question, a system's answer, and the gold answer.

    Attributes:
        answer: the system's text; "" if it wrote nothing, None if the answer is not known.
        contexts: the texts that the answer was written from, best first; () if there were none, None if the system
            does not say.
        context_ids: the document ids of the contexts, in the same order.
        references: gold answers, each correct by itself; a metric that needs only one uses the first.
        reference_contexts: the texts that contain the gold answer.
        relevant: relevance by document id, from the qrels; None if the dataset has no judgements for this query.
        answerable: whether the collection contains an answer to the question; None if the dataset does not say.
        group, condition: queries of one group ask the same question under several conditions ("clean", "noisy").
        error: why the system gave no answer; `answer` is then None.
        is_unfinished: True if the evaluation stopped before the system was asked; `error` says so. This is not a
            failure of the system.
        seconds: how long the system took. This and the next three are None if they are not known.
        input_tokens, output_tokens: the tokens that the system used.
        cost: the cost in US dollars.
        cache_read_tokens, cache_write_tokens: the input tokens that came from the provider's cache, or went there; None
            if they are not known.
        columns: the question's other columns, those that no part is read from, by name; None if the dataset has none.
            They are read from the file when a value is first looked up. Two samples can be equal with other columns.
        claims: the statements that a metric asks a judge about, one by one; None unless a metric sets them.
    """

    query_id: str
    question: str
    answer: str | None = None
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    references: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] | None = None
    relevant: Mapping[str, int] | None = None
    answerable: bool | None = None
    group: str | None = None
    condition: str | None = None
    error: str | None = None
    is_unfinished: bool = False
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    claims: tuple[str, ...] | None = None
    columns: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def reference(self) -> str | None:
        """The first gold answer, or None."""
        return self.references[0] if self.references else None

    def lacks(self, part: Part | Literal["claims"]) -> bool:
        """Whether a part is unknown (None). Empty texts and empty lists of contexts are known."""
        return getattr(self, part) is None


MESSAGES = "messages"
"""The column of a question file that holds conversations."""
_ROLES = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant",
    "system": "system", "developer": "system", "tool": "tool", "function": "tool",
}  # fmt: skip
_KEPT = ("tool_calls", "tool_call_id", "name", "function_call")

Turn: TypeAlias = Mapping[str, Any]
"""A message: `role` is user, assistant, system or tool, and `content` is text."""


def read_turns(value: Any) -> tuple[Turn, ...] | None:
    """The turns of a conversation; None if the value is something else.

    It can be a list of messages, an object that has one under `messages`, or either as JSON text.
    """
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, Mapping):
        value = value.get(MESSAGES)
    if not isinstance(value, (list, tuple)) or not value:
        return None
    turns = [_read_turn(item) for item in value]
    return None if None in turns else tuple(turn for turn in turns if turn is not None)


def find_question(turns: Sequence[Turn]) -> int | None:
    """The place of the last turn of the user that says something; None if there is none."""
    places = (place for place, turn in enumerate(turns) if turn["role"] == "user" and turn["content"].strip())
    return max(places, default=None)


def list_until_question(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The turns up to the question: what a system is told. What came after it, such as a gold answer, is left out."""
    place = find_question(turns)
    return () if place is None else tuple(turns[: place + 1])


def find_last_answer(turns: Sequence[Turn]) -> str | None:
    """The last text of the assistant after the question; None if the conversation ends with the user."""
    place = find_question(turns)
    after = turns if place is None else turns[place + 1 :]
    said = (turn["content"] for turn in reversed(after) if turn["role"] == "assistant")
    return next((text for text in said if text.strip()), None)


def write_turn(turn: Turn) -> str:
    """A turn as a line of a transcript: `user: And in Rome?`, or `assistant: search({"q": 1})` for a call of a tool."""
    calls = " ".join(f"{name}({given})" for name, given, _ in list_calls(turn))
    return f"{turn['role']}: {' '.join(filter(None, (turn['content'], calls)))}"


def list_calls(turn: Turn) -> Iterator[tuple[str, str, str | None]]:
    """The tools that a turn calls: name, arguments as text, and the id of the call if it has one."""
    calls = turn.get("tool_calls")
    for call in calls if isinstance(calls, (list, tuple)) else ():
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        named = function if isinstance(function, Mapping) else call
        given = next((named[key] for key in ("arguments", "args", "input") if named.get(key) is not None), "")
        identity = call.get("id")
        shown = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        yield str(named.get("name") or "tool"), shown, None if identity is None else str(identity)


def _read_turn(item: Any) -> Turn | None:
    if not isinstance(item, Mapping):
        return None
    data = item.get("data")
    inner = data if isinstance(data, Mapping) and "content" in data else item  # LangChain: {type, data: {content}}
    said = item.get("role", item.get("type"))
    role = _ROLES.get(said.removesuffix("_message").lower()) if isinstance(said, str) else None
    text = _read_content(inner.get("content", inner.get("text")))
    kept = {key: inner[key] for key in _KEPT if inner.get(key)}
    if role is None or (text is None and not kept.keys() - {"name"}):  # DeepEval's calls have a type and a name
        return None
    return {"role": role, "content": text or "", **kept}


def _read_content(content: Any) -> str | None:
    """The text of a message, also of one in parts, of which only the texts are read."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return None
    if not all(isinstance(part, (str, Mapping)) for part in content):
        return None
    texts = (part if isinstance(part, str) else part.get("text") for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))
