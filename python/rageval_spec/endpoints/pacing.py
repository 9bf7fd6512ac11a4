"""Decides when a call may begin: limits calls at a time and per minute, and waits when the endpoint asks for it."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from rageval_spec.data.call_errors import InterruptedCallError
from rageval_spec.endpoints.throttle import Throttle

SHORTEST, LONGEST = 0.2, 8.0
"""The most seconds before the second try, and before any later one; in between they double, with random jitter."""


class StoppedError(InterruptedCallError):
    """The evaluation was stopped."""


class Clock:
    """The time, and sleep that another thread can end."""

    def __init__(self) -> None:
        """Start the clock."""
        self._stopped = threading.Event()

    def now(self) -> float:
        """Seconds since a fixed moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds.

        Raises:
            StoppedError: `stop` was called, before or during the wait.
        """
        if self._stopped.wait(max(0.0, seconds)):
            raise StoppedError

    def stop(self) -> None:
        """Wake all sleepers and let no other sleep."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()


def draw_wait(tries: int, shortest: float = SHORTEST, longest: float = LONGEST) -> float:
    """Seconds to wait after `tries` tries: doubling, with the second half random so that threads spread out."""
    return min(longest, shortest * 2.0 ** min(tries - 1, 32)) * random.uniform(0.5, 1.0)


class Slots:
    """Limits how many calls are under way at the same time. Waiting calls proceed in the order in which they came."""

    def __init__(self, most: int) -> None:
        """Create `most` slots, all free."""
        self._room = most
        self._taken = 0
        # Each waiting call acquires a lock of its own, which is released when its turn comes.
        self._waiting: deque[threading.Lock] = deque()
        self._stopped = False
        self._lock = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a free slot and hold it during the block.

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
        """Allow `room` calls under way from now on."""
        if room != self._room:
            with self._lock:
                self._room = room
                self._let_in()

    def stop(self) -> None:
        """Wake all waiting calls."""
        with self._lock:
            self._stopped = True
            while self._waiting:
                self._waiting.popleft().release()

    def _wait(self) -> None:
        with self._lock:
            if self._stopped:
                raise StoppedError
            if not self._waiting and self._taken < self._room:
                self._taken += 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()
        if self._stopped:
            raise StoppedError

    def _let_in(self) -> None:
        """Give free slots to waiting calls; a thread that has just ended a call must not overtake them."""
        while self._waiting and self._taken < self._room and not self._stopped:
            self._taken += 1
            self._waiting.popleft().release()


class Pace:
    """Spaces calls so that no minute exceeds the allowed requests or tokens, or what the endpoint accepts.

    Between the beginnings of two calls there are at least `60 / requests_per_minute` seconds and the time in which the
    first call's tokens become available again. If the endpoint refuses calls, a `Throttle` finds the rate that it
    accepts.
    """

    def __init__(
        self, clock: Clock, requests_per_minute: float | None, tokens_per_minute: float | None, at_once: int = 1
    ) -> None:
        """Create the pace; None stands for no limit, and `at_once` is the most calls at the same time."""
        self._clock = clock
        self._seconds_a_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._seconds_a_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._next_request = self._next_token = self._not_before = 0.0
        self._throttle = Throttle(at_once)
        self._changed = threading.Condition()

    @property
    def room(self) -> int:
        """How many calls the endpoint accepts at the same time."""
        return self._throttle.room

    @property
    def is_crowded(self) -> bool:
        """Whether calls are slowed down because the endpoint refuses many."""
        return self._throttle.is_crowded

    def has_refused_for(self, seconds: float) -> bool:
        """Whether the endpoint was asked for `seconds` and accepted no call."""
        return self._throttle.has_refused_for(seconds, self._clock.now())

    def wait(self, tokens: int) -> float:
        """Wait until a call that is expected to use `tokens` may begin; return the time at which it begins.

        The caller must pass the outcome of the call to `record`, whatever it is.

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
        """Record the outcome of a call: whether it was refused with 429, and how long the endpoint asks to wait."""
        with self._changed:
            self._throttle.record(begun, self._clock.now(), refused=refused, wait=wait)
            if wait:
                self._not_before = max(self._not_before, self._clock.now() + wait)
            self._changed.notify_all()

    def correct(self, tokens: int) -> None:
        """Record that a call used `tokens` more than expected; fewer if negative."""
        if self._seconds_a_token:
            with self._changed:
                self._next_token += tokens * self._seconds_a_token

    def hold(self, seconds: float) -> None:
        """Let no call begin for some seconds, because the endpoint asks for it."""
        with self._changed:
            self._not_before = max(self._not_before, self._clock.now() + seconds)

    def stop(self) -> None:
        """Wake all waiting calls; the clock must be stopped already."""
        with self._changed:
            self._changed.notify_all()


class Breaker:
    """Stops calls to a broken endpoint: after `MOST` calls in a row have failed for good.

    After `PAUSE` seconds it lets one call through. If that call succeeds, it lets all calls through again.
    """

    MOST = 10
    PAUSE = 10.0

    def __init__(self, clock: Clock) -> None:
        """Start without failures."""
        self._clock = clock
        self._failures = 0
        self._last = ""
        self._closed_until = 0.0
        self._lock = threading.Lock()

    def complain(self) -> str | None:
        """Why no call may be made now; None if one may, whose outcome must then be passed to `record`."""
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
        """Record why a call failed for good; None if it succeeded."""
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
