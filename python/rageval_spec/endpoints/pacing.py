"""Decides when a call may begin, and adapts to an endpoint that refuses calls with 429.

Calls are limited at a time and per minute, and wait when the endpoint asks for it.

After 429, the rate follows additive increase and multiplicative decrease. Few endpoints say which limit they have:
calls in a fixed or sliding window, a token bucket, or calls at the same time. So the throttle finds the rate by
trial. If many calls are refused, all calls wait, and one call probes whether the endpoint accepts calls again, with
pauses that double. After a successful probe, calls continue at the average rate that the endpoint has accepted,
including the time of refusals, and the rate grows from there.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rageval_spec.data.chat import InterruptedCallError
from rageval_spec.threads import Waiter, floor

SHORTEST, LONGEST = 0.2, 8.0
"""The most seconds before the second try, and before any later one; in between they double, with random jitter."""


class StoppedError(InterruptedCallError):
    """The evaluation was stopped."""


class Clock:
    """The time, and sleep that another thread can end."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds; raises `StoppedError` if `stop` was called, before or during the wait."""
        with floor.rested():
            is_stopped = self._stopped.wait(max(0.0, seconds))
        if is_stopped:
            raise StoppedError

    def stop(self) -> None:
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()


def double_wait(tries: int, shortest: float, longest: float) -> float:
    """Seconds to wait after `tries` tries: the shortest wait after the first one, then twice as long each time."""
    return min(longest, shortest * 2.0 ** min(tries - 1, 32))


def draw_wait(tries: int, shortest: float = SHORTEST, longest: float = LONGEST) -> float:
    """As `double_wait`, with the second half random so that threads spread out."""
    return double_wait(tries, shortest, longest) * random.uniform(0.5, 1.0)


class Slots:
    """Limits how many calls are under way at the same time. Waiting calls proceed in the order in which they came."""

    def __init__(self, most: int) -> None:
        self._room = most
        self._taken = 0
        self._waiting: deque[Waiter] = deque()
        self._again = 0
        self._stopped = False
        self._lock = threading.Lock()

    @contextmanager
    def take(self, tokens: int = 0) -> Iterator[None]:  # noqa: ARG002 - for slots that wait for the pace, too
        """Wait for a free slot and hold it during the block; raises `StoppedError` if `stop` was called."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def resize(self, room: int) -> None:
        if room != self._room:
            with self._lock:
                self._room = room
                self._let_in()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            while self._waiting:
                self._waiting.popleft().release()

    @property
    def is_wanted(self) -> bool:
        """Whether a thread waits for a slot that had one before."""
        return self._again > 0

    def enter(self, *, again: bool = False) -> None:
        """Wait for a free slot and hold it until `leave`; who had one before goes first."""
        with self._lock:
            if self._stopped:
                raise StoppedError
            if not self._waiting and self._taken < self._room:
                self._taken += 1
                return
            turn = Waiter(floor)
            (self._waiting.appendleft if again else self._waiting.append)(turn)
            self._again += again
        turn.wait()
        if again:
            with self._lock:
                self._again -= 1
        if self._stopped:
            raise StoppedError

    def leave(self) -> None:
        with self._lock:
            self._taken -= 1
            self._let_in()

    def _let_in(self) -> None:
        """Give free slots to waiting calls; a thread that has just ended a call must not overtake them."""
        while self._waiting and self._taken < self._room and not self._stopped:
            self._taken += 1
            self._waiting.popleft().release()


class CallPace:
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
        self.throttle = Throttle(at_once)
        self._changed = threading.Condition()

    def wait(self, tokens: int) -> float:
        """Wait until a call that is expected to use `tokens` may begin; return the time at which it begins.

        The caller must pass the outcome of the call to `record`, whatever it is.
        """
        while True:
            if self.throttle.is_probing:
                self._wait_for_probe()
            with self._changed:
                now = self._clock.now()
                turn = self.throttle.reserve(now)
                begin = max(turn.begin, self._next_request, self._next_token, self._not_before)
                self._next_request = begin + self._seconds_a_request
                self._next_token = begin + tokens * self._seconds_a_token
            if (left := begin - now) > 0:
                self._clock.sleep(left)
            with self._changed:
                if self._not_before <= begin and self.throttle.admit(turn):
                    return begin

    def _wait_for_probe(self) -> None:
        with floor.rested(), self._changed:
            while self.throttle.is_probing:
                if self._clock.is_stopped:
                    raise StoppedError
                self._changed.wait()

    def record(self, begun: float, *, refused: bool, wait: float | None = None) -> None:
        """Record the outcome of a call: whether it was refused with 429, and how long the endpoint asks to wait."""
        with self._changed:
            self.throttle.record(begun, self._clock.now(), refused=refused, wait=wait)
            if wait:
                self._not_before = max(self._not_before, self._clock.now() + wait)
            self._changed.notify_all()

    def correct(self, tokens: int) -> None:
        if self._seconds_a_token:
            with self._changed:
                self._next_token += tokens * self._seconds_a_token

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


FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds before the first probe, and the most seconds before any later one."""
CROWDED, CROWDED_WHERE_LIMITED = 0.25, 0.08
"""The share of refused calls above which calls are slowed down: before there is a rate, and after."""
MEMORY, MEMORY_WHERE_LIMITED = 16, 50
"""Calls after which the weight of a refusal has fallen to about a third, in the same two cases."""
IN_A_ROW = 3
"""Consecutive refusals that also end a rate."""
CUT = 0.8
"""The factor by which a rate that was too high is reduced."""
CUT_AT_ONCE = 0.75
"""The factor by which the calls at the same time are reduced."""
CAUTION = 0.95
"""The next rate as a share of the rate that the endpoint was seen to accept."""
SLOW, FAST = 80.0, 6.0
"""Time constants, in seconds, of a rate's growth: normally, and after `CALM` seconds without a refusal."""
CALM = 20.0
_UNLIMITED = 20.0
"""Calls per second for each call at the same time; a rate above this is not a limit."""
_LOWEST = 0.05


