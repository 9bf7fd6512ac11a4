"""The monitor's loop: fetch what came, judge what is due, and look at the windows, until it is stopped.

One process does all of it. Several on one database share the traces by claims that end if a process dies; what only one
may do, such as telling people of alerts, is done by the one that holds its lease.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from threading import Event
from typing import Any

from rageval_spec.dataclass import dataclass, field
from rageval_spec.drawing.openmetrics import MetricFamily
from rageval_spec.endpoints.pacing import double_wait
from rageval_spec.errors import RagevalError
from rageval_spec.monitoring.feeds.contract import Feed
from rageval_spec.monitoring.ledger import LEASE, ClaimedTrace, Ledger
from rageval_spec.monitoring.looks.looking import Watch
from rageval_spec.monitoring.outputs.couriers import Delivery
from rageval_spec.monitoring.outputs.outbox import Outbox
from rageval_spec.monitoring.tables import MOST_FAILURES, FeedState
from rageval_spec.monitoring.traces.filling import Filler
from rageval_spec.monitoring.traces.sampling import Sampler
from rageval_spec.monitoring.traces.trace_judging import TraceJudge
from rageval_spec.progress import ProgressDisplay

CLAIM = 1000
"""The most traces that are judged at once; fewer where judges take so long that the lease would end before them."""
FIRST_CLAIM = 100
"""The most of the first time, when it is not known how long judges take."""
LONGEST_WAIT = 60.0
"""The most seconds between two polls of a feed that cannot be read; the first wait is `IDLE`."""
NOTED_EVERY = 60.0
"""Seconds after which it is written down again how reading a feed goes."""
IDLE = 1.0
"""Seconds between looks where nothing is due."""
_SENDING = 2.0
"""Seconds that the messages of a look have to be sent before the page says what became of them."""
_PUBLISH = 15.0
"""Seconds between two states of what is published."""
_PATIENCE = 60.0
"""Seconds without a sign of life that are no trouble yet."""
Tick = Callable[[float], None]


def name_owner() -> str:
    """A name of this process that no other one has."""
    return f"{socket.gethostname()}:{os.getpid()}:{time.time_ns():x}"


@dataclass
class Progress:
    """What a monitor has done since it began, and what went wrong last."""

    seen: int = 0
    settled: int = 0
    retried: int = 0
    filled: int = 0
    unread: int = 0
    polled: dict[str, float] = field(default_factory=dict)
    """When each feed was last read to its end."""
    beat: float = 0.0
    """When the loop last went round."""
    complaints: dict[str, str] = field(default_factory=dict)
    """The last error of each feed that cannot be read at the moment."""
    failures: dict[str, FeedState] = field(default_factory=dict)
    """The feeds that cannot be read at the moment."""


@dataclass
class MonitorLoop:
    """The loop of one process.

    Attributes:
        every: the seconds between two polls of the feeds and looks at the windows.
        filler: fills series with what came before they began.
        filling: judges earlier traces whenever nothing else is due, some each time; see `Filler.fill`.
        look_once: what is done at each look by the process that leads: windows and alerts.
        show: what the leading process does once the messages of a look had time to be sent: it writes the page.
        outbox: the values that are still to be sent.
        delivery: sends messages of alerts, values and numbers, beside the loop; None where nobody is told anything.
        clock: the time in seconds since 1970.
        publish: makes the numbers of `/metrics`, which `published` then holds: the database belongs to this thread.
        tell: reports what people must know at once, such as that a feed cannot be read.
        display: shows how far reading and judging are.
        show_status: writes how a service is doing, from time to time.
        find_remarks: what in the spec comes to nothing, by the part of the spec; each is told once.
        told: the parts of the spec of which it was told.
    """

    ledger: Ledger
    feeds: Sequence[Feed]
    judge: TraceJudge
    sampler: Sampler
    watch: Watch
    every: float
    filler: Filler
    look_once: Tick = lambda _: None
    clock: Callable[[], float] = time.time
    delivery: Delivery | None = None
    outbox: Outbox | None = None
    show: Tick = lambda _: None
    progress: Progress = field(default_factory=Progress)
    publish: Callable[[float], Sequence[MetricFamily]] | None = None
    published: Sequence[MetricFamily] = ()
    tell: Callable[[str], None] = lambda _: None
    find_remarks: Callable[[], Mapping[str, str]] = dict
    told: set[str] = field(default_factory=set)
    filling: Iterator[int] = field(default_factory=lambda: iter(()))
    display: ProgressDisplay = field(default_factory=lambda: ProgressDisplay(quiet=True))
    show_status: Tick = lambda _: None
    stop: Event = field(default_factory=Event)
    _most: int = FIRST_CLAIM
    _backlog: tuple[int, int] = (0, 0)
    """How many traces of the present backlog were judged, and how many it has."""
    _noted: dict[str, float] = field(default_factory=dict)
    _again_at: dict[str, float] = field(default_factory=dict)

    def poll(self) -> None:
        """Write down what came. A feed that fails is asked again after a while, and does not stop the others."""
        for feed in self.feeds:
            if self.clock() < self._again_at.get(feed.name, 0.0):
                continue
            seen, unread = self.progress.seen, self.progress.unread
            try:
                with self.display.showing(f"read {feed.name}"):
                    for batch in feed.poll(self.ledger.read_cursor(feed.name), self.clock()):
                        self.ledger.see(batch.traces, feed.name, batch.cursor)
                        self.progress.seen += len(batch.traces)
                        self.progress.unread += batch.unread
                        if self.stop.is_set():
                            return
                self._note_success(feed.name)
                self.progress.polled[feed.name] = self.clock()
            except RagevalError as error:
                state = self._note_failure(feed.name, str(error))
                self._again_at[feed.name] = self.clock() + double_wait(state.failures, IDLE, LONGEST_WAIT)
                self.progress.complaints[feed.name] = str(error)
            if self.progress.seen > seen:
                self._note_success(_name_rows(feed))
            elif count := self.progress.unread - unread:
                self._note_failure(_name_rows(feed), feed.explain_unread() or "", count)

    def _note_success(self, name: str) -> None:
        self.progress.complaints.pop(name, None)
        self._again_at.pop(name, None)
        before = self.progress.failures.pop(name, None)
        if before is not None and before.is_stuck:
            self.tell(f"{name} can be read again")
        if before is not None or self.clock() >= self._noted.get(name, 0.0) + NOTED_EVERY:
            self._noted[name] = self.clock()
            self.ledger.note_feed(FeedState(name, 0, self.clock(), ""))

    def _note_failure(self, name: str, message: str, count: int = 1) -> FeedState:
        """Keep why a feed, or so many rows of it in a row, could not be read."""
        now, before = self.clock(), self.progress.failures.get(name)
        if before is None:  # a monitor that cron starts goes on counting
            before = next((one for one in self.ledger.read_feeds() if one.feed == name and one.failures), None)
        earlier, since = (0, now) if before is None else (before.failures, before.since)
        state = self.progress.failures[name] = FeedState(name, earlier + count, since, message)
        if earlier <= MOST_FAILURES and state.is_stuck:
            self.tell(f"{name} could not be read {state.failures:,} times in a row: {message}")
        self.ledger.note_feed(state)
        return state

    def judge_due(self) -> int:
        """Judge at most one batch of what is due; how many traces it was."""
        self.progress.beat = self.clock()
        began = self.clock()
        claimed = self.ledger.claim(began, min(self._most, CLAIM), LEASE)
        if claimed:
            self._show_backlog(0, len(claimed))
            sampled = [self.sampler.choose(one) for one in claimed]
            self.ledger.settle(sampled, self.judge.judge(sampled, self.clock()), self.clock())
            self.progress.settled += len(claimed)
            self._show_backlog(len(claimed), 0)
            each = (self.clock() - began) / len(claimed)
            self._most = max(1, min(CLAIM, 2 * self._most, int(LEASE / 4 / each))) if each > 0 else CLAIM
        return len(claimed) + self._retry_due()

    def _show_backlog(self, judged: int, claimed: int) -> None:
        done, total = self._backlog
        if done >= total:  # a new one begins
            done, total = 0, max(claimed, self.ledger.count_overdue(self.clock()))
        self._backlog = (done + judged, max(total, done + judged))
        self.display.counting("judge", "traces")(*self._backlog)

    def look(self) -> None:
        """Do what is done after each poll, in the process that leads; report remarks that are new."""
        self._lead(self.look_once)
        for part, remark in self.find_remarks().items():
            if part not in self.told:
                self.told.add(part)
                self.tell(remark)
        self.sampler.forget(self.clock() - 2 * 86_400)

    def _lead(self, tick: Tick) -> None:
        """Do what only one process does, if it is this one."""
        now = self.clock()
        if self.ledger.lead("look", now, 3 * self.every):
            tick(now)

    def _show_page(self, now: float) -> None:
        """Write the page. One that cannot be written does not stop the monitor."""
        try:
            self.show(now)
        except RagevalError as error:
            self.progress.complaints[""] = str(error)

    def find_trouble(self, *, is_start: bool = False) -> str | None:
        """Why the monitor does not do its work at the moment; None if it does.

        At the start, also what it has not done yet: a feed that was not read to its end, or whose rows have all been
        unreadable lately.
        """
        now, patience = self.clock(), max(_PATIENCE, 3 * self.every)
        if now - self.progress.beat > patience:
            return f"the loop has not gone round for {now - self.progress.beat:.0f} s"
        for feed in self.feeds:
            polled = self.progress.polled.get(feed.name)
            complaint = self.progress.complaints.get(feed.name)
            if polled is None and is_start:
                return f"{feed.name} has not been read yet: {complaint or 'it takes a moment'}"
            rows = self.progress.failures.get(_name_rows(feed))
            if is_start and rows is not None and rows.is_stuck:
                return f"{rows.feed} cannot be read: {rows.message}"
            if polled is not None and now - polled > patience:
                return f"{feed.name} cannot be read: {complaint or 'no poll has ended'}"
        return None

    def run_once(self, stop: Event | None = None) -> None:
        """One poll, all that is due, one look: for cron. If `stop` is set meanwhile, it ends after the batch."""
        self.stop = stop or self.stop
        try:
            self.poll()
            while not self.stop.is_set() and (self.judge_due() or self._fill_some()):
                pass
            if not self.stop.is_set():
                if self.ledger.is_alone(self.clock()):
                    self.ledger.writing = 0.0  # so that alerts see at once what was judged just now
                self.look()
                if self.publish is not None:
                    self.published = self.publish(self.clock())
                if self.delivery is not None:
                    self.delivery.run_once()
                self._lead(self._show_page)
        finally:
            self._close()

    def run(self, stop: Event, wait: Callable[[float], Any] | None = None) -> None:
        """Go on until `stop` is set; then give back what is held. `wait` waits some seconds or until then."""
        wait, self.stop = wait or stop.wait, stop
        try:
            with nullcontext() if self.delivery is None else self.delivery.going_on():
                self._go_round(stop, wait)
        finally:
            self._close()

    def _go_round(self, stop: Event, wait: Callable[[float], Any]) -> None:
        look_at = poll_at = publish_at = 0.0
        show_at = math.inf
        while not stop.is_set():
            now = self.clock()
            if now >= poll_at:
                self.poll()
                poll_at = now + min(self.every, IDLE)
            busy = self.judge_due() or self._fill_some()
            if self.clock() >= look_at:
                self.look()
                look_at = self.clock() + self.every
                show_at = min(show_at, self.clock() + _SENDING)
            if self.clock() >= show_at:
                self._lead(self._show_page)
                show_at = math.inf
            if self.publish is not None and self.clock() >= publish_at:
                self.published = self.publish(self.clock())
                publish_at = self.clock() + min(self.every, _PUBLISH)
            self.show_status(self.clock())
            if not busy:
                wait(min(IDLE, self.every))

    def _close(self) -> None:
        self.ledger.release()
        for feed in self.feeds:
            feed.close()

    def _fill_some(self) -> int:
        filled = next(self.filling, 0)
        self.progress.filled += filled
        return filled

    def _retry_due(self) -> int:
        due = self.ledger.claim_retries(self.clock(), CLAIM, LEASE)
        groups: dict[tuple[int, int], list[ClaimedTrace]] = {}
        for series, tries, claimed in due:
            groups.setdefault((series, tries), []).append(claimed)
        made = [one for group, some in groups.items() for one in self.judge.judge_again(*group, some, self.clock())]
        if due:
            started = {claimed.trace_id: claimed.started for *_, claimed in due}
            self.ledger.retry([(one, started[one.trace_id]) for one in made], self.clock())
            self.progress.retried += len(due)
        return len(due)


def _name_rows(feed: Feed) -> str:
    """What stands for the rows of a feed where feeds are named: it can be read, and none of its rows can."""
    return f"rows of {feed.name}"
