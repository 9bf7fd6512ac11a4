from __future__ import annotations

import sys
import threading
from concurrent.futures import wait

import pytest

from rageval_spec.functions.workers import ExitCallError, Workers, call_async, finish, is_async


async def leave(code: int) -> None:
    sys.exit(code)


async def double(number: int) -> int:
    return 2 * number


def test_sequential_calls_are_made_in_one_thread() -> None:
    workers = Workers()
    threads = {workers.submit(threading.get_ident).result() for _ in range(5)}
    assert len(threads) == 1


def test_concurrent_calls_do_not_wait_for_one_another() -> None:
    workers, barrier = Workers(), threading.Barrier(3)
    futures = [workers.submit(lambda: barrier.wait(timeout=30)) for _ in range(3)]
    assert not wait(futures, 60).not_done


def test_a_call_that_exits_has_failed_and_its_thread_goes_on() -> None:
    workers = Workers()
    with pytest.raises(ExitCallError, match=r"called sys\.exit\(0\); it must return or raise an exception"):
        workers.submit(lambda: sys.exit(0)).result()
    assert workers.submit(lambda: 7).result() == 7


def test_an_async_call_that_exits_has_failed_and_the_loop_goes_on() -> None:
    with pytest.raises(ExitCallError, match=r"called sys\.exit\(3\)"):
        call_async(leave, {"code": 3}).result(timeout=60)
    assert call_async(double, {"number": 4}).result(timeout=60) == 8


def test_an_awaitable_returned_by_a_sync_function_is_awaited() -> None:
    assert finish(double(5)) == 10
    assert finish("text") == "text"
    with pytest.raises(ExitCallError):
        finish(leave(1))


def test_objects_may_be_async() -> None:
    class Asking:
        async def __call__(self) -> None:
            """Ask."""

    assert is_async(double)
    assert is_async(Asking())
    assert not is_async(len)
