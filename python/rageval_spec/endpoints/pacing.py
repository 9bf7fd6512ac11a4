"""When a call may be made: so many at a time, so many a minute, not while the endpoint wants to be left alone."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SHORTEST, LONGEST = 0.2, 8.0
"""Seconds before the second try at most, and before any later one; they double in between, times a random share."""
TOO_MANY_REFUSALS = 0.25
"""The share of calls refused with 429 from which on fewer are made at the same time."""
MEMORY = 16
"""Calls after which one that was refused weighs about a third."""


class StoppedError(Exception):
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
    """Lets so many calls be under way at the same time, and fewer while the endpoint refuses many.

    A refusal now and then changes nothing. Where more than `TOO_MANY_REFUSALS` of the last calls were refused, half as
    many are let through; each call that goes well then makes room again, so that a whole round of them adds one.
    """

    def __init__(self, most: int) -> None:
        """All are free."""
        self._most = most
        self._room = float(most)
        self._taken = 0
        self._refusals = 0.0
        self._stopped = False
        self._changed = threading.Condition()

    @property
    def room(self) -> int:
        """How many may be under way now."""
        return int(self._room)

    @property
    def is_crowded(self) -> bool:
        """Whether the endpoint has refused so many calls lately that fewer are let through."""
        return self._room < self._most or self._refusals > TOO_MANY_REFUSALS

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a free one, and hold it.

        Raises:
            StoppedError: `stop` was called.
        """
        with self._changed:
            while self._taken >= int(self._room) and not self._stopped:
                self._changed.wait()
            if self._stopped:
                raise StoppedError
            self._taken += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._changed.notify()

    def record(self, *, refused: bool) -> None:
        """Say how a call went."""
        with self._changed:
            self._refusals += (refused - self._refusals) / MEMORY
            if refused and self._refusals > TOO_MANY_REFUSALS:
                self._room = max(1.0, self._room / 2)
                self._refusals /= 2
            elif not refused and self._room < self._most:
                self._room = min(float(self._most), self._room + 1 / self._room)
                self._changed.notify()

    def stop(self) -> None:
        """End what waits."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class Pace:
    """Spaces calls so that no minute has more requests or tokens than are allowed, not even the first.

    Each call begins at the earliest a minute's share after the one before it: `60 / requests_per_minute` seconds, and
    as long as that one's tokens last.
    """

    def __init__(self, clock: Clock, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        """None is no limit."""
        self._clock = clock
        self._seconds_a_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._seconds_a_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._next_request = self._next_token = self._not_before = 0.0
        self._lock = threading.Lock()

    def wait(self, tokens: int) -> None:
        """Wait for the turn of a call that is expected to take so many tokens.

        Raises:
            StoppedError: the clock was stopped.
        """
        while True:
            with self._lock:
                begin = max(self._clock.now(), self._next_request, self._next_token, self._not_before)
                self._next_request = begin + self._seconds_a_request
                self._next_token = begin + tokens * self._seconds_a_token
            if (left := begin - self._clock.now()) > 0:
                self._clock.sleep(left)
            if self._not_before <= begin:
                return

    def correct(self, tokens: int) -> None:
        """So many tokens were used beyond what was expected; fewer where it is negative."""
        if self._seconds_a_token:
            with self._lock:
                self._next_token += tokens * self._seconds_a_token

    def hold(self, seconds: float) -> None:
        """Let no call begin for a while, because the endpoint asks for that."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock.now() + seconds)


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
            return f"not asked, because {self._failures} calls in a row failed, the last one so: {self._last}"

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
