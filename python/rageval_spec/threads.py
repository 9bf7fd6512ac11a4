"""Maps a function over items in threads without blocking Ctrl-C, and lets threads that mostly wait work in turns."""

from __future__ import annotations

import math
import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock, Thread, local
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE = 0.2
"""The longest time, in seconds, before a waiting main thread notices an interrupt."""


def map_in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int, name: str = "rageval"
) -> Iterator[Result]:
    """Call `function` for each item in `workers` threads, and yield the results in the order of the items.

    The first exception, in that order, is raised. When an exception is raised, or the caller stops reading, items that
    have not started are cancelled, and running ones are not waited for. `name` is the prefix of the thread names.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
    try:
        for future in [pool.submit(function, item) for item in items]:
            yield wait_for(future)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def wait_for(future: Future[Result]) -> Result:
    """A future's result, or its exception; an interrupt of the main thread is raised within `PATIENCE` seconds."""
    with floor.rested():
        while not wait([future], timeout=PATIENCE).done:
            pass  # an interrupt that arrives just before a wait does not end it, but is seen before the next wait
    return future.result()


_AMONG_OTHERS = 0.0005
"""Seconds after which a thread that computes gives way to the one that has the floor, which lets go of the interpreter
at each call of the system and would wait ten times as long for it by default."""


class Waiter:
    """What a thread waits for until another one releases it. Then a thread of the floor gets that back, in its turn."""

    def __init__(self, of: Floor, until: float = math.inf, *, on_floor: bool = False) -> None:
        """To be waited for by this thread; nothing watches the time, `until`, but the floor."""
        self._floor = of
        self._is_on_floor = on_floor or of.is_mine
        self._lock = Lock()
        self._lock.acquire()
        self._has_floor = False
        self.until = until

    def wait(self) -> None:
        """Wait without the floor; whoever releases this first need not wait for the wait."""
        self._floor.leave()
        self._lock.acquire()
        self._floor.is_mine = self._has_floor

    def release(self) -> None:
        """Let the thread go on."""
        if self._is_on_floor:
            self._floor.queue(self)
        else:
            self.go(has_floor=False)

    def go(self, *, has_floor: bool) -> None:
        """Let the thread go on at once."""
        self._has_floor = has_floor
        self._lock.release()


class Room(Protocol):
    """Room for a number of threads at a time."""

    @property
    def is_wanted(self) -> bool:
        """Whether a thread that has been there waits."""

    def enter(self, *, again: bool = False) -> None:
        """Wait until there is room for this thread, which may have been there."""

    def leave(self) -> None:
        """Make room for another one."""


