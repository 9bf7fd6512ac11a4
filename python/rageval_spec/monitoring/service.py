"""The monitor's loop: fetch what came, judge what is due, and look at the windows, until it is stopped.

One process does all of it. Several on one database share the traces by claims that end if a process dies; what only one
may do, such as telling people of alerts, is done by the one that holds its lease.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from rageval_spec.endpoints.pacing import double_wait
from rageval_spec.errors import RagevalError
from rageval_spec.monitoring.feeds.contract import Feed
from rageval_spec.monitoring.ledger import ClaimedTrace, Judgement, Ledger
from rageval_spec.monitoring.tables import MOST_FAILURES, FeedState
from rageval_spec.monitoring.traces.filling import Filler
from rageval_spec.monitoring.traces.sampling import Sampler
from rageval_spec.monitoring.traces.trace_judging import TraceJudge
from rageval_spec.progress import ProgressDisplay

CLAIM = 1000
"""The most traces that are judged at once."""
LONGEST_WAIT = 60.0
"""The most seconds between two polls of a feed that cannot be read; the first wait is `IDLE`."""
NOTED_EVERY = 60.0
"""Seconds after which it is written down again how reading a feed goes."""
LEASE = 300.0
"""Seconds for which a process holds traces, in its own time."""
IDLE = 1.0
"""Seconds between looks where nothing is due."""
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
        ticks: what is done after each poll by the process that leads: windows, alerts, pages.
        chores: what each process does whenever it polls: it sends the messages that are due.
        clock: the time in seconds since 1970.
        publish: makes the text of `/metrics`, which `published` then holds: the database belongs to this thread.
        tell: reports what people must know at once, such as that a feed cannot be read.
        display: shows how far reading and judging are.
        find_remarks: what in the spec comes to nothing, by the part of the spec; each is told once.
        told: the parts of the spec of which it was told.
    """

    ledger: Ledger
    feeds: Sequence[Feed]
    judge: TraceJudge
    sampler: Sampler
    every: float
    filler: Filler
    ticks: Sequence[Tick] = ()
    clock: Callable[[], float] = time.time
    chores: Sequence[Tick] = ()
    progress: Progress = field(default_factory=Progress)
    publish: Callable[[float], bytes] | None = None
    published: bytes = b""
    tell: Callable[[str], None] = lambda _: None
    find_remarks: Callable[[], Mapping[str, str]] = dict
    told: set[str] = field(default_factory=set)
    display: ProgressDisplay = field(default_factory=lambda: ProgressDisplay(quiet=True))
    stop: Event = field(default_factory=Event)
    _backlog: tuple[int, int] = (0, 0)
    """How many traces of the present backlog were judged, and how many it has."""
    _noted: dict[str, float] = field(default_factory=dict)
    _again_at: dict[str, float] = field(default_factory=dict)

    def complain(self, message: str) -> None:
        """Keep the last error of what is not a feed."""
        self.progress.complaints[""] = message

    def poll(self) -> None:
        """Write down what came. A feed that fails is asked again after a while, and does not stop the others."""
        for feed in self.feeds:
            if self.clock() < self._again_at.get(feed.name, 0.0):
                continue
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
                self._note_failure(feed.name, str(error))

    def _note_success(self, name: str) -> None:
        self.progress.complaints.pop(name, None)
        self._again_at.pop(name, None)
        before = self.progress.failures.pop(name, None)
        if before is not None and before.is_stuck:
            self.tell(f"{name} can be read again")
        if before is not None or self.clock() >= self._noted.get(name, 0.0) + NOTED_EVERY:
            self._noted[name] = self.clock()
            self.ledger.note_feed(FeedState(name, 0, self.clock(), ""))

    def _note_failure(self, name: str, message: str) -> None:
        """Keep why a feed could not be read. Without a database to write it to, that is on the terminal only."""
        now, before = self.clock(), self.progress.failures.get(name)
        if before is None:  # a monitor that cron starts goes on counting
            before = next((one for one in self.ledger.read_feeds() if one.feed == name and one.failures), None)
        polls, since = (1, now) if before is None else (before.failures + 1, before.since)
        state = self.progress.failures[name] = FeedState(name, polls, since, message)
        self._again_at[name] = now + double_wait(polls, IDLE, LONGEST_WAIT)
        self.progress.complaints[name] = message
        if polls == MOST_FAILURES + 1:
            self.tell(f"{name} could not be read {polls} times in a row: {message}")
        self.ledger.note_feed(state)

    def judge_due(self) -> int:
        """Judge at most one batch of what is due; how many traces it was."""
        self.progress.beat = self.clock()
        claimed = self.ledger.claim(self.clock(), CLAIM, LEASE)
        if claimed:
            self._show_backlog(0, len(claimed))
            sampled = [self.sampler.choose(one) for one in claimed]
            self.ledger.settle(sampled, self.judge.judge(sampled, self.clock()), self.clock())
            self.progress.settled += len(claimed)
            self._show_backlog(len(claimed), 0)
        return len(claimed) + self._retry_due()

    def _show_backlog(self, judged: int, claimed: int) -> None:
        done, total = self._backlog
        if done >= total:  # a new one begins
            done, total = 0, max(claimed, self.ledger.count_overdue(self.clock()))
        self._backlog = (done + judged, max(total, done + judged))
        self.display.counting("judge", "traces")(*self._backlog)

    def look(self) -> None:
        """Do what is done after each poll, in the process that leads."""
        now = self.clock()
        if self.ledger.lead("look", now, 3 * self.every):
            for tick in self.ticks:
                tick(now)
        for part, remark in self.find_remarks().items():
            if part not in self.told:
                self.told.add(part)
                self.tell(remark)
        self.sampler.forget(now - 2 * 86_400)

    def do_chores(self) -> None:
        """Do what each process does."""
        for chore in self.chores:
            chore(self.clock())

    def find_trouble(self, *, is_start: bool = False) -> str | None:
        """Why the monitor does not do its work at the moment; None if it does.

        At the start, also what it has not done yet: a feed that was not read to its end.
        """
        now, patience = self.clock(), max(_PATIENCE, 3 * self.every)
        if now - self.progress.beat > patience:
            return f"the loop has not gone round for {now - self.progress.beat:.0f} s"
        for feed in self.feeds:
            polled = self.progress.polled.get(feed.name)
            if polled is None and is_start:
                return (
                    f"{feed.name} has not been read yet: {self.progress.complaints.get(feed.name, 'it takes a moment')}"
                )
            if polled is not None and now - polled > patience:
                return f"{feed.name} cannot be read: {self.progress.complaints.get(feed.name, 'no poll has ended')}"
        return None

    def run_once(self, stop: Event | None = None) -> None:
        """One poll, all that is due, one look: for cron. If `stop` is set meanwhile, it ends after the batch."""
        self.stop = stop or self.stop
        try:
            self.poll()
            while not self.stop.is_set() and self.judge_due():
                pass
            if not self.stop.is_set():
                self.look()
                self.do_chores()
        finally:
            self._close()

    def run(self, stop: Event, wait: Callable[[float], Any] | None = None) -> None:
        """Go on until `stop` is set; then give back what is held. `wait` waits some seconds or until then."""
        wait, self.stop = wait or stop.wait, stop
        look_at = poll_at = publish_at = chores_at = 0.0
        try:
            while not stop.is_set():
                now = self.clock()
                if now >= poll_at:
                    self.poll()
                    poll_at = now + min(self.every, IDLE)
                busy = self.judge_due()
                if self.clock() >= look_at:
                    self.look()
                    look_at = self.clock() + self.every
                if now >= chores_at:
                    self.do_chores()
                    chores_at = now + min(self.every, IDLE)
                if self.publish is not None and self.clock() >= publish_at:
                    self.published = self.publish(self.clock())
                    publish_at = self.clock() + min(self.every, _PUBLISH)
                if not busy:
                    wait(min(IDLE, self.every))
        finally:
            self._close()

    def _close(self) -> None:
        self.ledger.release()
        for feed in self.feeds:
            feed.close()

    def _retry_due(self) -> int:
        due = self.ledger.claim_retries(self.clock(), CLAIM, LEASE)
        by_series: dict[int, list[tuple[int, ClaimedTrace]]] = {}
        for series, tries, claimed in due:
            by_series.setdefault(series, []).append((tries, claimed))
        started = {claimed.trace_id: claimed.started for _, _, claimed in due}
        made: Iterable[Judgement] = [
            one for series, some in by_series.items() for one in self.judge.judge_again(series, some, self.clock())
        ]
        if due:
            self.ledger.retry([(one, started[one.trace_id]) for one in made], self.clock())
            self.progress.retried += len(due)
        return len(due)
