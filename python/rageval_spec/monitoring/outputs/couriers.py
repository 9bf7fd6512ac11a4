"""Couriers: each takes what a monitor has for one notifier or tool there, in a thread of its own.

So nobody who hangs holds up the judging, nor what is for somebody else. A connection to the database belongs to one
thread, so each courier opens its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import Any, TypeAlias

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import RagevalError
from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.plugin import Notifier

PAUSE = 1.0
"""Seconds between two looks at what is due."""
_LAST_WORDS = 10.0
"""Seconds that what is under way has when a monitor stops; what needs more is sent by the next process."""
_PATIENCE = 10.0
"""Seconds before a database that could not be opened is opened again."""
Courier: TypeAlias = Callable[[Ledger, float], bool]
"""Sends what is due at a time; returns whether there can be more to send at once."""


@dataclass
class NotifierCourier:
    """Sends a notifier the messages that are due, and reminds one who forgets of what still fires.

    Attributes:
        complain: gets why it took nothing last; None once it does.
    """

    notifier: Notifier[Any]
    complain: Callable[[str | None], None] = lambda _: None
    _refreshed: float = 0.0

    def deliver(self, ledger: Ledger, now: float) -> bool:
        book, name = AlertBook(ledger.connection, ledger.monitor), self.notifier.name
        every = self.notifier.refresh_every
        book.deliver({name: self.notifier}, now, lambda _, reason: self.complain(reason))
        if every is not None and now >= self._refreshed + every:
            self._refreshed = now
            self.complain(book.refresh(name, self.notifier))
        return False


@dataclass(frozen=True)
class Delivery:
    """All couriers of a monitor.

    Attributes:
        couriers: by the names that threads and complaints have.
        open_ledger: opens the ledger with another connection.
        complain: is told the name of a courier, and why it could not use the database.
    """

    couriers: Mapping[str, Courier]
    open_ledger: Callable[[], AbstractContextManager[Ledger]]
    clock: Callable[[], float]
    complain: Callable[[str, str | None], None]

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Deliver until the end of the block."""
        stop = Event()
        threads = self._start(stop)
        try:
            yield
        finally:
            stop.set()
            end = time.monotonic() + _LAST_WORDS
            for one in threads:
                one.join(max(0.0, end - time.monotonic()))

    def run_once(self) -> None:
        """Deliver all that is due, as far as it is taken."""
        stop = Event()
        stop.set()
        for one in self._start(stop):
            one.join()

    def _start(self, stop: Event) -> list[Thread]:
        threads = [
            Thread(target=self._work, args=(name, stop, stop.is_set()), name=name, daemon=True)
            for name in self.couriers
        ]
        for one in threads:
            one.start()
        return threads

    def _work(self, name: str, stop: Event, is_once: bool) -> None:
        while True:
            try:
                with self.open_ledger() as ledger:
                    try:
                        while True:
                            more = self.couriers[name](ledger, self.clock())
                            if stop.is_set() and not (is_once and more):
                                return
                            if not more:
                                stop.wait(PAUSE)
                    finally:
                        ledger.release()
            except RagevalError as error:
                self.complain(name, str(error))
                if stop.wait(_PATIENCE):
                    return
