"""The throttle against limiters of all kinds, in a simulation whose seconds cost nothing."""

from __future__ import annotations

import heapq
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.endpoints.pacing import (
    LONGEST,
    LONGEST_PAUSE,
    SHORTEST,
    Breaker,
    CallPace,
    Clock,
    Slots,
    StoppedError,
    Throttle,
    Turn,
    draw_wait,
)
from tests.models.chat_endpoint import QuickClock


def starts(pace: CallPace, clock: QuickClock, tokens: list[int]) -> list[float]:
    """The times at which consecutive calls begin if each takes no time."""
    begun = []
    for needed in tokens:
        pace.wait(needed)
        begun.append(clock.now() - 1000)
    return begun


def test_without_limits_nothing_waits() -> None:
    clock = QuickClock()
    assert starts(CallPace(clock, None, None), clock, [1000] * 50) == [0.0] * 50
    assert clock.slept == []


def test_requests_are_spaced_and_do_not_burst() -> None:
    clock = QuickClock()
    assert starts(CallPace(clock, 120, None), clock, [1] * 4) == pytest.approx([0, 0.5, 1.0, 1.5])
    clock.time += 3600
    pace = CallPace(clock, 120, None)
    begun = starts(pace, clock, [1] * 3)
    assert begun[2] - begun[0] == pytest.approx(1.0)  # an hour of silence saves nothing up


def test_calls_are_spaced_by_the_tokens_of_the_previous_call() -> None:
    clock = QuickClock()
    assert starts(CallPace(clock, None, 600), clock, [10, 100, 1]) == pytest.approx([0, 1, 11])


def test_unused_tokens_are_returned() -> None:
    clock = QuickClock()
    pace = CallPace(clock, None, 600)
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
    pace = CallPace(clock, requests, tokens_a_minute)
    begun: list[float] = []
    for number, needed in enumerate(tokens):
        for when, seconds in holds:
            if when == number:
                pace.record(clock.now(), refused=False, wait=seconds)
        pace.wait(needed)
        begun.append(clock.now())
    for first, start in enumerate(begun):
        inside = [number for number in range(first, len(begun)) if begun[number] < start + 60 - 1e-6]
        assert len(inside) <= requests
        assert sum(tokens[number] for number in inside[:-1]) <= tokens_a_minute