class Turn(NamedTuple):
    """The earliest time at which a call may begin, and after how many openings and closings that was decided."""

    begin: float
    version: int


class Throttle:
    """Decides from the outcomes of earlier calls when calls may begin, and how many at the same time.

    Not safe for threads: callers that share a throttle must hold a lock. Times are seconds of any clock.

    Attributes:
        rate: the calls per second that may begin now; infinite if there is no limit.
        is_probing: whether one call is probing whether others may begin.
    """

    def __init__(self, most: int) -> None:
        """Start with no limit except `most` calls at the same time."""
        self._most = most
        self._room = float(most)
        self.rate = math.inf
        self._next = self._not_before = self._cut = -math.inf
        self._pause = FIRST_PAUSE
        self._is_open = True
        self.is_probing = False
        self._probed = -math.inf
        self._refusals = 0.0
        self._in_a_row = 0
        self._cuts = 0
        self._version = 0
        self._taken = 0
        self._counted_since: float | None = None
        self._grown = 0.0
        self._refusing_since: float | None = None

    @property
    def room(self) -> int:
        return int(self._room)

    @property
    def is_crowded(self) -> bool:
        """Whether calls are slowed down because the endpoint refused many lately."""
        return not math.isinf(self.rate) or self._room < self._most or self._refusals > CROWDED

    def has_refused_for(self, seconds: float, now: float) -> bool:
        refusing = self.count_refusing(now)
        return refusing is not None and refusing >= seconds

    def count_refusing(self, now: float) -> float | None:
        """The seconds since the endpoint began to refuse every call; None if it accepts some."""
        return None if self._refusing_since is None else now - self._refusing_since

    def reserve(self, now: float) -> Turn:
        if self._counted_since is None:
            self._counted_since = now
        begin = max(now, self._next, self._not_before)
        self._next = begin + (0.0 if math.isinf(self.rate) else 1 / self.rate)
        return Turn(begin, self._version)

    def admit(self, turn: Turn) -> bool:
        """Whether a call may begin when its turn has come; if not, it must reserve again. True for the probe."""
        if turn.version != self._version or self.is_probing:
            return False
        self.is_probing = not self._is_open
        self._probed = turn.begin
        return True

    def record(self, begun: float, now: float, *, refused: bool, wait: float | None = None) -> None:
        """Record the outcome of a call that began at `begun`; `wait` is how many seconds the endpoint asks to wait."""
        is_late = begun >= self._not_before
        if self.is_probing and begun >= self._probed:
            self.is_probing = False
        memory = max(MEMORY, self._most) if math.isinf(self.rate) else MEMORY_WHERE_LIMITED
        self._refusals += (refused - self._refusals) / memory
        if refused:
            self._take_refusal(begun, now, wait)
        else:
            self._take_success(now, is_late=is_late)

    def _take_success(self, now: float, *, is_late: bool) -> None:
        self._taken += 1
        self._in_a_row = 0
        self._refusing_since = None
        self._room = min(float(self._most), self._room + 1 / self._room)
        if not is_late:
            return
        if not self._is_open:
            self._open(now)
        elif not math.isinf(self.rate):
            self._grow(now)

    def _open(self, now: float) -> None:
        """Let calls through, no faster than the endpoint accepted them since the throttle was last opened."""
        since = now if self._counted_since is None else self._counted_since
        seen = self._taken / max(now - since, 1e-3)
        self.rate = max(_LOWEST, min(self.rate, CAUTION * seen))
        self._is_open, self._pause = True, FIRST_PAUSE
        self._version += 1
        self._taken, self._counted_since = 0, now
        self._grown = self._next = now

    def _grow(self, now: float) -> None:
        is_fast = self._cuts == 1 or now - self._cut > CALM
        seconds = min(1 / self.rate, now - self._grown)
        self.rate *= 1 + seconds / (FAST if is_fast else SLOW)
        self._grown = now
        if self.rate > _UNLIMITED * self._most:
            self.rate, self._refusals = math.inf, 0.0

    def _take_refusal(self, begun: float, now: float, wait: float | None) -> None:
        if self._refusing_since is None:
            self._refusing_since = now
        if begun <= self._cut:
            return  # the call was already under way when the rate was cut
        self._in_a_row += 1
        if not self._is_open or self._has_too_many_refusals():
            self._close(now, wait)

    def _has_too_many_refusals(self) -> bool:
        if math.isinf(self.rate):
            return self._refusals > CROWDED
        return self._refusals > CROWDED_WHERE_LIMITED or self._in_a_row >= IN_A_ROW

    def _close(self, now: float, wait: float | None) -> None:
        if self._is_open:
            self._cuts += 1
            self.rate = min(CUT * self.rate, _UNLIMITED * self._most)
            self._room = max(1.0, CUT_AT_ONCE * self._room)
        self._is_open = False
        self._version += 1
        self._cut = now
        self._not_before = self._next = now + max(self._pause, wait or 0.0)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        self._refusals, self._in_a_row = 0.0, 0
