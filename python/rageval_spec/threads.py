"""Threads whose results the main thread waits for without missing Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE = 0.2
"""Seconds after which a waiting main thread notices an interrupt at the latest."""


def map_in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int, name: str = "rageval"
) -> Iterator[Result]:
    """The function's results in the order of the items, computed by so many threads at the same time.

    The first exception in that order comes out. Items that have not started when an exception comes out, or when the
    caller stops reading, never start; those under way are not waited for. `name` begins the names of the threads.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
    try:
        for future in [pool.submit(function, item) for item in items]:
            yield wait_for(future)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def wait_for(future: Future[Result]) -> Result:
    """A future's result, or its exception; an interrupt of the main thread comes out within `PATIENCE`."""
    while not wait([future], timeout=PATIENCE).done:
        pass  # an interrupt that comes just before a wait does not end it: it is seen before the next one
    return future.result()
