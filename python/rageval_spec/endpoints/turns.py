"""Lets threads take turns with equal questions to a model, and passes on what the first one learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rageval_spec.data.assessment import Failed
    from rageval_spec.data.chat import ChatReply


class Turns:
    """Lets only one thread at a time ask the same question of one model.

    The next thread that asks the question finds its reply in the store. Turns only remember what the store does not
    have: failures, and replies to questions that were asked again although the store had a reply.
    """

    def __init__(self) -> None:
        """Start without questions."""
        self._lock = Lock()
        self._under_way: dict[bytes, _Turn] = {}
        self._known: dict[bytes, ChatReply | Failed] = {}

    @contextmanager
    def take_turn(self, digest: bytes) -> Iterator[ChatReply | Failed | None]:
        """Wait until no other thread asks a question; give its reply or failure, or None if this thread must ask it."""
        mine = _Turn()
        with mine.lock:
            while (known := self._begin(digest, mine)) is not None:
                if not isinstance(known, _Turn):
                    yield known
                    return
                with known.lock:
                    pass  # the question was asked
            try:
                yield None
            finally:
                with self._lock:
                    del self._under_way[digest]

    def keep(self, digest: bytes, known: ChatReply | Failed) -> None:
        """Remember a reply or failure for the next thread that asks this question."""
        with self._lock:
            self._known[digest] = known

    def _begin(self, digest: bytes, mine: _Turn) -> ChatReply | Failed | _Turn | None:
        """The reply or failure, or the turn to wait for; None if this thread has taken the turn."""
        with self._lock:
            known = self._known.get(digest) or self._under_way.get(digest)
            if known is None:
                self._under_way[digest] = mine
            return known


class _Turn:
    """A question under way; the thread that asks it holds the lock."""

    def __init__(self) -> None:
        self.lock = Lock()