def test_a_wait_that_one_call_is_told_applies_to_all_calls_even_waiting_ones() -> None:
    class Holding(QuickClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if len(self.slept) == 1:
                pace.record(self.now(), refused=False, wait=7)

    clock = Holding()
    pace = CallPace(clock, 60, None)
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


class Limiter(Protocol):
    def take(self, now: float) -> bool: ...


@dataclass
class FixedWindow:
    """Allows a number of calls in each fixed period."""

    most: int
    seconds: float
    window: int = -1
    taken: int = 0

    def take(self, now: float) -> bool:
        if int(now / self.seconds) != self.window:
            self.window, self.taken = int(now / self.seconds), 0
        self.taken += 1
        return self.taken <= self.most


class SlidingWindow:
    """Allows a number of calls in any sliding period."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        self.times: deque[float] = deque()

    def take(self, now: float) -> bool:
        while self.times and self.times[0] <= now - self.seconds:
            self.times.popleft()
        if len(self.times) < self.most:
            self.times.append(now)
            return True
        return False


@dataclass
class Bucket:
    """A token bucket: allows a number of calls per second, and saves some up."""

    rate: float
    most: float
    filled: float = 0.0
    last: float = 0.0

    def __post_init__(self) -> None:
        self.filled = self.most

    def take(self, now: float) -> bool:
        self.filled = min(self.most, self.filled + (now - self.last) * self.rate)
        self.last = now
        if self.filled < 1:
            return False
        self.filled -= 1
        return True


@dataclass
class Chance:
    """Refuses at random."""

    share: float

    def take(self, now: float) -> bool:
        return random.random() >= self.share


@dataclass
class Run:
    answers: int = 0
    refused: int = 0
    seconds: float = 0.0

    @property
    def share(self) -> float:
        return self.refused / (self.refused + self.answers)


def simulate(limiter: Limiter, concurrency: int, latency: float, calls: int = 1213) -> Run:
    """Make a number of calls, each retried until it is answered."""
    random.seed(5)
    throttle, run, number = Throttle(concurrency), Run(), count()
    events: list[tuple[float, int, str, tuple[float, bool], Turn | None]] = []
    waiting = under_way = 0
    left = calls

    def schedule(time: float, what: str, told: tuple[float, bool] = (0.0, False), turn: Turn | None = None) -> None:
        heapq.heappush(events, (time, next(number), what, told, turn))

    def begin(now: float) -> None:
        nonlocal waiting, under_way, left
        while (waiting or left) and under_way < throttle.room:
            waiting, left = (waiting - 1, left) if waiting else (waiting, left - 1)
            under_way += 1
            schedule(now, "reserve")

    begin(0.0)
    while events:
        now, _, what, (begun, refused), turn = heapq.heappop(events)
        if what == "reserve":
            # While one call probes, the others check again soon; real threads wait for the end of the probe.
            if throttle.is_probing:
                schedule(now + 0.02, "reserve")
            else:
                turn = throttle.reserve(now)
                schedule(turn.begin, "admit", turn=turn)
        elif what == "admit" and turn is not None:
            if throttle.admit(turn):
                is_refused = not limiter.take(now)
                taken = min(latency, 0.03) if is_refused else latency * random.uniform(0.5, 1.5)
                schedule(now + taken, "end", (now, is_refused))
            else:
                schedule(now, "reserve")
        elif what == "end":
            under_way -= 1
            throttle.record(begun, now, refused=refused)
            run.refused += refused
            run.answers += not refused
            run.seconds = now
            if refused:
                schedule(now + random.uniform(0.1, 0.4), "again")
        else:
            waiting += 1
        begin(now)
    return run


LIMITERS: list[tuple[str, Callable[[], Limiter], float]] = [
    ("300 in each minute", lambda: FixedWindow(300, 60), 243),
    ("300 in any minute", lambda: SlidingWindow(300, 60), 243),
    ("5 a second, 300 saved up", lambda: Bucket(5, 300), 183),
    ("5 a second, 5 saved up", lambda: Bucket(5, 5), 243),
    ("50 a second", lambda: Bucket(50, 50), 24),
]


@pytest.mark.parametrize("latency", [0.05, 0.5])
@pytest.mark.parametrize(
    ("limiter", "ideal"), [(make, ideal) for _, make, ideal in LIMITERS], ids=[n for n, *_ in LIMITERS]
)
def test_under_a_tenth_of_the_calls_are_refused_and_little_time_is_lost(
    limiter: Callable[[], Limiter], ideal: float, latency: float
) -> None:
    run = simulate(limiter(), 16, latency)
    assert run.answers == 1213
    assert run.share < 0.1
    assert run.seconds < 1.25 * max(ideal, 1213 * latency / 16)


def test_occasional_refusals_do_not_slow_calls_down() -> None:
    run = simulate(Chance(0.05), 16, 0.5)
    assert run.seconds < 1.15 * 1213 * 0.5 / 16


def test_without_refusals_nothing_waits() -> None:
    throttle = Throttle(4)
    for _ in range(50):
        turn = throttle.reserve(7.0)
        assert (turn.begin, throttle.admit(turn)) == (7.0, True)
        throttle.record(7.0, 7.0, refused=False)
    assert (throttle.room, throttle.rate, throttle.is_crowded) == (4, float("inf"), False)


def refuse_all(throttle: Throttle, now: float, times: int) -> None:
    for _ in range(times):
        throttle.record(throttle.reserve(now).begin, now, refused=True)


def test_one_call_probes_with_pauses_that_double() -> None:
    throttle, now, pauses = Throttle(16), 0.0, []
    refuse_all(throttle, now, 5)
    for _ in range(7):
        turn = throttle.reserve(now)
        pauses.append(turn.begin - now)
        now = turn.begin
        assert throttle.admit(turn)
        assert not throttle.admit(throttle.reserve(now))  # no other call
        throttle.record(now, now, refused=True)
    assert pauses == [0.5, 1, 2, 4, 8, LONGEST_PAUSE, LONGEST_PAUSE]


def test_after_a_successful_probe_calls_continue_at_the_accepted_rate() -> None:
    throttle = Throttle(16)
    for number in range(300):
        throttle.record(throttle.reserve(number / 100).begin, number / 100, refused=False)
    refuse_all(throttle, 3.0, 5)
    turn = throttle.reserve(59.5)
    assert throttle.admit(turn)
    throttle.record(turn.begin, 60.0, refused=False)
    assert 4.7 < throttle.rate < 5.1
    first, second = throttle.reserve(60.0), throttle.reserve(60.0)
    assert 0.19 < second.begin - first.begin < 0.22


def test_the_throttle_knows_how_long_an_endpoint_has_refused_everything() -> None:
    throttle = Throttle(16)
    refuse_all(throttle, 10.0, 1)
    refuse_all(throttle, 70.0, 1)
    assert throttle.has_refused_for(60, 70.0)
    assert not throttle.has_refused_for(61, 70.0)
    throttle.record(70.0, 71.0, refused=False)
    assert not throttle.has_refused_for(1, 500.0)


def test_the_number_of_calls_at_the_same_time_shrinks_and_grows() -> None:
    throttle, now = Throttle(16), 0.0
    for _ in range(30):
        refuse_all(throttle, now, 5)
        turn = throttle.reserve(now)
        throttle.admit(turn)
        now = turn.begin
        throttle.record(now, now, refused=False)
    assert throttle.room < 4
    for number in range(400):
        throttle.record(throttle.reserve(now + number).begin, now + number, refused=False)
    assert throttle.room == 16
