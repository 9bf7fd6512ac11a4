"""Thread pools whose results the main thread can wait for without blocking Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE = 0.2
"""The longest time, in seconds, before a waiting main thread notices an interrupt."""


def map_in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int, name: str = "rageval"
) -> Iterator[Result]:
    """Call `function` for each item in `workers` threads, and yield the results in the order of the items.

    The first exception, in that order, is raised. When an exception is raised, or the caller stops reading, items that
    have not started are cancelled, and running ones are not waited for. `name` is the prefix of the thread names.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
    try:
        for future in [pool.submit(function, item) for item in items]:
            yield wait_for(future)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def wait_for(future: Future[Result]) -> Result:
    """A future's result, or its exception; an interrupt of the main thread is raised within `PATIENCE` seconds."""
    while not wait([future], timeout=PATIENCE).done:
        pass  # an interrupt that arrives just before a wait does not end it, but is seen before the next wait
    return future.result()
