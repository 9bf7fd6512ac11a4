"""Finds the parts of an answer in an HTTP reply, also one that comes in pieces as server-sent events.

Parts are at the paths that a spec names, or at the usual places. The usual formats of event streams are those of
OpenAI (chat, completions, responses), Anthropic, Ollama, Text Generation Inference, Dify and LangServe, and any whose
events are JSON objects or plain text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from rageval_spec.data.traces import Document, Step
from rageval_spec.dataclass import dataclass, field
from rageval_spec.libraries import compile_later
from rageval_spec.recorded import answers_and_steps, cited_blocks, questions_and_answers
from rageval_spec.recorded.json_path import JsonPath, PathError, list_keys, name_kind, parse_path
from rageval_spec.wording import count_noun


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

    def read(self, content: Any, answer: str | None = None) -> answers_and_steps.AnswerRow:
        """The answer in a reply, or `answer` if it came in pieces. Raises UnusableReplyError: a part is wrong."""
        try:
            if self.retrieves is not None:
                return self._read_retrieval(content, self.retrieves)
            content = content if self.answer is not None else cited_blocks.unfold_sentences(content)
            if answer is None:
                answer = (
                    answers_and_steps.read_text(self.answer.find(content), self.answer.text)
                    if self.answer
                    else find_reply_answer(content)
                )
            steps = self._steps(content)
            contexts = self._contexts(content)
            ids = self._ids(content, contexts)
            if contexts is None and ids is None and (contexts := find_contexts(steps)) is not None:
                ids = contexts.ids
            return answers_and_steps.AnswerRow(
                answer=answer,
                contexts=None if contexts is None else contexts.texts,
                context_ids=ids,
                scores=None if contexts is None else contexts.scores,
                context_places=None if contexts is None else contexts.places,
                **self._read_numbers(content),
                steps=answers_and_steps.dump_steps(steps),
                answer_columns=None
                if contexts is not None or ids is not None or self.contexts is not None
                else answers_and_steps.dump_answer_columns(questions_and_answers.find_unread(content)),
                **answers_and_steps.read_details(content),
                citations=cited_blocks.read_citations(content, answer, contexts and contexts.texts, ids),
            )
        except PathError as error:
            raise answers_and_steps.UnusableReplyError(str(error)) from None

    def _steps(self, content: Any) -> tuple[Step, ...] | None:
        """What an agent did; None if the reply does not say. At a usual place, something else than steps is ignored."""
        if self.steps is not None:
            found = self.steps.find(content)
            return None if found is None else answers_and_steps.read_steps(found, self.steps.text)
        found = questions_and_answers.find_named(content, STEP_KEYS)
        try:
            return None if found is None else answers_and_steps.read_steps(found)
        except answers_and_steps.UnusableReplyError:
            return None

    def _read_retrieval(self, content: Any, path: JsonPath) -> answers_and_steps.AnswerRow:
        ids = answers_and_steps.read_ids(_find_list(path, content), path.text)
        contexts = None if self.contexts is None else self._contexts(content)
        scores = None if self.scores is None else _read_scores(_find_list(self.scores, content), self.scores.text)
        for found, what in ((contexts and contexts.texts, "contexts"), (scores, "scores")):
            if found is not None and len(found) != len(ids):
                raise answers_and_steps.UnusableReplyError(f"it has {len(ids)} ids and {len(found)} {what}")
        return answers_and_steps.AnswerRow(
            contexts=contexts and contexts.texts,
            context_ids=ids,
            context_places=contexts and contexts.places,
            scores=scores,
            **self._read_numbers(content),
        )

    def _read_numbers(self, content: Any) -> dict[str, Any]:
        """The tokens and the cost. A usual place with something else is ignored; at a given path it is an error."""
        tokens = questions_and_answers.find_tokens(content)
        usual = {"input_tokens": tokens[0], "output_tokens": tokens[1], "cost": _find_cost(content)}
        numbers: dict[str, Any] = {}
        for part, found in usual.items():
            read = answers_and_steps.read_amount if part == "cost" else answers_and_steps.read_count
            path: JsonPath | None = getattr(self, part)
            value = found if path is None else path.find_or(content, None)
            try:
                numbers[part] = None if value is None else read(value, part if path is None else path.text)
            except answers_and_steps.UnusableReplyError:
                if path is not None:
                    raise
        return numbers

    def _contexts(self, content: Any) -> answers_and_steps.Contexts | None:
        if self.contexts is not None:
            found = self.contexts.find(content)
            return None if found is None else answers_and_steps.read_contexts(found, self.contexts.text)
        found = questions_and_answers.find_named(content, _STRICT_KEYS)
        if found is not None:
            return answers_and_steps.read_contexts(found)
        found = questions_and_answers.find_named(content, questions_and_answers.CONTEXT_KEYS)
        with suppress(answers_and_steps.UnusableReplyError):
            if found is not None:
                return answers_and_steps.read_contexts(found)
        return as_contexts(questions_and_answers.find_cited(content))

    def _ids(self, content: Any, contexts: answers_and_steps.Contexts | None) -> tuple[str, ...] | None:
        path = self.context_ids
        found = questions_and_answers.find_named(content, _CONTEXT_IDS) if path is None else path.find(content)
        if found is None:
            return None if contexts is None else contexts.ids
        ids = answers_and_steps.read_ids(found, "context_ids" if path is None else path.text)
        if contexts is not None and len(ids) != len(contexts.texts):
            raise answers_and_steps.UnusableReplyError(
                f"it has {len(contexts.texts)} contexts and {len(ids)} context_ids"
            )
        return ids


def _find_list(path: JsonPath, content: Any) -> Any:
    """A list in a reply; one inside a list, as servers that take many queries at once reply, is that list."""
    found = path.find(content)
    if found is None:
        raise answers_and_steps.UnusableReplyError(f"{path.text} is null")
    if isinstance(found, Mapping):
        raise answers_and_steps.UnusableReplyError(
            f"{path.text} must be a list of ids, not an object; it has {list_keys(list(found))}"
        )
    is_nested = isinstance(found, list) and len(found) == 1 and isinstance(found[0], list)
    return found[0] if is_nested else found


def _read_scores(value: Any, what: str) -> tuple[float, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(
        answers_and_steps.read_amount(item, f"{what}[{place}]", low=-math.inf) for place, item in enumerate(items)
    )


STEP_KEYS = ("steps", "intermediate_steps", "tools_called", "tool_calls", "trajectory")
"""Where a reply says what an agent did."""
_STRICT_KEYS = questions_and_answers.CONTEXT_KEYS[:5]
"""Names under which nothing else than contexts can be; what is under the other names is read if it can be."""
_CONTEXT_IDS = ("context_ids", "retrieved_context_ids")
_COSTS = ("cost", "total_cost", "cost_usd")


def find_contexts(steps: Sequence[Step] | None) -> answers_and_steps.Contexts | None:
    """The documents that steps retrieved, for an answer that names no contexts; None if they retrieved none."""
    return as_contexts(answers_and_steps.list_retrieved(steps or ()))


def as_contexts(documents: Sequence[Document] | None) -> answers_and_steps.Contexts | None:
    """Documents as contexts; None without any."""
    if not documents:
        return None
    ids, scores = [one.doc_id for one in documents], [one.score for one in documents]
    return answers_and_steps.Contexts(
        tuple(one.text or "" for one in documents),
        tuple(name for name in ids if name is not None) if None not in ids else None,
        tuple(scores) if any(score is not None for score in scores) else None,
    )


def find_reply_answer(content: Any) -> str:
    """The answer in a reply of any known shape; a text is the answer. Raises UnusableReplyError: there is none."""
    found = content if isinstance(content, str) else questions_and_answers.find_reply(content)
    if isinstance(content, Mapping) and found == content.get("message") and _FAILED.search(found or ""):
        raise answers_and_steps.UnusableReplyError(
            f"the reply has no answer but an error's message: {found}; if it is the answer, write 'answer: $.message'"
        )
    if found is not None:
        return answers_and_steps.read_text(found, "the reply" if found is content else "the answer")
    if content is None:
        raise answers_and_steps.UnusableReplyError("the reply has no answer: it is null")
    if not isinstance(content, Mapping):
        raise answers_and_steps.UnusableReplyError(f"the reply is {name_kind(content)}, not an object with an answer")
    key = next((key for key in content if questions_and_answers.names_answer(key)), None)
    if key is None:
        raise answers_and_steps.UnusableReplyError(
            f"the reply has no answer at any usual place; it has {list_keys(list(content))}"
        )
    value = content[key]
    why = "it is null" if value is None else f"it is {name_kind(value)}, not text"
    if isinstance(value, str):
        why = f"'{key}' is JSON or a printed object, {value[:60]!r}; send the text of the answer there"
    raise answers_and_steps.UnusableReplyError(f"the reply has no answer: {why}")


_FAILED = compile_later(
    r"(?i)^[^.?!]{0,60}\b(?:error|exception|failed|failure|timed out|timeout|forbidden|unauthori[sz]ed|denied"
    r"|unavailable|too many requests|rate limit|not found|throttled|bad (?:request|gateway)|missing authentication)\b"
    r"[^.?!]{0,60}[.!]?$"
)
"""What servers write as the `message` of a reply that is an error: a few words, and no sentence of an answer."""


def _find_cost(content: Any) -> Any:
    own = questions_and_answers.find_named(content, _COSTS)
    usage = questions_and_answers.find_named(content, ("usage",))
    return questions_and_answers.find_named(usage, _COSTS) if own is None else own


CLOSE = "close"
"""What a spec writes in place of the last event's name if only the end of the reply ends its streams."""
LAST_NAMES = frozenset(
    {
        "answer_end", "complete", "completed", "completion", "done", "end", "final", "final_answer", "final_result",
        "finish", "finished", "message_end", "message_stop", "response.completed", "result", "stop",
    }
)  # fmt: skip
"""Names of events that end an answer, unless an earlier event has the same name."""
_LAST_DATA = frozenset({"[DONE]", "[done]"})
_FLAGS = ("done", "finished", "is_final", "final")
_WHOLE_NAMES = frozenset({"final", "final_answer", "final_result", "result", "completion"})
"""Names of last events whose text is the whole answer even if it begins differently from the pieces."""
_SAME_BEGINNING = 16
_PIECES = tuple(
    parse_path(path)
    for path in (
        "choices[0].delta.content", "choices[0].text", "delta.text", "delta.content", "delta", "message.content",
        "token.text", "token", "piece", "chunk", "answer", "response", "output", "text", "content",
    )
)  # fmt: skip
"""The usual places of a piece of the answer in an event."""
_WHOLES = tuple(
    parse_path(path)
    for path in ("answer", "response", "output", "output_text", "generated_text", "result", "text", "content")
)
"""The usual places of the whole answer in the last event."""
_BEGINNING = compile_later(rb"(?:\xef\xbb\xbf)?[\r\n]*(?::|(?:data|event|id|retry)[:\r\n])")
_OBJECT_AFTER_OBJECT = compile_later(rb"\}[ \t]*\r?\n\{")
_MOST_SHOWN = 8


