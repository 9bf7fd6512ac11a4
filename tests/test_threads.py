from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from rageval_spec.endpoints.pacing import Slots, StoppedError
from rageval_spec.threads import PATIENCE, Floor, map_in_threads, wait_for


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


def run_together(*works: Callable[[], object]) -> None:
    """Run each in a thread of its own until all have ended, which must not take long."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_of_threads_that_take_the_floor_one_works_at_a_time() -> None:
    floor, room, working, most = Floor(), Slots(8), list[int](), list[int]()

    def work() -> None:
        with floor.joined(room):
            for _ in range(20):
                working.append(1)
                most.append(len(working))
                time.sleep(0.0005)
                working.pop()
                with floor.left():
                    pass

    run_together(*[work] * 8)
    assert len(most) == 160
    if floor._epoll is not None:
        assert set(most) == {1}


def test_the_floor_goes_to_the_thread_whose_reply_has_come() -> None:
    floor, room, said = Floor(), Slots(4), list[str]()
    pairs = {name: socket.socketpair() for name in ("first", "second")}

    def listen(name: str) -> None:
        mine = pairs[name][0]
        with floor.joined(room):
            floor.wait_to_read(mine.fileno(), time.monotonic() + 10)
            said.append(f"{name} {mine.recv(9).decode()}")
            if name == "second":
                pairs["first"][1].send(b"reply")

    threads = [threading.Thread(target=listen, args=(name,), daemon=True) for name in pairs]
    for thread in threads:
        thread.start()
    pairs["second"][1].send(b"reply")
    for thread in threads:
        thread.join(10)
    for mine, other in pairs.values():
        mine.close()
        other.close()
    assert said == ["second reply", "first reply"]


def test_a_wait_for_a_reply_ends_when_its_time_is_over() -> None:
    floor, (mine, other) = Floor(), socket.socketpair()
    with mine, other, floor.joined(Slots(1)):
        floor.wait_to_read(mine.fileno(), time.monotonic() + 0.01)
        mine.setblocking(False)
        if floor._epoll is not None:
            with pytest.raises(BlockingIOError):
                mine.recv(1)


def test_a_thread_that_waits_with_the_floor_stops_no_other() -> None:
    floor, room, released = Floor(), Slots(2), threading.Event()

    def forget_to_leave() -> None:
        with floor.joined(room):
            assert released.wait(10)

    def release() -> None:
        with floor.joined(room):
            released.set()

    run_together(forget_to_leave, release)


def test_a_thread_that_rests_makes_room_and_goes_on_before_those_that_have_not_begun() -> None:
    floor, room, said = Floor(), Slots(1), list[str]()
    rests, has_begun = threading.Event(), threading.Event()

    def rest() -> None:
        with floor.joined(room):
            with floor.rested():
                rests.set()
                assert has_begun.wait(10)
            said.append("rested")

    def work(name: str) -> None:
        assert rests.wait(10)
        with floor.joined(room):
            has_begun.set()
            while not (room.is_wanted or said):
                time.sleep(0.001)
            floor.give_way()
            said.append(name)

    run_together(rest, *[lambda name=name: work(name) for name in "ab"])
    assert said[0] == "rested"
    assert sorted(said[1:]) == ["a", "b"]


def test_threads_on_the_floor_leave_the_interpreters_switch_interval_as_it_was() -> None:
    before, floor = sys.getswitchinterval(), Floor()
    with floor.joined(Slots(2)):
        assert sys.getswitchinterval() < before
        with floor.joined(Slots(2)):
            pass
        assert sys.getswitchinterval() < before
    assert sys.getswitchinterval() == before


def test_a_room_that_closes_during_a_rest_is_left_once() -> None:
    floor, room = Floor(), Slots(2)
    with pytest.raises(StoppedError), floor.joined(room), floor.rested():
        room.stop()
    assert room._taken == 0
