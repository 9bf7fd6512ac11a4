"""What is asked of a chat model, and what it replies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from rageval_spec.errors import RagevalError


class Message(NamedTuple):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class ChatRequest:
    """One call.

    Attributes:
        schema: the JSON Schema that the reply must have; None for plain text. An object, no key optional.
        max_tokens: of the reply; the model's own limit where it is None.
        logprobs: whether the probabilities of the reply's tokens are wanted.
        repeat: a further sample of the same question, for panels; 0 is the first.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    logprobs: bool = False
    repeat: int = 0

    @cached_property
    def digest(self) -> bytes:
        """The sha256 of everything that is asked."""
        content = [self.messages, self.schema, self.max_tokens, self.logprobs, self.repeat]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()

    @property
    def characters(self) -> int:
        """How long all messages are together."""
        return sum(len(message.content) for message in self.messages)


class TokenChoice(NamedTuple):
    """A token of the reply's place, and its natural logarithm of probability."""

    token: str
    logprob: float


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back.

    Attributes:
        finish: why it ended: "stop", "length" (cut off), ...; None where the endpoint does not say.
        choices: for each token of the reply the likeliest tokens at its place, the chosen one first; None without.
        reused: found among earlier answers, and not paid again.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish: str | None = None
    choices: tuple[tuple[TokenChoice, ...], ...] | None = None
    reused: bool = False

    def with_text(self, text: str) -> ChatReply:
        """The reply with another text, and without the probabilities of the tokens that made the first."""
        return replace(self, text=text, choices=None)


class CallError(RagevalError):
    """A call failed, and further tries did or would not help. One sample is without a verdict; others may have one.

    Attributes:
        is_temporary: whether the endpoint may well answer the same question in other words: it was busy, it broke down
            (429, 5xx), it gave no whole reply. False where it refuses (401, 404), or is taken for dead.
    """

    def __init__(self, message: str, *, is_temporary: bool = True) -> None:
        """Keep what happened."""
        super().__init__(message)
        self.is_temporary = is_temporary


class UnfinishedError(RagevalError):
    """The evaluation stopped before a reply came. This says nothing about the model or system: it is not a failure."""


class LimitError(UnfinishedError):
    """A limit of the spec is reached: nothing further may be asked. What was answered is kept."""


class InterruptedCallError(UnfinishedError):
    """The evaluation was interrupted, as by Ctrl-C, while a call was waiting or under way."""
