"""Facts that an evaluation keeps about an object, as long as both exist, such as the results of a model's questions."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Memory:
    """Remembers one value per owner; safe to use from several threads. An owner that is freed is forgotten."""

    def __init__(self) -> None:
        """Create an empty memory."""
        self._known: WeakKeyDictionary[object, Any] = WeakKeyDictionary()
        self._lock = Lock()

    def __len__(self) -> int:
        """How many owners have a value and still exist."""
        return len(self._known)

    def remember(self, owner: object, make: Callable[[], T]) -> T:
        """The owner's value; the first call for an owner makes it with `make`."""
        with self._lock:
            if owner not in self._known:
                self._known[owner] = make()
            known: T = self._known[owner]
            return known