class CutOffReplyError(answers_and_steps.UnusableReplyError):
    """A stream without a last event; the answer may be cut off."""


class ServerEvent(NamedTuple):
    """An event: its name, "" without one; its data as text; and the data as JSON, None if they are not JSON."""

    name: str
    text: str
    value: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and what the keys `type` and `event` of its data say."""
        inner = [self.value.get(key) for key in ("type", "event")] if isinstance(self.value, dict) else []
        return tuple(name for name in (self.name, *inner) if isinstance(name, str) and name)


@dataclass(frozen=True, slots=True)
class Assembled:
    """The content of a stream: what all events that are objects have, later ones over earlier ones, and its answer.

    Other JSON is under the name of its event. The text is None if no event has a piece of the answer.
    """

    content: dict[str, Any]
    text: str | None


def is_event_stream(content: bytes) -> bool:
    """Whether a reply consists of server-sent events. JSON never begins as they do."""
    return _BEGINNING.match(content) is not None


def is_stream(content: bytes) -> bool:
    """Whether a reply consists of server-sent events, or of several lines that are JSON objects, as Ollama's."""
    return is_event_stream(content) or (content[:1] == b"{" and _OBJECT_AFTER_OBJECT.search(content) is not None)


def parse_events(content: bytes) -> list[ServerEvent]:
    """The events that have data, read as the HTML standard says, or one JSON object on each line.

    An event at the end without its empty line is incomplete and left out, unless it is `[DONE]`.

    Raises UnusableReplyError: the reply is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise answers_and_steps.UnusableReplyError("its stream of events is not UTF-8") from error
    lines = re.split(r"\r\n|\r|\n", text)
    if not is_event_stream(content):
        return [_read_event("", line) for line in lines if line.strip()]
    return [*_join_lines(lines)]


def assemble(content: bytes, answer: JsonPath | None = None, last: str | None = None) -> Assembled:
    """The content of a stream.

    `answer` is the path of each piece of the answer, or of all of it, in the events; None for the usual places. `last`
    is the name of the last event, or `CLOSE`; None for the usual names. Raises CutOffReplyError: there is no last
    event. Raises UnusableReplyError: an event reports an error.
    """
    events = parse_events(content)
    plain_names = frozenset(one.name for one in events if one.value is None and one.text not in {*_LAST_DATA, "null"})
    reader = _Reader(answer, last, plain_names)
    for event in events:
        reader.read(event)
        if last is not None and reader.has_ended:
            break
    if not reader.has_ended and last != CLOSE:
        raise CutOffReplyError(_explain_end(events, last))
    if any(answers_and_steps.is_truncated(event.value) for event in events if isinstance(event.value, dict)):
        reader.content["finish_reason"] = "length"
    return Assembled(reader.content, "".join(reader.pieces) if reader.pieces else None)


@dataclass
class _Reader:
    """Reads one event after another.

    It `has_ended` if an event said that the answer is complete, and no piece of it came afterwards. Events of the
    `plain_names` have plain text.
    """

    answer: JsonPath | None
    last: str | None
    plain_names: frozenset[str]
    content: dict[str, Any] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    has_ended: bool = False
    seen: set[str] = field(default_factory=set)

    def read(self, event: ServerEvent) -> None:
        _refuse_error(event)
        is_last = self._is_last(event)
        self.seen.update(event.names)
        if event.text not in _LAST_DATA:
            text = self._find_text(event, is_last=is_last)
            if text is not None:
                self._add(text, event, is_last=is_last)
            self._merge(event, text)
        self.has_ended = self.has_ended or is_last

    def _is_last(self, event: ServerEvent) -> bool:
        if self.last is not None:
            return self.last in (*event.names, event.text)
        if event.text in _LAST_DATA:
            return True
        if any(name in LAST_NAMES and name not in self.seen for name in event.names):
            return True
        data = event.value
        return isinstance(data, dict) and (
            any(data.get(key) is True for key in _FLAGS)
            or isinstance(data.get("generated_text"), str)
            or isinstance(_first_choice(data).get("finish_reason"), str)
        )

    def _find_text(self, event: ServerEvent, *, is_last: bool) -> str | None:
        data = event.value
        if not isinstance(data, dict):
            return self._find_plain(event, is_last=is_last)
        if self.answer is not None:
            return _find_in_event(self.answer, data)
        kind = str(data.get("type"))
        if kind.startswith("response."):  # OpenAI's responses have deltas of reasoning and of arguments, too
            return _find_in_event(_DELTA, data) if kind == "response.output_text.delta" else None
        if _first_choice(data).get("index", 0) != 0:
            return None
        places = (*_WHOLES, *_PIECES) if is_last and "choices" not in data else _PIECES
        return next((text for path in places if (text := _find_in_event(path, data)) is not None), None)

    def _find_plain(self, event: ServerEvent, *, is_last: bool) -> str | None:
        """Plain text, which can look like JSON: the piece `[1]` is a citation, and the piece 2024 a year."""
        if self.answer is not None or (is_last and event.name not in self.plain_names and event.value is None):
            return None
        if isinstance(event.value, str) and event.name not in self.plain_names:
            return event.value
        is_plain = event.name in self.plain_names or not isinstance(event.value, list)
        return event.text if is_plain else None

    def _add(self, text: str, event: ServerEvent, *, is_last: bool) -> None:
        joined = "".join(self.pieces).strip()
        begins_alike = bool(joined) and text.strip().startswith(joined[:_SAME_BEGINNING])
        if is_last and (begins_alike or _WHOLE_NAMES & {*event.names} or self.last in event.names):
            self.pieces = [text]
        else:
            self.pieces.append(text)
            self.has_ended = self.has_ended and not text

    def _merge(self, event: ServerEvent, text: str | None) -> None:
        if isinstance(event.value, list) and event.name and text is None:
            self.content[event.name] = event.value
        if not isinstance(event.value, dict):
            return
        for key, value in _unwrap(event.value).items():
            earlier = self.content.get(key)
            if isinstance(value, dict) and isinstance(earlier, dict):
                self.content[key] = {**earlier, **{name: inner for name, inner in value.items() if inner is not None}}
            elif value is not None and value != text:
                self.content[key] = value


_DELTA = parse_path("delta")


def _join_lines(lines: Sequence[str]) -> Iterator[ServerEvent]:
    name, data = "", list[str]()
    for line in lines:
        if not line:
            if data:
                yield _read_event(name, "\n".join(data))
            name, data = "", []
            continue
        key, _, value = line.partition(":")
        if key == "event":
            name = value.removeprefix(" ")
        elif key == "data":
            data.append(value.removeprefix(" "))
    if data and data[-1].strip() in _LAST_DATA:
        yield _read_event(name, data[-1])


def _read_event(name: str, text: str) -> ServerEvent:
    if text.strip() in _LAST_DATA:
        return ServerEvent(name, text.strip())
    try:
        return ServerEvent(name, text, json.loads(text))
    except (ValueError, RecursionError):
        return ServerEvent(name, text)


def _refuse_error(event: ServerEvent) -> None:
    data = event.value if isinstance(event.value, dict) else {}
    said = data.get("error") or (event.text if "error" in event.names else None)
    if said:
        said = said.get("message", said) if isinstance(said, dict) else said
        shown = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        raise answers_and_steps.UnusableReplyError(f"its stream reports an error: {shown}")


def _first_choice(data: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _unwrap(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event's keys, and those of the response or the message in OpenAI's and Anthropic's events."""
    kind = str(data.get("type"))
    key = "response" if kind.startswith("response.") else "message" if kind == "message_start" else ""
    inner = data.get(key)
    return {**data, **inner} if isinstance(inner, dict) else data


def _find_in_event(path: JsonPath, data: Any) -> str | None:
    try:
        found = path.find(data)
    except PathError:
        return None
    if path.is_plural and isinstance(found, list) and found and all(isinstance(part, str) for part in found):
        return "".join(found)
    return found if isinstance(found, str) else None


def _explain_end(events: Sequence[ServerEvent], last: str | None) -> str:
    known = list(dict.fromkeys(name for event in events for name in event.names))
    shown = f"; the events are {', '.join(map(repr, known[:_MOST_SHOWN]))}" if known else ""
    wanted = f"no event {last!r}" if last is not None else "no last event, such as [DONE]"
    message = f"its stream of {count_noun(len(events), 'event')} has {wanted}, so the answer may be cut off{shown}"
    if last is not None:
        return message
    return f"{message}; name the last event in 'last_event', or write 'last_event: {CLOSE}' if the system sends none"
