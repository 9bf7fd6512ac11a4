"""`rageval-spec monitor`: judges production as it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import Front
from rageval_spec.commands.monitor import files
from rageval_spec.commands.monitor.alerting import show_alerts, silence_alerts, try_notifiers
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import BROKEN, GATE_FAILED, PASSED, UsageError
from rageval_spec.progress import PATIENCE, ProgressDisplay, name_seconds
from rageval_spec.signals import Interrupted, stopping
from rageval_spec.wording import count_noun, list_counts, read_duration

if TYPE_CHECKING:
    from rageval_spec.monitoring.service import MonitorLoop
    from rageval_spec.monitoring.traces.sampling import Allowance
    from rageval_spec.spec import Spec

_NEVER = 1e300
_STATUS_EVERY = 600.0
"""Seconds between two lines about how a service is doing."""
_filling_options = shared.together(
    click.option("--since", metavar="AGE", help="With --metric: fill the series with traces up to this old: 30d."),
    click.option("--metric", help="The metric to fill with traces from before it, or its new judge, was added."),
)


@click.group("monitor", cls=Front)
def monitor() -> None:
    """Judge production as it runs.

    Accounts for every trace, watches windows of values and sends alerts. The spec needs a block `monitor:`.

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


@monitor.command("run")
@shared.spec_argument
@click.option("--once", is_flag=True, help="Fetch and judge what is ready, decide the alerts, and exit. For cron.")
@_filling_options
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no status lines.")
def run_monitor(
    spec: Path, overrides: Iterable[str], once: bool, since: str | None, metric: str | None, quiet: bool
) -> int:
    """Judge production until Ctrl-C.

    Fetches traces, judges those that are ready, decides the alerts and notifies.

    \b
    rageval-spec monitor run spec.yaml
    rageval-spec monitor run spec.yaml --once
    rageval-spec monitor run spec.yaml --once --since 30d --metric answer_relevancy
    """
    from rageval_spec.monitoring.assembly import open_monitor

    age, stop = _read_age(since, metric), Event()
    loaded, display = _load(spec, overrides), ProgressDisplay(quiet=quiet)
    with ExitStack() as showing:
        showing.enter_context(display)
        with open_monitor(loaded, display=display) as loop, stopping(stop.set):
            say = console.tell if quiet else display.tell
            loop.tell = lambda told: say(f"{console.PROGRAM}: {told}")
            if not quiet:
                loop.show_status = _StatusLine(loop)
                Thread(target=_announce_stop, args=(stop, loop.tell), daemon=True).start()
            filler = replace(loop.filler, since=time.time() - (age or 0.0))
            if metric is not None:
                loop.filling = filler.fill(metric, time.time, display.counting(f"fill {metric}", "traces"))
            if once:
                loop.run_once(stop)
            else:
                with _serve(loop, loaded.monitor.serve if loaded.monitor else None):
                    loop.run(stop)
            if metric is not None:
                more = "; run this again for the others, when the budget has room for them"
                rest = more if filler.has_more(metric) else ""
                loop.tell(f"{metric}: {count_noun(loop.progress.filled, 'earlier trace')} judged{rest}")
            showing.close()
            _report(loop)
            left = loop.ledger.count_overdue(time.time()) if stop.is_set() else 0
            told = f"{count_noun(left, 'trace')} left to judge; the next run judges them" if left else ""
            if stop.is_set() and once:
                raise Interrupted(explanation=told)
            if told:
                console.tell(f"{console.PROGRAM}: {told}")
            return BROKEN if once and loop.progress.failures else PASSED


def _announce_stop(stop: Event, tell: Callable[[str], None]) -> None:
    stop.wait()
    time.sleep(PATIENCE)
    tell("stopping once the current batch is judged; press Ctrl-C again to stop at once")


@dataclass
class _StatusLine:
    """Writes how a service is doing: at the start, then every ten minutes if something has changed."""

    loop: MonitorLoop
    due: float = 0.0
    last: str = ""

    def __call__(self, now: float) -> None:
        from rageval_spec.monitoring.alerts import AlertBook

        if now < self.due:
            return
        self.due, ledger, done = now + _STATUS_EVERY, self.loop.ledger, self.loop.progress.settled
        firing = sum(row.state == "firing" for row in AlertBook(ledger.connection, ledger.monitor).read())
        alerts = f"{count_noun(firing, 'alert')} firing"
        line = f"{count_noun(done, 'trace')} processed, {ledger.count_waiting():,} waiting, {alerts}"
        if line != self.last:
            self.loop.tell(line)
        self.last = line


