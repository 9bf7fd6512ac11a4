"""Lets threads and processes ask equal questions once, and stores the replies.

Threads take turns with equal questions to a model, and learn what the first one learned. Only one process at a time
asks a question; the others wait for its answer.

The stored form of a chat reply is a line of JSON and its CRC-32.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rageval_spec.data.chat import ChatReply
from rageval_spec.endpoints.pacing import Slots
from rageval_spec.threads import floor

if TYPE_CHECKING:
    from rageval_spec.store.store import Answers


class Turns:
    """Lets only one thread at a time ask the same question of one model.

    The next thread that asks the question finds its reply in the store. Turns only remember what the store does not
    have: failures, and replies to questions that were asked again although the store had a reply.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: dict[bytes, Lock] = {}
        self._known: dict[bytes, Any] = {}
        self._room: Slots | None = None

    def find_room(self, most: int) -> Slots:
        """Room for so many of those who ask the model; the first one decides how many."""
        with self._lock:
            self._room = self._room or Slots(most)
            return self._room

    @contextmanager
    def take_turn(self, digest: bytes) -> Iterator[Any]:
        """Wait until no other thread asks a question; give what is known of it, or None if this thread must ask it."""
        mine = Lock()
        with mine:
            while True:
                with self._lock:
                    known = self._known.get(digest)
                    asking = None if known is not None else self._under_way.setdefault(digest, mine)
                if asking is None:
                    yield known
                    return
                if asking is mine:
                    break
                with floor.rested(), asking:
                    pass  # the question was asked
            try:
                yield None
            finally:
                with self._lock:
                    del self._under_way[digest]

    def keep(self, digest: bytes, known: object) -> None:
        with self._lock:
            self._known[digest] = known


T = TypeVar("T")

PAUSE = 0.05
"""Seconds between checks whether another process has its answer."""


@contextmanager
def hold_claim(
    answers: Answers, model: str, question: bytes, find: Callable[[], T | None], sleep: Callable[[float], None]
) -> Iterator[T | None]:
    """What `find` returns once no other process asks the question; None if the block must ask it and store the answer.

    `sleep` waits; it can raise to end the waiting.
    """
    while not answers.claim(model, question):
        if (found := find()) is not None:
            yield found
            return
        sleep(PAUSE)
    try:
        yield find()
    finally:
        answers.release(model, question)


_MARK = b"\n#"
_DIGITS = 8
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def pack_reply(reply: ChatReply) -> bytes:
    parts = ("text", "input_tokens", "output_tokens", "finish", "choices")
    kept = {part: value for part in parts if (value := getattr(reply, part)) is not None}
    packed = _write(kept).encode()
    return packed + _checksum(packed)


def unpack_reply(content: bytes) -> ChatReply | None:
    """A stored reply; None if it is damaged, so that the question is asked again.

    Earlier versions wrote no checksum. Their replies are used if every part has the right type.
    """
    packed, mark, _ = content.rpartition(_MARK)
    if mark and content != packed + _checksum(packed):
        return None
    try:
        reply = _find_reader().validate_json(packed if mark else content, strict=True)
    except ValidationError:
        return None
    counts = (reply.input_tokens or 0, reply.output_tokens or 0)
    if min(counts) < 0 or any(math.isnan(choice.logprob) for place in reply.choices or () for choice in place):
        return None
    return replace(reply, reused=True)


@cache
def _find_reader() -> TypeAdapter[ChatReply]:
    return TypeAdapter(ChatReply)


def _checksum(packed: bytes) -> bytes:
    return _MARK + f"{zlib.crc32(packed):0{_DIGITS}x}".encode("ascii")
