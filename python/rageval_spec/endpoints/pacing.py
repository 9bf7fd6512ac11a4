"""When a call may be made: so many at a time, so many a minute, not while the endpoint wants to be left alone."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from rageval_spec.data.chat import InterruptedCallError
from rageval_spec.endpoints.throttle import Throttle

SHORTEST, LONGEST = 0.2, 8.0
"""Seconds before the second try at most, and before any later one; they double in between, times a random share."""


class StoppedError(InterruptedCallError):
    """Nobody wants replies any longer."""


class Clock:
    """Time, and waiting that another thread can end."""

    def __init__(self) -> None:
        """Begin; nobody has stopped it."""
        self._stopped = threading.Event()

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            StoppedError: `stop` was called, before or meanwhile.
        """
        if self._stopped.wait(max(0.0, seconds)):
            raise StoppedError

    def stop(self) -> None:
        """End what sleeps, and let nothing sleep any more."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()


def draw_wait(tries: int, shortest: float = SHORTEST, longest: float = LONGEST) -> float:
    """Seconds to wait after so many tries: doubling, the second half of it by chance so that threads part."""
    return min(longest, shortest * 2.0 ** min(tries - 1, 32)) * random.uniform(0.5, 1.0)


class Slots:
    """Lets so many calls be under way at the same time. Those that wait are let through in the order they came."""

    def __init__(self, most: int) -> None:
        """All are free."""
        self._room = most
        self._taken = 0
        self._waiting: deque[threading.Event] = deque()
        self._stopped = False
        self._lock = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a free one, and hold it.

        Raises:
            StoppedError: `stop` was called.
        """
        self._wait()
        try:
            yield
        finally:
            with self._lock:
                self._taken -= 1
                self._let_in()

    def resize(self, room: int) -> None:
        """Let so many calls be under way from now on."""
        if room != self._room:
            with self._lock:
                self._room = room
                self._let_in()

    def stop(self) -> None:
        """End what waits."""
        with self._lock:
            self._stopped = True
            while self._waiting:
                self._waiting.popleft().set()

    def _wait(self) -> None:
        with self._lock:
            if self._stopped:
                raise StoppedError
            if not self._waiting and self._taken < self._room:
                self._taken += 1
                return
            turn = threading.Event()
            self._waiting.append(turn)
        turn.wait()
        if self._stopped:
            raise StoppedError

    def _let_in(self) -> None:
        """Give free slots to those that wait: one that has just ended a call must not come before them."""
        while self._waiting and self._taken < self._room and not self._stopped:
            self._taken += 1
            self._waiting.popleft().set()


class Pace:
    """Spaces calls so that no minute has more requests or tokens than are allowed, and no more than are taken.

    Each call begins at the earliest a minute's share after the one before it: `60 / requests_per_minute` seconds, and
    as long as that one's tokens last. Where the endpoint refuses calls, a `Throttle` finds the rate that it takes.
    """

    def __init__(
        self, clock: Clock, requests_per_minute: float | None, tokens_per_minute: float | None, at_once: int = 1
    ) -> None:
        """None is no limit; `at_once` is the most calls at the same time."""
        self._clock = clock
        self._seconds_a_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._seconds_a_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._next_request = self._next_token = self._not_before = 0.0
        self._throttle = Throttle(at_once)
        self._changed = threading.Condition()

    @property
    def room(self) -> int:
        """How many calls the endpoint takes at the same time."""
        return self._throttle.room

    @property
    def is_crowded(self) -> bool:
        """Whether the endpoint refuses so many calls that fewer are let through."""
        return self._throttle.is_crowded

    def has_refused_for(self, seconds: float) -> bool:
        """Whether the endpoint has taken nothing for so long, though it was asked."""
        return self._throttle.has_refused_for(seconds, self._clock.now())

    def wait(self, tokens: int) -> float:
        """Wait for the turn of a call that is expected to take so many tokens; gives the time at which it begins.

        Whoever has waited tells `record` what became of the call, whatever that is.

        Raises:
            StoppedError: the clock was stopped.
        """
        while True:
            with self._changed:
                while self._throttle.is_probing:
                    if self._clock.is_stopped:
                        raise StoppedError
                    self._changed.wait()
                now = self._clock.now()
                turn = self._throttle.reserve(now)
                begin = max(turn.begin, self._next_request, self._next_token, self._not_before)
                self._next_request = begin + self._seconds_a_request
                self._next_token = begin + tokens * self._seconds_a_token
            if (left := begin - now) > 0:
                self._clock.sleep(left)
            with self._changed:
                if self._not_before <= begin and self._throttle.admit(turn):
                    return begin

    def record(self, begun: float, *, refused: bool, wait: float | None = None) -> None:
        """What became of a call: whether it was refused with 429, and how long the endpoint asks to wait."""
        with self._changed:
            self._throttle.record(begun, self._clock.now(), refused=refused, wait=wait)
            if wait:
                self._not_before = max(self._not_before, self._clock.now() + wait)
            self._changed.notify_all()

    def correct(self, tokens: int) -> None:
        """So many tokens were used beyond what was expected; fewer where it is negative."""
        if self._seconds_a_token:
            with self._changed:
                self._next_token += tokens * self._seconds_a_token

    def hold(self, seconds: float) -> None:
        """Let no call begin for a while, because the endpoint asks for that."""
        with self._changed:
            self._not_before = max(self._not_before, self._clock.now() + seconds)

    def stop(self) -> None:
        """Wake what waits; the clock is stopped already."""
        with self._changed:
            self._changed.notify_all()


class Breaker:
    """Says when an endpoint is so broken that asking it is a waste: after `MOST` failures for good in a row.

    After `PAUSE` seconds one call is let through; if it goes well, all are again.
    """

    MOST = 10
    PAUSE = 10.0

    def __init__(self, clock: Clock) -> None:
        """Nothing has failed."""
        self._clock = clock
        self._failures = 0
        self._last = ""
        self._closed_until = 0.0
        self._lock = threading.Lock()

    def complain(self) -> str | None:
        """Why no call may be made now; None where one may, and then `record` must be told how it went."""
        if self._failures < self.MOST:
            return None
        with self._lock:
            now = self._clock.now()
            if self._failures < self.MOST:
                return None
            if now >= self._closed_until:
                self._closed_until = now + self.PAUSE
                return None
            return f"not asked after {self._failures} failed calls in a row; the last failure: {self._last}"

    def record(self, failure: str | None) -> None:
        """What a call failed of for good; None where it went well."""
        if failure is None and not self._failures:
            return
        with self._lock:
            if failure is None:
                self._failures = 0
                return
            self._failures += 1
            self._last = failure
            if self._failures >= self.MOST:
                self._closed_until = self._clock.now() + self.PAUSE
