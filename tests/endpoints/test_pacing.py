from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.endpoints.pacing import LONGEST, SHORTEST, Breaker, Clock, Pace, Slots, StoppedError, draw_wait
from tests.models.chat_endpoint import QuickClock


def starts(pace: Pace, clock: QuickClock, tokens: list[int]) -> list[float]:
    """The times at which consecutive calls begin if each takes no time."""
    begun = []
    for count in tokens:
        pace.wait(count)
        begun.append(clock.now() - 1000)
    return begun


def test_without_limits_nothing_waits() -> None:
    clock = QuickClock()
    assert starts(Pace(clock, None, None), clock, [1000] * 50) == [0.0] * 50
    assert clock.slept == []


def test_requests_are_spaced_and_do_not_burst() -> None:
    clock = QuickClock()
    assert starts(Pace(clock, 120, None), clock, [1] * 4) == pytest.approx([0, 0.5, 1.0, 1.5])
    clock.time += 3600
    pace = Pace(clock, 120, None)
    begun = starts(pace, clock, [1] * 3)
    assert begun[2] - begun[0] == pytest.approx(1.0)  # an hour of silence saves nothing up


def test_calls_are_spaced_by_the_tokens_of_the_previous_call() -> None:
    clock = QuickClock()
    assert starts(Pace(clock, None, 600), clock, [10, 100, 1]) == pytest.approx([0, 1, 11])


def test_unused_tokens_are_returned() -> None:
    clock = QuickClock()
    pace = Pace(clock, None, 600)
    pace.wait(100)
    pace.correct(-50)
    pace.wait(1)
    assert clock.now() - 1000 == pytest.approx(5)


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=60),
    st.integers(1, 600),
    st.integers(100, 5000),
    st.lists(st.tuples(st.integers(0, 59), st.floats(0.1, 90)), max_size=3),
)
def test_no_minute_exceeds_the_limits(
    tokens: list[int], requests: int, tokens_a_minute: int, holds: list[tuple[int, float]]
) -> None:
    clock = QuickClock()
    pace = Pace(clock, requests, tokens_a_minute)
    begun: list[float] = []
    for number, count in enumerate(tokens):
        for when, seconds in holds:
            if when == number:
                pace.hold(seconds)
        pace.wait(count)
        begun.append(clock.now())
    for first, start in enumerate(begun):
        inside = [number for number in range(first, len(begun)) if begun[number] < start + 60 - 1e-6]
        assert len(inside) <= requests
        assert sum(tokens[number] for number in inside[:-1]) <= tokens_a_minute


def test_a_hold_applies_to_all_calls_even_waiting_ones() -> None:
    class Holding(QuickClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if len(self.slept) == 1:
                pace.hold(7)

    clock = Holding()
    pace = Pace(clock, 60, None)
    assert starts(pace, clock, [1, 1, 1]) == pytest.approx([0, 8, 9])


def test_waits_double_and_are_jittered() -> None:
    for tries, longest in [(1, SHORTEST), (2, 2 * SHORTEST), (4, 8 * SHORTEST), (60, LONGEST), (5000, LONGEST)]:
        waits = [draw_wait(tries) for _ in range(50)]
        assert all(longest / 2 <= wait <= longest for wait in waits)
        assert len(set(waits)) > 40


def test_a_stopped_clock_ends_sleep() -> None:
    clock = Clock()
    threading.Timer(0.01, clock.stop).start()
    with pytest.raises(StoppedError):
        clock.sleep(60)
    with pytest.raises(StoppedError):
        clock.sleep(0)


def test_slots_limit_the_calls_under_way() -> None:
    slots = Slots(2)
    entered = threading.Semaphore(0)
    leave = threading.Event()
    inside: list[int] = []

    def enter(number: int) -> None:
        with slots.take():
            inside.append(number)
            entered.release()
            leave.wait(10)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    assert entered.acquire(timeout=10)
    assert entered.acquire(timeout=10)
    assert len(inside) == 2
    leave.set()
    for thread in threads:
        thread.join(10)
    assert sorted(inside) == [0, 1, 2]


def test_free_slots_go_to_waiting_calls_in_order_and_only_as_many_as_there_are() -> None:
    slots = Slots(2)
    order: list[int] = []
    ends = [threading.Event() for _ in range(5)]
    entered = threading.Semaphore(0)

    def enter(number: int) -> None:
        with slots.take():
            order.append(number)
            entered.release()
            ends[number].wait(10)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(5)]
    for number, thread in enumerate(threads):
        thread.start()
        while len(order) + len(slots._waiting) <= number:
            pass
    slots.resize(1)
    ends[0].set()
    threads[0].join(10)
    assert sorted(order) == [0, 1]
    ends[1].set()
    for number in (2, 3, 4):
        ends[number].set()
        threads[number].join(10)
    assert order[2:] == [2, 3, 4]


def test_stopped_slots_let_no_call_through() -> None:
    slots = Slots(1)
    failures: list[BaseException] = []

    def enter() -> None:
        try:
            with slots.take():
                pass
        except StoppedError as error:
            failures.append(error)

    with slots.take():
        thread = threading.Thread(target=enter)
        thread.start()
        slots.stop()
        thread.join(10)
    assert len(failures) == 1


def test_the_breaker_opens_after_ten_failures_in_a_row() -> None:
    clock = QuickClock()
    breaker = Breaker(clock)
    for number in range(9):
        breaker.record(f"failure {number}")
    breaker.record(None)
    for number in range(9):
        breaker.record(f"failure {number}")
    assert breaker.complain() is None
    breaker.record("failure 9")
    assert breaker.complain() == "not asked after 10 failed calls in a row; the last failure: failure 9"


def test_an_open_breaker_lets_one_probe_through_and_closes_after_it_succeeds() -> None:
    clock = QuickClock()
    breaker = Breaker(clock)
    for _ in range(10):
        breaker.record("broken")
    clock.time += Breaker.PAUSE
    assert breaker.complain() is None  # the probe
    assert breaker.complain() is not None
    breaker.record("broken still")
    assert "11 failed calls in a row; the last failure: broken still" in (breaker.complain() or "")
    clock.time += Breaker.PAUSE
    assert breaker.complain() is None
    breaker.record(None)
    assert breaker.complain() is None
