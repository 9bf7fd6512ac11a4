"""Lets only one process at a time ask a question; other processes wait for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rageval_spec.plugin import Answers

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
