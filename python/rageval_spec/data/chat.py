"""Requests to chat models, their replies, and why a call brought none.

It also counts how often a model's replies could be read, and how long they took. It tells whether two names mean the
same language model, or models of one family.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import RagevalError
from rageval_spec.libraries import compile_later

_PIECE = 2047
"""Bytes that are hashed without releasing the GIL."""


class Message(NamedTuple):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class ChatRequest:
    """One question to a chat model.

    Attributes:
        schema: the JSON Schema of the reply: an object whose keys are all required. None for plain text.
        max_tokens: the longest reply; None for the model's own limit.
        logprobs: whether to return the probabilities of the reply's tokens.
        repeat: the number of this sample of the question, from 0; a panel asks the same question several times.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    logprobs: bool = False
    repeat: int = 0

    @property
    def digest(self) -> bytes:
        """The sha256 of the whole request."""
        return self._written[0]

    @property
    def schema_characters(self) -> int:
        """The length of the schema as JSON; 0 without one."""
        return self._written[1]

    @property
    def _written(self) -> tuple[bytes, int]:
        """The digest and the length of the schema. Not a `cached_property`, whose lock is one for all requests."""
        known: tuple[bytes, int] | None = self.__dict__.get("_kept")
        if known is None:
            schema = _write_schema(self.schema)
            rest = json.dumps((self.max_tokens, self.logprobs, self.repeat))[1:]
            content = f"[{json.dumps(self.messages)}, {schema}, {rest}".encode("ascii")
            digest = hashlib.sha256()
            for start in range(0, len(content), _PIECE):  # more at once releases the GIL, and waits for it again
                digest.update(content[start : start + _PIECE])
            known = self.__dict__["_kept"] = digest.digest(), 0 if self.schema is None else len(schema)
        return known

    @property
    def size(self) -> int:
        """The length of all messages in bytes of UTF-8: tokens of Russian or Chinese have fewer characters."""
        return sum(len(message.content.encode("utf-8", "replace")) for message in self.messages)


_schemas: dict[int, tuple[Mapping[str, Any] | None, str]] = {}
_MOST_SCHEMAS = 1024


def _write_schema(schema: Mapping[str, Any] | None) -> str:
    """A schema as JSON. Those of many requests are one object, which is written once and must not change then."""
    known = _schemas.get(id(schema))
    if known is None:
        if len(_schemas) >= _MOST_SCHEMAS:
            _schemas.clear()
        known = _schemas[id(schema)] = schema, json.dumps(schema, sort_keys=True)  # held: no other gets its id
    return known[1]


class TokenChoice(NamedTuple):
    """A token that could stand at one place of the reply, and the natural logarithm of its probability."""

    token: str
    logprob: float


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A chat model's reply.

    Attributes:
        finish: why the reply ended: "stop", "length" (cut off), ...; None if the endpoint does not say.
        choices: for each token of the reply, the likeliest tokens at its place, the chosen one first; None if the
            endpoint gave no probabilities.
        reused: True if the reply was found in the store, and so cost nothing.
        seconds: how long the endpoint took, without waiting for a slot or a retry; None for a stored reply.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish: str | None = None
    choices: tuple[tuple[TokenChoice, ...], ...] | None = None
    reused: bool = False
    seconds: float | None = field(default=None, compare=False)

    def with_text(self, text: str) -> ChatReply:
        """A copy with another text and without token probabilities, which describe only the original text."""
        return replace(self, text=text, choices=None)


class CallError(RagevalError):
    """A call failed, and retries failed or would be useless. One sample has no verdict; the others are not affected.

    Attributes:
        is_temporary: True if the endpoint can be expected to answer if the question is rephrased: it was busy or broken
            (429, 5xx), or its reply was incomplete. False if it refuses (401, 404) or is considered dead.
        is_lasting: True if the next evaluation would fail in the same way: the endpoint refuses (401, 404).
    """

    def __init__(self, message: str, *, is_temporary: bool = True, is_lasting: bool = False) -> None:
        """Create the error with the message that reports show."""
        super().__init__(message)
        self.is_temporary = is_temporary
        self.is_lasting = is_lasting


class UnfinishedError(RagevalError):
    """The evaluation stopped before a reply came. This is not a failure of the model or the system."""


class LimitError(UnfinishedError):
    """The evaluation reached a limit of the spec and asks nothing more. The replies it already has are kept."""


class InterruptedCallError(UnfinishedError):
    """The evaluation was interrupted, for example by Ctrl-C, while a call was waiting or in flight."""