_METRICS_TYPES = ("application/openmetrics-text; version=1.0.0", "text/plain; version=0.0.4")
"""OpenMetrics, and the older text format of Prometheus."""


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

    media_type, old = (f"{kind}; charset=utf-8" for kind in _METRICS_TYPES)

    def show_old() -> Page:
        return Page(render_families(loop.published, is_old=True), old)

    pages = {
        "/metrics": lambda: Page(render_families(loop.published), media_type, plain=show_old),
        "/healthz": lambda: explain(loop.find_trouble()),
        "/ready": lambda: explain(loop.find_trouble(is_start=True)),
    }
    server = Server(make_app(pages), *split_address(address, USUAL_PORT))
    loop.tell(f"metrics at {server.url}/metrics, health at {server.url}/healthz and /ready")
    try:
        yield
    finally:
        server.close()


@monitor.command("plan")
@shared.spec_argument
@_filling_options
def plan_monitor(spec: Path, overrides: Iterable[str], since: str | None, metric: str | None) -> int:
    """Show what judging would take.

    Shows each series with its counts of traces, and the calls and cost of filling one.

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
            console.show("".join(f"{describe_budget(one, time.time())}\n" for one in allowances))
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


def describe_budget(limit: Allowance, now: float) -> str:
    """`budget: 480 calls left of 600 calls until 08:00 UTC; as traffic is now, traces need about 700 calls ...`."""
    seconds, amount, needed = limit.rate.seconds, _write_amount(limit), limit.expected * limit.price
    ends = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime((now // seconds + 1) * seconds))
    told = f"budget: {amount(limit.left)} left of {amount(limit.rate.events)} until {ends}"
    if not limit.price:
        return f"{told}; what a call costs is not known yet"
    told = f"{told}; as traffic is now, traces need about {amount(needed)} until then"
    if needed <= limit.left:
        return told
    if limit.left < limit.price:
        return f"{told}, but none is left for them"
    return f"{told}, so some are left out at random, and any that are judged count for them"


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
    """Retry judgements that failed or found the budget spent.

    Judgements that wait for a later try are retried, too. Traces that the budget left out at random stay out: others
    count for them. The running monitor retries the rest, or the next one that starts.

    \b
    rageval-spec monitor retry spec.yaml
    """
    from rageval_spec.monitoring.assembly import open_ledger

    with open_ledger(_load(spec, overrides)) as ledger:
        again = ledger.retry_failed(time.time())
    told = f"{count_noun(sum(again.values()), 'judgement')} will be tried again: {list_counts(again)}"
    console.show(f"{told if again else 'no judgement to try again'}\n")
    return PASSED


@monitor.command("prune")
@shared.spec_argument
@click.option("--trace", metavar="ID", help="Remove the texts of this trace, whatever its age.")
@click.option("--user", metavar="ID", help="Remove the texts of all traces of this user, whatever their age.")
def prune_texts(spec: Path, overrides: Iterable[str], trace: str | None, user: str | None) -> int:
    """Remove the texts of old traces.

    Removes the texts of traces older than `keep:`, or those of one trace or user. Numbers stay.

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


_OTHERS = (show_alerts, silence_alerts, try_notifiers, files.write_page, files.write_rules, files.collect_answers)
for _command in _OTHERS:
    monitor.add_command(_command)


def _report(loop: MonitorLoop) -> None:
    """What the ledger has: a line for each series, and one for each of its windows with a value."""
    from rageval_spec.monitoring.looks.looking import describe_numbers

    progress, now = loop.progress, loop.clock()
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
        told = list_counts(loop.ledger.count(one.id))
        before = loop.ledger.count_before(one.id)
        earlier = f"; {count_noun(before, 'trace')} settled without this metric" if before else ""
        console.show(f"{one.name}: {told or 'no traces'}{earlier}\n")
        for window in (loop.watch.reader.read(one, window, now) for window in loop.watch.node.windows):
            if window.value is not None:
                console.show(f"  {window.window}: {describe_numbers(window)}\n")
    first = loop.ledger.find_oldest_due(_NEVER)
    if first is not None and first > now:
        console.tell(f"{console.PROGRAM}: the next trace is ready in {name_seconds(first - now)}")
    for line in () if loop.outbox is None else loop.outbox.describe():
        console.show(f"{make_visible(line)}\n")
    if (experiment := loop.watch.read_experiment()) is not None:
        console.show(f"A/B test: {make_visible(experiment.tell())}\n")
