from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Future

import pytest

from rageval_spec.threads import PATIENCE, map_in_threads, wait_for


def test_results_come_in_the_order_of_the_items() -> None:
    def slow_first(number: int) -> int:
        time.sleep(0.02 if number == 0 else 0)
        return number * number

    assert list(map_in_threads(slow_first, range(9), 3)) == [number * number for number in range(9)]


def test_threads_are_named() -> None:
    names = set(map_in_threads(lambda _: threading.current_thread().name, range(4), 2, "metric"))
    assert all(name.startswith("metric") for name in names)


def test_items_that_have_not_started_when_the_caller_stops_never_do() -> None:
    release, started = threading.Event(), set[int]()

    def work(number: int) -> int:
        started.add(number)
        if number:
            release.wait(10)
        return number

    results = map_in_threads(work, range(50), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    release.set()
    assert len(started) <= 3


def test_an_interrupt_ends_the_wait_for_a_result_that_never_comes() -> None:
    assert PATIENCE <= 0.2
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        wait_for(Future[None]())


def test_an_exception_is_raised() -> None:
    failed = Future[None]()
    failed.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        wait_for(failed)
