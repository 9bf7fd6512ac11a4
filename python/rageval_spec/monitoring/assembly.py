"""From a spec with `monitor:` to the loop that watches production."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from rageval_spec.errors import UsageError
from rageval_spec.history.database import locate, open_history
from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.feeds.contract import Feed
from rageval_spec.monitoring.feeds.opening import open_feed
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.looking import Watch
from rageval_spec.monitoring.sampling import Sampler
from rageval_spec.monitoring.service import MonitorLoop, name_owner
from rageval_spec.monitoring.trace_judging import TraceJudge
from rageval_spec.monitoring.windows import WindowReader
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.plugin import Notifier
from rageval_spec.spec.blocks.monitor import MonitorNode, read_share
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.store.store import open_store
from rageval_spec.wording import read_duration

STORE = Path(".rageval") / "store"
_KEPT_FOR = timedelta(days=2).total_seconds()


def seconds_of(duration: str) -> float:
    """The seconds of a duration that was checked."""
    found = read_duration(duration)
    assert found is not None, "durations are checked when a spec is read"
    return found


def require_monitor(spec: Spec) -> MonitorNode:
    """The block `monitor:`. Raises `UsageError` without one."""
    if spec.monitor is None:
        raise UsageError(
            f"{spec.path}: the spec has no 'monitor:'; add one: monitor: {{every: 5m, alerts: [coverage]}}"
        )
    return spec.monitor


@contextmanager
def open_ledger(spec: Spec) -> Iterator[Ledger]:
    """The ledger of a spec's monitor, in its history."""
    place = locate(spec.history, spec.folder)
    if place is None:
        raise UsageError(f"{spec.path}: a monitor keeps its ledger in the history; remove 'history: none'")
    with open_history(place) as history:
        yield Ledger(history.connection, spec.name, name_owner())


@contextmanager
def open_monitor(spec: Spec, clock: Callable[[], float] = time.time) -> Iterator[MonitorLoop]:
    """The loop of a spec's monitor, ready to run."""
    node = require_monitor(spec)
    with open_ledger(spec) as ledger:
        store = open_store(spec.folder / STORE)
        try:
            parts = build_parts(spec, answers=store.answers, fingerprint=store.fingerprint)
            judge = TraceJudge(parts, ledger, seconds_of(node.retry_for), clock())
            judge.prepare()
            sample = node.sample
            kept = ledger.count_kept(clock() - _KEPT_FOR)
            sampler = Sampler(read_share(sample.rate), sample.at_least, sample.by, sample.always, kept)
            settle = seconds_of(node.settle)
            feeds: list[Feed] = [
                open_feed(str(spec.path), name, system, settle, ledger) for name, system in parts.systems.items()
            ]
            every = seconds_of(node.every)
            reader = WindowReader(ledger, seconds_of(node.settle), spec.statistics)
            notifiers = {one.name: one for one in parts.notifiers}
            watch = Watch(node, ledger, reader, judge.series, every)
            teller = Teller(watch, AlertBook(ledger.connection, spec.name), notifiers)
            loop = MonitorLoop(ledger, feeds, judge, sampler, every, [teller.look], clock)
            teller.complain = loop.complain
            yield loop
        finally:
            store.close()


@dataclass
class Teller:
    """Looks at the numbers, writes down what alerts came to, and tells the notifiers."""

    watch: Watch
    book: AlertBook
    notifiers: Mapping[str, Notifier[Any]]
    complain: Callable[[str], None] = print

    def look(self, now: float) -> None:
        """Look once."""
        self.book.record(self.watch.look(now), list(self.notifiers), now)
        self.book.deliver(self.notifiers, now, self.complain)
