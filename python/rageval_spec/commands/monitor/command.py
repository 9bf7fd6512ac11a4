"""`rageval-spec monitor`: judges production as it runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import Front
from rageval_spec.errors import PASSED
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.monitoring.service import MonitorLoop


@click.group("monitor", cls=Front)
def monitor() -> None:
    """Judge production as it runs: account for every trace, watch windows of values, send alerts."""


@monitor.command("run")
@shared.spec_argument
@click.option("--once", is_flag=True, help="Fetch and judge what is due, decide the alerts, and end: for cron.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def run_monitor(spec: Path, overrides: Iterable[str], once: bool, quiet: bool) -> int:
    """Watch production until Ctrl-C.

    \b
    rageval-spec monitor run spec.yaml
    rageval-spec monitor run spec.yaml --once
    """
    from rageval_spec.monitoring.assembly import open_monitor
    from rageval_spec.signals import stopping
    from rageval_spec.spec import load

    stop = Event()
    with open_monitor(load(spec, overrides=list(overrides))) as loop, stopping(stop.set):
        loop.tell = lambda told: console.tell(f"{console.PROGRAM}: {told}")
        if once:
            loop.run_once()
        else:
            loop.run(stop)
        if not quiet:
            _report(loop)
    return PASSED


def _report(loop: MonitorLoop) -> None:
    """What the ledger says, one line for each series."""
    progress = loop.progress
    for name, told in progress.complaints.items():
        console.tell(f"{console.PROGRAM}: {name}: {told}")
    for feed in loop.feeds:
        for told in feed.remarks():
            console.tell(f"{console.PROGRAM}: {feed.name}: {told}")
    if progress.unread:
        reasons = [why for feed in loop.feeds if (why := feed.explain_unread()) is not None]
        last = f"; the last: {'; '.join(reasons)}" if reasons else ""
        console.tell(f"{console.PROGRAM}: warning: {count_noun(progress.unread, 'row')} could not be read{last}")
    for one in loop.judge.series.values():
        counts = loop.ledger.count(one.id)
        told = ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in counts.items() if count)
        console.show(f"{one.name}: {told or 'no traces'}\n")
