"""Asks a question unless another process asks it just now, whose answer is then waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rageval_spec.plugin import Answers

T = TypeVar("T")

PAUSE = 0.05
"""Seconds after which is looked again whether another process has its answer."""


@contextmanager
def hold_claim(
    answers: Answers, model: str, question: bytes, find: Callable[[], T | None], sleep: Callable[[float], None]
) -> Iterator[T | None]:
    """What `find` finds, once no other process asks the question; None where it is to be asked, and kept, in the block.

    `sleep` lets time pass; it may raise to end the waiting.
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
