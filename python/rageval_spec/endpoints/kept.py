"""The stored form of chat replies: a line of JSON and its CRC-32."""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

from rageval_spec.data.chat import ChatReply, TokenChoice

_MARK = b"\n#"
_DIGITS = 8


def pack_reply(reply: ChatReply) -> bytes:
    """A reply in the form in which it is stored."""
    content = {
        "text": reply.text,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "finish": reply.finish,
        "choices": reply.choices,
    }
    kept = {key: value for key, value in content.items() if value is not None}
    packed = json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()
    return packed + _checksum(packed)


def unpack_reply(content: bytes) -> ChatReply | None:
    """A stored reply; None if it is damaged, so that the question is asked again.

    Earlier versions wrote no checksum. Their replies are used if every part has the right type.
    """
    packed, mark, _ = content.rpartition(_MARK)
    if mark and content != packed + _checksum(packed):
        return None
    try:
        return _read(json.loads(packed if mark else content))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _checksum(packed: bytes) -> bytes:
    return _MARK + f"{zlib.crc32(packed):0{_DIGITS}x}".encode("ascii")


def _read(content: Any) -> ChatReply:
    """The reply in parsed JSON; raises `TypeError` if a part has the wrong type."""
    finish = content.get("finish") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(content["text"], str):
        raise TypeError("a reply is an object with a text")
    if finish is not None and not isinstance(finish, str):
        raise TypeError("what a reply ended with is a word")
    return ChatReply(
        content["text"],
        _read_count(content.get("input_tokens")),
        _read_count(content.get("output_tokens")),
        finish,
        _read_choices(content.get("choices")),
        reused=True,
    )


def _read_count(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise TypeError("a number of tokens is a whole number")
    return value


def _read_choices(value: Any) -> tuple[tuple[TokenChoice, ...], ...] | None:
    if value is None:
        return None
    return tuple(tuple(_read_choice(*choice) for choice in place) for place in value)


def _read_choice(token: Any, logprob: Any) -> TokenChoice:
    if not isinstance(token, str) or not isinstance(logprob, int | float) or math.isnan(logprob):
        raise TypeError("a choice is a token and its logarithm of probability")
    return TokenChoice(token, float(logprob))