@dataclass(frozen=True, slots=True)
class ReplyCounts:
    """What became of the questions that a chat model was asked.

    Attributes:
        first: questions whose first reply could be read.
        later: questions that were asked again, in other words, until a reply could be read.
        never: questions without a reply that could be read.
        repeats: how many replies it took beyond the first of each question.
    """

    first: int = 0
    later: int = 0
    never: int = 0
    repeats: int = 0

    @property
    def questions(self) -> int:
        """All questions that got any reply."""
        return self.first + self.later + self.never

    def __add__(self, other: ReplyCounts) -> ReplyCounts:
        """The counts of both."""
        return ReplyCounts(
            self.first + other.first, self.later + other.later, self.never + other.never, self.repeats + other.repeats
        )

    @classmethod
    def of(cls, replies: int, *, is_read: bool) -> ReplyCounts:
        """One question that got this many replies; `is_read` if the last one could be read."""
        repeats = max(replies - 1, 0)
        if not is_read:
            return cls(never=1, repeats=repeats)
        return cls(later=1, repeats=repeats) if repeats else cls(first=1)

    def __str__(self) -> str:
        """`readable replies to 97.5% of 40 questions at first, 2.5% after asking again (1 more call)`."""
        noun = "question" if self.questions == 1 else "questions"
        parts = [f"readable replies to {_show(self.first, self.questions)} of {self.questions:,} {noun} at first"]
        parts += [f"{_show(self.later, self.questions)} after asking again"] if self.later else []
        parts += [f"{_show(self.never, self.questions)} never"] if self.never else []
        more = f"{self.repeats:,} more {'call' if self.repeats == 1 else 'calls'}"
        return ", ".join(parts) + (f" ({more})" if self.repeats else "")


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A chat model at an endpoint, its calls that gave a reply with their seconds, and how readable replies were."""

    model: str
    url: str
    calls: int
    seconds: float
    replies: ReplyCounts

    def __str__(self) -> str:
        """`readable replies to 97.5% of 40 questions at first, 2.5% never; 0.84 seconds a call`."""
        return f"{self.replies}; {self.seconds / max(self.calls, 1):.2g} seconds a call"


def _show(count: int, total: int) -> str:
    """A share as a percentage that is 0% or 100% only if it is exactly that."""
    share = 100 * count / total if total else 0.0
    rounded = f"{share:.1f}".removesuffix(".0")
    if rounded == "100" and count < total:
        return "99.9%"
    return "0.1%" if rounded == "0" and count else f"{rounded}%"


Kinship = Literal["same", "family"]
"""`same`: one model, in whatever release, size of numbers or place. `family`: models of one maker's line."""

_PROVIDER = compile_later(
    r"^(?:(?:[a-z]{2,4}\.)?(?:anthropic|meta|amazon|mistral|cohere|ai21|deepseek|openai|qwen|google)\.|.*/)"
)
"""What hosts put before a name: `us.anthropic.`, `openai/`, `accounts/fireworks/models/`."""
_RELEASE = compile_later(
    r"@[\w.-]+$|-v\d+:\d+$|[-_:.]\d{4}-\d{2}-\d{2}|[-_@]20\d{6}|[-_](?:0\d{2}|\d{2}-\d{2}|[01]\d[0-3]\d|2[3-9](?:0[1-9]|1[0-2]))$"
)
"""Dates and numbers of releases: `-2024-08-06`, `@20240229`, `-v1:0`, `-002`, `-05-06`, `-0613`, `-2411`."""
_TOKEN = compile_later(r"[a-z]+|\d+")
_NOISE = frozenset(
    (
        *("meta", "hf", "instruct", "it", "chat", "latest", "preview", "exp", "experimental", "online", "free"),
        *("gguf", "ggml", "awq", "gptq", "mlx", "bnb", "exl", "fp", "bf", "nf", "int", "bit", "f", "q", "k", "m", "s"),
    )
)
"""Tokens that do not tell models apart: training for chats, formats, the size of numbers."""
_SIZES = compile_later(r"(?:[-_:](?:i?q\d(?:_[a-z0-9]+)*|(?:fp|bf|int|f|nf)\d+|\d+bit|awq|gptq|gguf|mlx))+$")
_FAMILIES: Mapping[str, str] = {
    **{name: name for name in ("claude", "command", "deepseek", "falcon", "gemini", "gemma", "glm", "gpt", "granite")},
    **{name: name for name in ("grok", "jamba", "kimi", "llama", "mistral", "nova", "olmo", "phi", "qwen", "yi")},
    **dict.fromkeys(("chatgpt", "o", "davinci"), "gpt"),
    **dict.fromkeys(("mixtral", "ministral", "codestral", "magistral", "pixtral", "devstral"), "mistral"),
    **dict.fromkeys(("qwq", "qvq"), "qwen"),
    "codellama": "llama",
    "codegemma": "gemma",
}
"""The family of each line of models, by the first word of its name."""


def compare_models(one: str, other: str) -> Kinship | None:
    """How two models are related, by their names as people and endpoints write them; None if they are not.

    >>> compare_models("gpt-4o-2024-08-06", "openai/gpt-4o")
    'same'
    >>> compare_models("llama3.1:8b", "meta-llama/Llama-3.1-70B-Instruct")
    'family'
    >>> compare_models("gpt-4o", "claude-3-5-sonnet") is None
    True
    """
    if one.strip() and one.strip().casefold() == other.strip().casefold():
        return "same"
    first, second = _read(one), _read(other)
    if first == second:
        return "same" if first else None
    families = [_FAMILIES.get(tokens[0]) if tokens else None for tokens in (first, second)]
    return "family" if families[0] is not None and families[0] == families[1] else None


def _read(name: str) -> tuple[str, ...]:
    """The tokens of a name that tell the model apart from others."""
    text = _PROVIDER.sub("", name.strip().casefold())
    text = text.removesuffix(":latest")
    for pattern in (_SIZES, _RELEASE):
        text = pattern.sub("", text)
    return tuple(token for token in _TOKEN.findall(text) if token not in _NOISE)
