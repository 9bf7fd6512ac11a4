"""`rageval-spec monitor`: judges production as it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import Front
from rageval_spec.commands.monitor import files
from rageval_spec.commands.monitor.alerting import show_alerts, silence_alerts, try_notifiers
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import GATE_FAILED, PASSED, UsageError
from rageval_spec.wording import count_noun, format_percent, list_counts, read_duration

if TYPE_CHECKING:
    from rageval_spec.monitoring.service import MonitorLoop
    from rageval_spec.monitoring.traces.sampling import Allowance
    from rageval_spec.spec import Spec

_filling_options = shared.together(
    click.option("--since", metavar="AGE", help="With --metric: fill its series from so long ago on: 30d."),
    click.option("--metric", help="The metric to fill with the traces that came before it, or before its new judge."),
)


@click.group("monitor", cls=Front)
def monitor() -> None:
    """Judge production as it runs: account for every trace, watch windows of values, send alerts.

    The spec has a block `monitor:`. `plan` shows what judging would take, `run` does it, until Ctrl-C or once.

    \b
    rageval-spec monitor plan spec.yaml
    rageval-spec monitor run spec.yaml
    """


def _load(spec: Path, overrides: Iterable[str]) -> Spec:
    from rageval_spec.spec import load

    return load(spec, overrides=list(overrides))


def _read_age(since: str | None, metric: str | None) -> float | None:
    """The seconds of `--since`; None without both options."""
    if (since is None) != (metric is None):
        raise UsageError("--since and --metric go together: --since 30d --metric faithfulness")
    if since is None:
        return None
    age = read_duration(since)
    if not age:
        raise UsageError(f"--since {since}: write an age such as 30d or 12h")
    return age


for _command in (show_alerts, silence_alerts, try_notifiers):
    monitor.add_command(_command)


@monitor.command("run")
@shared.spec_argument
@click.option("--once", is_flag=True, help="Fetch and judge what is due, decide the alerts, and end: for cron.")
@_filling_options
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def run_monitor(
    spec: Path, overrides: Iterable[str], once: bool, since: str | None, metric: str | None, quiet: bool
) -> int:
    """Watch production until Ctrl-C.

    \b
    rageval-spec monitor run spec.yaml
    rageval-spec monitor run spec.yaml --once
    rageval-spec monitor run spec.yaml --once --since 30d --metric answer_relevancy
    """
    from rageval_spec.monitoring.assembly import open_monitor
    from rageval_spec.signals import stopping

    age, stop = _read_age(since, metric), Event()
    loaded = _load(spec, overrides)
    address = None if loaded.monitor is None else loaded.monitor.serve
    with open_monitor(loaded) as loop, stopping(stop.set):
        loop.tell = lambda told: console.tell(f"{console.PROGRAM}: {told}")
        filler = replace(loop.filler, since=time.time() - (age or 0.0))
        if metric is not None:
            loop.filling = filler.fill(metric, time.time)
        if once:
            loop.run_once()
        else:
            with _serve(loop, address):
                loop.run(stop)
        if metric is not None:
            rest = (
                "; run this again for the others, when the budget has room for them" if filler.has_more(metric) else ""
            )
            console.tell(f"{metric}: {count_noun(loop.progress.filled, 'earlier trace')} judged{rest}")
        if not quiet:
            _report(loop)
    return PASSED


@contextmanager
def _serve(loop: MonitorLoop, address: str | None) -> Iterator[None]:
    """Answer `/metrics`, `/healthz` and `/ready` meanwhile, if there is an address."""
    if address is None:
        yield
        return
    from rageval_spec.drawing.openmetrics import render_families
    from rageval_spec.endpoints.http_server import Server, split_address
    from rageval_spec.serving.server import Page, make_app
    from rageval_spec.spec.blocks.monitor import USUAL_PORT

    def explain(trouble: str | None) -> Page:
        return Page(b"ok\n") if trouble is None else Page(f"{trouble}\n".encode(), status=503)

    pages = {
        "/metrics": lambda: Page(
            render_families(loop.published), "application/openmetrics-text; version=1.0.0; charset=utf-8"
        ),
        "/healthz": lambda: explain(loop.find_trouble()),
        "/ready": lambda: explain(loop.find_trouble(is_start=True)),
    }
    server = Server(make_app(pages), *split_address(address, USUAL_PORT))
    console.tell(f"numbers at {server.url}/metrics, health at /healthz and /ready")
    try:
        yield
    finally:
        server.close()


@monitor.command("plan")
@shared.spec_argument
@_filling_options
def plan_monitor(spec: Path, overrides: Iterable[str], since: str | None, metric: str | None) -> int:
    """Show the series that traces would be judged for, what waits, and what filling one would cost.

    \b
    rageval-spec monitor plan spec.yaml
    rageval-spec monitor plan spec.yaml --since 30d --metric answer_relevancy
    """
    from rageval_spec.monitoring.assembly import open_monitor

    age = _read_age(since, metric)
    with open_monitor(_load(spec, overrides), is_plan=True) as loop:
        allowances = loop.judge.spending.list_allowances(time.time())
        if age is None or metric is None:
            _report(loop)
            console.show("".join(f"{_describe_budget(one)}\n" for one in allowances))
            return PASSED
        plan = replace(loop.filler, since=time.time() - age).plan(metric)
        console.show(f"{metric}: {count_noun(plan.traces, 'earlier trace')} without a value\n")
        for one in plan.calls:
            cost = "price unknown" if one.cost is None else f"about {one.cost:,.2f} USD"
            tokens = f"about {one.tokens.input:,} tokens in and {one.tokens.output:,} out"
            console.show(f"  {one.model}  {count_noun(one.calls, 'call')}, {tokens}, {cost}\n")
        for limit in allowances:
            needed = sum((one.cost or 0.0) if limit.is_cost else one.calls for one in plan.calls)
            console.show(f"  {_describe_wait(limit, needed)}\n")
    return PASSED


def _describe_budget(limit: Allowance) -> str:
    """`budget: 480 of 600 calls left until 08:00 UTC, room for 34 % of ...`."""
    seconds, amount = limit.rate.seconds, _write_amount(limit)
    ends = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime((time.time() // seconds + 1) * seconds))
    told = f"budget: {amount(limit.left)} left of {amount(limit.rate.events)} until {ends}"
    if limit.usual <= limit.rate.events:
        return f"{told}; that is enough for all traces, as traffic is now"
    share = format_percent(limit.rate.events / limit.usual)
    return f"{told}; room for about {share} of the traces that need a call, which count for those that are left out"


def _describe_wait(limit: Allowance, needed: float) -> str:
    """How long a filling takes beside the usual traffic."""
    if needed <= min(limit.left, limit.spare):
        return "the budget has room for it now"
    if not limit.spare:
        return "the budget has no room for it: new traces need all of it"
    hours = needed / limit.spare * limit.rate.seconds / 3600
    return f"beside new traces, the budget has room for it within about {max(1, round(hours)):,} h"


def _write_amount(limit: Allowance) -> Callable[[float], str]:
    return (lambda of: f"{of:,.2f} USD") if limit.is_cost else (lambda of: count_noun(int(of), "call"))


@monitor.command("retry")
@shared.spec_argument
def retry_failed(spec: Path, overrides: Iterable[str]) -> int:
    """Try all judgements again that failed for good; the running monitor does it, or the next one.

    \b
    rageval-spec monitor retry spec.yaml
    """
    from rageval_spec.monitoring.assembly import open_ledger

    with open_ledger(_load(spec, overrides)) as ledger:
        again = ledger.retry_failed(time.time())
    console.show(f"{count_noun(again, 'judgement')} will be tried again\n")
    return PASSED


@monitor.command("prune")
@shared.spec_argument
@click.option("--trace", metavar="ID", help="Remove the texts of this trace, whatever its age.")
@click.option("--user", metavar="ID", help="Remove the texts of all traces of this user, whatever their age.")
def prune_texts(spec: Path, overrides: Iterable[str], trace: str | None, user: str | None) -> int:
    """Remove the texts of traces that are older than `keep:` says, or those of one trace or user. Numbers stay.

    \b
    rageval-spec monitor prune spec.yaml
    rageval-spec monitor prune spec.yaml --user u-4711
    """
    from rageval_spec.monitoring.assembly import forget, open_ledger, require_monitor
    from rageval_spec.spec.blocks.monitor import seconds_of

    if trace is not None and user is not None:
        raise UsageError("--trace and --user do not go together; leave one of them out")
    loaded = _load(spec, overrides)
    with open_ledger(loaded) as ledger:
        if trace is None and user is None:
            removed = ledger.prune_texts(time.time() - seconds_of(require_monitor(loaded).keep))
        else:
            removed = forget(loaded, ledger, trace=trace, user=user)
            if not removed and trace is not None and ledger.find_questions([trace]):
                console.show(f"the texts of trace {make_visible(trace)} were removed before\n")
                return PASSED
            if not removed:  # a deletion that found nothing must not look done
                console.tell(f"{console.PROGRAM}: {_explain_unknown(trace, user)}")
                return GATE_FAILED
        ledger.connection.compact()
    console.show(f"removed the texts of {count_noun(removed, 'trace')}\n")
    return PASSED


def _explain_unknown(trace: str | None, user: str | None) -> str:
    if trace is not None:
        return (
            f"nothing removed: the monitor has no trace '{make_visible(trace)}'; copy its id from the page or your tool"
        )
    return (
        f"nothing removed: no kept text belongs to the user '{make_visible(user or '')}'; traces name their user in "
        "'user', 'user_id' or 'userId', exactly as you write it here, or in the 'user' of your tracing tool"
    )


monitor.add_command(files.write_page)
monitor.add_command(files.write_rules)
monitor.add_command(files.collect_answers)


def _report(loop: MonitorLoop) -> None:
    """What the ledger has, one line for each series."""
    progress = loop.progress
    for part, remark in loop.find_remarks().items():
        if part not in loop.told:
            console.tell(f"{console.PROGRAM}: {remark}")
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
        told = list_counts(counts)
        before = loop.ledger.count_before(one.id)
        earlier = f"; {count_noun(before, 'trace')} came before this series began" if before else ""
        console.show(f"{one.name}: {told or 'no traces'}{earlier}\n")
    for line in () if loop.outbox is None else loop.outbox.describe():
        console.show(f"{make_visible(line)}\n")
    if (experiment := loop.watch.read_experiment()) is not None:
        console.show(f"A/B test: {make_visible(experiment.tell())}\n")