class Floor:
    """Lets one of many threads work while the others wait for replies, and gives it to the one whose reply is there.

    Each call of the system lets go of the interpreter, and of 64 threads that are awake another one takes it then: a
    third of a call's time went into that. While a thread has the floor no other is awake. The one that leaves it sees
    which replies have come, and wakes the thread that waits longest; a thread of its own does so while nobody works.

    The floor only saves time. Who waits for something else than a reply should leave it; where that was forgotten, the
    others go on without it after `PATIENCE`. So they do on systems without epoll.
    """

    PATIENCE = 0.25

    def __init__(self) -> None:
        """Nobody has the floor."""
        self._own = local()
        self._guard = Lock()
        self._is_taken = False
        self._since = 0.0
        self._queue: deque[Waiter] = deque()
        self._waiting: dict[int, Waiter] = {}
        self._epoll: select.epoll | None = None
        self._bell = Lock()
        self._bell.acquire()
        self._sleeps = self._sleeps_long = False
        self._joined, self._interval = 0, 0.0

    @property
    def is_mine(self) -> bool:
        """Whether this thread has the floor."""
        return getattr(self._own, "has_it", False)

    @is_mine.setter
    def is_mine(self, has_it: bool) -> None:
        self._own.has_it = has_it

    def take(self) -> None:
        """Wait for the floor, if this thread does not have it."""
        if self.is_mine or not hasattr(select, "epoll"):
            return
        with self._guard:
            if self._epoll is None:
                epoll = select.epoll()
                Thread(target=self._watch, args=(epoll,), name="floor", daemon=True).start()
                self._epoll = epoll
        turn = Waiter(self, on_floor=True)
        turn.release()
        turn.wait()

    def leave(self) -> bool:
        """Let another thread have the floor; returns whether this one had it."""
        if not self.is_mine:
            return False
        self.is_mine = False
        with self._guard:
            self._pass_on()
        return True

    @contextmanager
    def joined(self, room: Room) -> Iterator[None]:
        """A block in which a thread has room and the floor."""
        self._enter(room)
        self._count_joined(1)
        try:
            self.take()
            yield
        finally:
            self.leave()
            self._count_joined(-1)
            self._go_out()

    def _enter(self, room: Room, *, again: bool = False) -> None:
        room.enter(again=again)
        self._own.room = room

    def _go_out(self) -> Room | None:
        """Make room for another thread; returns the room that this one had."""
        room: Room | None = getattr(self._own, "room", None)
        if room is not None:
            self._own.room = None
            room.leave()
        return room

    def _count_joined(self, change: int) -> None:
        with self._guard:
            if not self._joined:
                self._interval = sys.getswitchinterval()
            self._joined += change
            sys.setswitchinterval(_AMONG_OTHERS if self._joined else self._interval)

    @contextmanager
    def left(self) -> Iterator[None]:
        """A block that waits for something, without the floor."""
        had_it = self.leave()
        try:
            yield
        finally:
            if had_it:
                self.take()

    @contextmanager
    def rested(self) -> Iterator[None]:
        """A block that waits for long, without the floor and without room."""
        with self.left():
            room = self._go_out()
            try:
                yield
            finally:
                if room is not None:
                    self._enter(room, again=True)

    def give_way(self) -> None:
        """Let a thread that has rested go on, instead of this one and before others that wait for room."""
        room = getattr(self._own, "room", None)
        if room is not None and room.is_wanted:
            self.leave()
            self._go_out()
            self._enter(room)
            self.take()

    def queue(self, turn: Waiter) -> None:
        """Give the floor to a thread when those before it have left it."""
        with self._guard:
            self._queue.append(turn)
            if not self._is_taken:
                self._give()
            elif self._sleeps_long:
                self._wake()

    def wait_to_read(self, file: int, until: float) -> None:
        """Wait without the floor until a file can be read or the time is over; without the floor, do not wait."""
        if not self.is_mine or self._epoll is None:
            return
        turn = Waiter(self, until)
        with self._guard:
            try:
                self._epoll.modify(file, select.EPOLLIN | select.EPOLLONESHOT)
            except FileNotFoundError:
                self._epoll.register(file, select.EPOLLIN | select.EPOLLONESHOT)
            self._waiting[file] = turn
        turn.wait()

    def _pass_on(self) -> None:
        if not self._queue and self._waiting and self._epoll is not None:
            self._collect(self._epoll.poll(0))
        if self._queue:
            self._give()
        else:
            self._is_taken = False
            if self._sleeps:
                self._wake()

    def _give(self) -> None:
        self._is_taken, self._since = True, time.monotonic()
        self._queue.popleft().go(has_floor=True)

    def _collect(self, ready: Iterable[tuple[int, int]]) -> None:
        self._queue.extend(turn for file, _ in ready if (turn := self._waiting.pop(file, None)))

    def _wake(self) -> None:
        self._sleeps = self._sleeps_long = False
        self._bell.release()

    def _watch(self, epoll: select.epoll) -> None:
        """Look for replies while nobody works, and let all go on who wait for a thread that keeps the floor."""
        looked = time.monotonic()
        while True:
            with self._guard:
                self._sleeps_long = not (self._queue or self._waiting)
                sleeps = self._sleeps = self._sleeps_long or self._is_taken
                pause = -1 if self._sleeps_long else self.PATIENCE
            if sleeps:
                self._bell.acquire(timeout=pause)
                with self._guard:  # after that time, the bell can have rung all the same
                    self._sleeps = self._sleeps_long = False
                    self._bell.acquire(blocking=False)
                ready = epoll.poll(0)
            else:
                ready = epoll.poll(pause)
            now = time.monotonic()
            with self._guard:
                self._collect(ready)
                if now - looked >= self.PATIENCE:
                    looked = now
                    late = [file for file, turn in self._waiting.items() if turn.until <= now]
                    self._queue.extend(map(self._waiting.pop, late))
                if self._queue and not self._is_taken:
                    self._give()
                elif now - self._since > self.PATIENCE:
                    while self._queue:
                        self._queue.popleft().go(has_floor=False)


floor = Floor()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=floor.__init__)  # type: ignore[misc]
