"""Adapts to an endpoint that refuses calls with 429: additive increase, multiplicative decrease.

Few endpoints say which limit they have: a number of calls in a fixed or sliding window, a bucket that fills up, or a
number of calls at the same time. So the rate is found by trying. Where many calls are refused, all wait, and then one
call probes whether the endpoint takes calls again, with pauses that double. When a probe goes well, calls go on
at the rate that the endpoint has taken on average, refused time included, and the rate grows from there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds before the first probe, and before any later one at most."""
CROWDED, CROWDED_WHERE_LIMITED = 0.25, 0.08
"""The share of calls refused from which on fewer are made: at first, and once there is a rate."""
MEMORY, MEMORY_WHERE_LIMITED = 16, 50
"""Calls after which one that was refused weighs about a third, in the same two cases."""
IN_A_ROW = 3
"""Refusals in a row that end a rate too."""
CUT = 0.8
"""What remains of the rate when it was too high."""
CUT_AT_ONCE = 0.75
"""What remains of the calls at the same time."""
CAUTION = 0.95
"""The share of what an endpoint was seen to take that is asked of it next."""
SLOW, FAST = 80.0, 6.0
"""Seconds in which a rate grows by itself: as a rule, and while nothing was refused for `CALM` seconds."""
CALM = 20.0
_UNLIMITED = 20.0
"""Calls a second for each call at the same time: a rate above that is no limit."""
_LOWEST = 0.05


class Turn(NamedTuple):
    """When a call may begin at the earliest, as was known when the throttle had been opened and closed so often."""

    begin: float
    version: int


class Throttle:
    """Says when calls may begin, and how many at the same time, from what became of earlier ones.

    Not safe for threads: whoever shares one holds a lock. Times are seconds of any clock.
    """

    def __init__(self, most: int) -> None:
        """Nothing is limited but the calls at the same time, of which there are `most`."""
        self._most = most
        self._room = float(most)
        self._rate = math.inf
        self._next = self._not_before = self._cut = -math.inf
        self._pause = FIRST_PAUSE
        self._is_open = True
        self._is_probing = False
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
        """How many calls may be under way now."""
        return int(self._room)

    @property
    def rate(self) -> float:
        """Calls a second that may begin now; infinite where none is limited."""
        return self._rate

    @property
    def is_probing(self) -> bool:
        """Whether one call finds out whether others may begin."""
        return self._is_probing

    @property
    def is_crowded(self) -> bool:
        """Whether the endpoint has refused so many calls lately that fewer are let through."""
        return not math.isinf(self._rate) or self._room < self._most or self._refusals > CROWDED

    def has_refused_for(self, seconds: float, now: float) -> bool:
        """Whether the endpoint has taken nothing for so long, though it was asked."""
        return self._refusing_since is not None and now - self._refusing_since >= seconds

    def reserve(self, now: float) -> Turn:
        """The next call's turn, which is taken."""
        if self._counted_since is None:
            self._counted_since = now
        begin = max(now, self._next, self._not_before)
        self._next = begin + (0.0 if math.isinf(self._rate) else 1 / self._rate)
        return Turn(begin, self._version)

    def admit(self, turn: Turn) -> bool:
        """Whether a call may begin now that its turn has come; else it reserves anew. True for the one that probes."""
        if turn.version != self._version or self._is_probing:
            return False
        self._is_probing = not self._is_open
        self._probed = turn.begin
        return True

    def record(self, begun: float, now: float, *, refused: bool, wait: float | None = None) -> None:
        """What became of a call that began at `begun`; `wait` are the seconds that the endpoint asks to wait."""
        is_late = begun >= self._not_before
        if self._is_probing and begun >= self._probed:
            self._is_probing = False
        memory = max(MEMORY, self._most) if math.isinf(self._rate) else MEMORY_WHERE_LIMITED
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
        elif not math.isinf(self._rate):
            self._grow(now)

    def _open(self, now: float) -> None:
        """Go on, no faster than the endpoint was seen to take calls since it was last opened."""
        since = now if self._counted_since is None else self._counted_since
        seen = self._taken / max(now - since, 1e-3)
        self._rate = max(_LOWEST, min(self._rate, CAUTION * seen))
        self._is_open, self._pause = True, FIRST_PAUSE
        self._version += 1
        self._taken, self._counted_since = 0, now
        self._grown = self._next = now

    def _grow(self, now: float) -> None:
        is_fast = self._cuts == 1 or now - self._cut > CALM
        seconds = min(1 / self._rate, now - self._grown)
        self._rate *= 1 + seconds / (FAST if is_fast else SLOW)
        self._grown = now
        if self._rate > _UNLIMITED * self._most:
            self._rate, self._refusals = math.inf, 0.0

    def _take_refusal(self, begun: float, now: float, wait: float | None) -> None:
        if self._refusing_since is None:
            self._refusing_since = now
        if begun <= self._cut:
            return  # it was under way when the rate was cut
        self._in_a_row += 1
        if not self._is_open or self._has_too_many_refusals():
            self._close(now, wait)

    def _has_too_many_refusals(self) -> bool:
        if math.isinf(self._rate):
            return self._refusals > CROWDED
        return self._refusals > CROWDED_WHERE_LIMITED or self._in_a_row >= IN_A_ROW

    def _close(self, now: float, wait: float | None) -> None:
        if self._is_open:
            self._cuts += 1
            self._rate = min(CUT * self._rate, _UNLIMITED * self._most)
            self._room = max(1.0, CUT_AT_ONCE * self._room)
        self._is_open = False
        self._version += 1
        self._cut = now
        self._not_before = self._next = now + max(self._pause, wait or 0.0)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        self._refusals, self._in_a_row = 0.0, 0
