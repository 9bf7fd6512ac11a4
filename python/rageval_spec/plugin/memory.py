"""What an evaluation knows of an object, such as what became of a model's questions, as long as both last."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Memory:
    """Remembers one thing an owner, from any number of threads."""

    def __init__(self) -> None:
        """Know nothing."""
        self._known: WeakKeyDictionary[object, Any] = WeakKeyDictionary()
        self._lock = Lock()

    def __len__(self) -> int:
        """How many owners are known and still there."""
        return len(self._known)

    def remember(self, owner: object, make: Callable[[], T]) -> T:
        """What `make` gave when first asked for this owner."""
        with self._lock:
            if owner not in self._known:
                self._known[owner] = make()
            known: T = self._known[owner]
            return known
