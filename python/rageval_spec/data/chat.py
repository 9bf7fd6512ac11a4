"""Requests to chat models, and their replies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple


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

    @cached_property
    def digest(self) -> bytes:
        """The sha256 of the whole request."""
        content = [self.messages, self.schema, self.max_tokens, self.logprobs, self.repeat]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()

    @property
    def characters(self) -> int:
        """The total length of the messages."""
        return sum(len(message.content) for message in self.messages)


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
