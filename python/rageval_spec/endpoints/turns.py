"""Turns of those who ask a model the same question in one evaluation, and what the first of them learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock

from rageval_spec.data.assessment import Failed
from rageval_spec.data.chat import ChatReply


class Turns:
    """Lets equal questions to one model be asked one after the other, from any number of threads.

    What a question comes to is found again in the store by whoever asks it next. Kept here is only what is not: what
    failed, and replies to what was asked anew though the store had some.
    """

    def __init__(self) -> None:
        """Nothing was asked."""
        self._lock = Lock()
        self._under_way: dict[bytes, Event] = {}
        self._known: dict[bytes, ChatReply | Failed] = {}

    @contextmanager
    def take_turn(self, digest: bytes) -> Iterator[ChatReply | Failed | None]:
        """Wait until nobody asks a question; gives what is known of it, None where it has to be asked."""
        mine = Event()
        while (known := self._begin(digest, mine)) is not None:
            if not isinstance(known, Event):
                yield known
                return
            known.wait()
        try:
            yield None
        finally:
            with self._lock:
                del self._under_way[digest]
            mine.set()

    def keep(self, digest: bytes, known: ChatReply | Failed) -> None:
        """What whoever asks this question next is given."""
        with self._lock:
            self._known[digest] = known

    def _begin(self, digest: bytes, mine: Event) -> ChatReply | Failed | Event | None:
        """What is known, or the end to be waited for; with neither, the turn is taken."""
        with self._lock:
            known = self._known.get(digest) or self._under_way.get(digest)
            if known is None:
                self._under_way[digest] = mine
            return known
