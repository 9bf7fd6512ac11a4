"""From a spec with `monitor:` to the loop that watches production."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rageval_spec import registry
from rageval_spec.data.evaluation import Evaluation, Provenance
from rageval_spec.data.traces import TraceLink
from rageval_spec.diagnostics import SpecError, make_visible
from rageval_spec.endpoints.http_server import split_address
from rageval_spec.errors import UsageError
from rageval_spec.exchange.otel.source import SPOOL_FOLDER, USUAL_PORT, OtelFilesNode
from rageval_spec.exchange.shared.contracts import Target, open_part
from rageval_spec.exchange.shared.spans.spans import text_of
from rageval_spec.history.database import locate, open_history
from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.feeds.contract import Feed
from rageval_spec.monitoring.feeds.gathered_spans import find_traces_of
from rageval_spec.monitoring.feeds.row_files import FileFeed, RowReader
from rageval_spec.monitoring.feeds.spans import ReceiverFeed, SpanFileFeed, forget_requests
from rageval_spec.monitoring.feeds.tools import ToolFeed
from rageval_spec.monitoring.inspection.collection import Collector
from rageval_spec.monitoring.inspection.page import PageWriter
from rageval_spec.monitoring.inspection.redaction import Redaction
from rageval_spec.monitoring.ledger import Ledger, name_group, name_spans
from rageval_spec.monitoring.looks.baselines import choose_baseline
from rageval_spec.monitoring.looks.label_corrections import LabelCorrector
from rageval_spec.monitoring.looks.looking import Watch
from rageval_spec.monitoring.looks.what_changed import ChangeExplainer
from rageval_spec.monitoring.looks.windows import WindowReader
from rageval_spec.monitoring.outputs.couriers import Courier, Delivery, NotifierCourier
from rageval_spec.monitoring.outputs.exposition import Exposition
from rageval_spec.monitoring.outputs.outbox import Outbox
from rageval_spec.monitoring.outputs.sending import ToolSender
from rageval_spec.monitoring.service import MonitorLoop, name_owner
from rageval_spec.monitoring.traces.filling import Filler
from rageval_spec.monitoring.traces.sampling import Sampler, Spending
from rageval_spec.monitoring.traces.trace_judging import Series, TraceJudge
from rageval_spec.pipeline.execution.anchor_judging import JudgeDrift, ask_again
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts
from rageval_spec.pipeline.results.provenance import describe_spec
from rageval_spec.plugin import Context, EmbeddingModel, Notifier
from rageval_spec.plugin.budget import Budget
from rageval_spec.progress import ProgressDisplay
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.spec.blocks.monitor import MonitorNode, read_rate, read_share, seconds_of
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.store.store import open_store
from rageval_spec.systems.file import FileNode
from rageval_spec.systems.shared.trace_system import TraceSystem
from rageval_spec.wording import count_noun

STORE = Path(".rageval") / "store"
_KEPT_FOR = timedelta(days=2).total_seconds()


def require_monitor(spec: Spec) -> MonitorNode:
    """The block `monitor:`. Raises `UsageError` without one."""
    if spec.monitor is None:
        raise UsageError(
            f"{spec.path}: the spec has no 'monitor:'; add one: monitor: {{every: 5m, alerts: [coverage]}}"
        )
    return spec.monitor


@contextmanager
def open_ledger(spec: Spec) -> Iterator[Ledger]:
    """The ledger of a spec's monitor, in its history. Raises `UsageError` without a block `monitor:`."""
    node, place = require_monitor(spec), locate(spec.history, spec.folder)
    if place is None:
        raise UsageError(f"{spec.path}: a monitor keeps its ledger in the history; remove 'history: none'")
    with open_history(place) as history:
        yield Ledger(history.connection, spec.name, name_owner(), None if node.ab is None else node.ab.by)


def open_target(plugin: Any) -> Target[Any]:
    """The target of a block of `send:`, as it sends to traces."""
    target: Target[Any] = open_part(plugin.target_type, plugin)
    if target.monitor_keys:
        target.node = target.node.model_copy(update=target.monitor_keys)
    return target


def make_senders(spec: Spec, parts: SpecPlugins) -> list[ToolSender]:
    """What sends to the tools of `send:`.

    Raises:
        UsageError: two entries send the same to the same place.
    """
    provenance = Provenance(spec=describe_spec(spec, parts.metrics))
    frame = Evaluation(spec.name, (), (), tuple(parts.metrics), provenance=provenance, bands=dict(spec.bands))
    senders: dict[str, ToolSender] = {}
    for plugin in parts.destinations:
        target = open_target(plugin)
        name = f"{target.context.name} {target.destination}"
        if name in senders:
            raise UsageError(f"{spec.path}: monitor.send names {name} twice; leave one of them out")
        senders[name] = ToolSender(name, target, frame, Redaction(spec.redact))
    return [*senders.values()]


@contextmanager
def open_monitor(
    spec: Spec,
    clock: Callable[[], float] = time.time,
    display: ProgressDisplay | None = None,
    *,
    is_plan: bool = False,
) -> Iterator[MonitorLoop]:
    """The loop of a spec's monitor, ready to run; for a plan, without what its metrics load."""
    node, display = require_monitor(spec), display or ProgressDisplay(quiet=True)
    budget = Budget(max_cost=node.budget.most_cost)
    with open_ledger(spec) as ledger, _open_parts(spec, budget, display) as parts, ExitStack() as opened:
        check_judges(spec, parts)
        spending = Spending(ledger.connection, spec.name, node.budget, budget)
        judge = TraceJudge(parts, ledger, seconds_of(node.retry_for), clock(), spending, begin=not is_plan)
        if not is_plan:
            with display.showing("load the metrics"):
                judge.prepare()
        sample = node.sample
        kept = ledger.count_kept(clock() - _KEPT_FOR)
        sampler = Sampler(read_share(sample.rate), sample.at_least, sample.by, sample.always, kept)
        feeds = open_feeds(spec, ledger, parts)
        senders = make_senders(spec, parts)
        for close in [one.close for one in parts.notifiers] + [one.target.close for one in senders]:
            opened.callback(close)
        takers = [one.name for one in senders if "values" in one.target.takes]
        outbox = Outbox(ledger.connection, spec.name, takers, partial(list_judged, judge))
        if takers:
            ledger.on_judged = outbox.queue
        explainer, names = make_explainer(spec, ledger, parts), [one.name for one in senders]
        watch = make_watch(spec, ledger, parts, feeds, judge.series, explainer, names)
        book, told = open_book(spec, ledger), [one.name for one in parts.notifiers]
        keep, filler, redaction = seconds_of(node.keep), Filler(ledger, judge, parts, 0.0), Redaction(spec.redact)

        def look(now: float) -> None:
            record_alerts(watch, book, told, redaction, now)
            ledger.prune_texts(now - keep)

        loop = MonitorLoop(ledger, feeds, judge, sampler, watch, seconds_of(node.every), filler, look, clock)
        loop.display = display
        loop.find_remarks = lambda: dict(list_remarks(node, ledger, judge.series))
        loop.outbox, loop.delivery = outbox, make_delivery(spec, loop, parts.notifiers, senders)
        if node.serve is not None or any("numbers" in one.target.takes for one in senders):
            loop.publish = Exposition(watch, book, outbox, loop.progress).list_families
        if node.page is not None:
            loop.show = make_page(spec, watch, parts, spec.folder / node.page).write
        yield loop


@contextmanager
def _open_parts(
    spec: Spec, budget: Budget | None = None, display: ProgressDisplay | None = None
) -> Iterator[SpecPlugins]:
    """The plugins of a spec, with what its store keeps."""
    with closing(open_store(spec.folder / STORE)) as store:
        counting = (display or ProgressDisplay(quiet=True)).counting
        yield build_parts(spec, counting, store.answers, store.fingerprint, budget)


def check_judges(spec: Spec, parts: SpecPlugins) -> None:
    """Let models and judges say what keeps them from work, such as a limit on cost without a price.

    Raises `SpecError` with each fault at its place.
    """
    blocks = [*((("models", name), one) for name, one in parts.models.items()),
              *((("judges", name), one) for name, one in parts.judges.items())]  # fmt: skip
    if faults := [
        spec.diagnose(path, fault, "incompatible-parts") for path, one in blocks if (fault := one.check()) is not None
    ]:
        raise SpecError(faults)


def find_embedding(parts: SpecPlugins) -> EmbeddingModel[Any] | None:
    """The first embedding model of a spec; None without one."""
    return next((one for one in parts.models.values() if isinstance(one, EmbeddingModel)), None)


def find_trace_page(parts: SpecPlugins, link: TraceLink) -> str | None:
    """Where people see a trace in its tool; None if that is not known, or if two systems of the tool disagree."""
    systems = [one for one in parts.systems.values() if isinstance(one, TraceSystem) and one.node.use == link.tool]
    found = {open_part(one.source_type, one).find_page(link) for one in systems}
    return found.pop() if len(found) == 1 else None


def make_explainer(spec: Spec, ledger: Ledger, parts: SpecPlugins) -> ChangeExplainer:
    """Finds what moved, with the spec's embedding model and its anchors, where there are any."""
    node, embedding = require_monitor(spec), find_embedding(parts)
    if node.anchors is None:
        return ChangeExplainer(ledger, embedding)
    path, budget = spec.folder / node.anchors, node.budget
    calls = None if budget.calls is None else int(read_rate(budget.calls).events)

    def ask(metric: str) -> JudgeDrift | None:
        return ask_again(spec, path, metric, Budget(calls, budget.most_cost))

    return ChangeExplainer(ledger, embedding, ask)


def list_judged(judge: TraceJudge) -> set[int]:
    """The series whose values are sent: not what users say, which came from the tools."""
    return {one.id for one in judge.series.values() if one.metric is not None}


def make_delivery(
    spec: Spec, loop: MonitorLoop, notifiers: Iterable[Notifier[Any]], senders: Iterable[ToolSender]
) -> Delivery:
    """A courier for each notifier and each tool. What went wrong last with each is among the loop's complaints."""

    def complain(where: str, reason: str | None) -> None:
        loop.progress.complaints.pop(where, None)
        if reason is not None:
            loop.progress.complaints[where] = reason

    couriers: dict[str, Courier] = {}
    for notifier in notifiers:
        couriers[notifier.where] = NotifierCourier(notifier, partial(complain, notifier.where)).deliver
    for sender in senders:
        where = f"monitor.send {sender.name}"
        sender.complain, sender.numbers = partial(complain, where), lambda: loop.published
        couriers[where] = sender.deliver
    return Delivery(couriers, partial(open_ledger, spec), lambda: loop.clock(), complain)


def record_alerts(watch: Watch, book: AlertBook, notifiers: Sequence[str], redaction: Redaction, now: float) -> None:
    """Look at the numbers, and write down what alerts came to and which of the notifiers are to be told.

    An alert that is no longer in the spec is over.
    """
    firing = {row.alert for row in book.read() if row.state == "firing"}
    looks = [replace(one, evidence=redaction.hide_evidence(one.evidence)) for one in watch.look(now, firing)]
    book.record([*looks, *book.list_removed(looks)], notifiers, now)


def make_watch(
    spec: Spec,
    ledger: Ledger,
    parts: SpecPlugins,
    feeds: Sequence[Feed] | None = None,
    series: Mapping[str, Series] = MappingProxyType({}),
    explainer: ChangeExplainer | None = None,
    destinations: Sequence[str] = (),
) -> Watch:
    """What looks at the numbers of a spec's monitor: for alerts, the page and `/metrics` alike."""
    node, corrector = require_monitor(spec), LabelCorrector(ledger, parts.labels)
    delays = [one.delay for one in (open_feeds(spec, ledger, parts) if feeds is None else feeds)]
    reader = WindowReader(ledger, max(delays, default=0.0), spec.statistics, corrector.correct)
    baseline, hide = choose_baseline(spec, parts, node.baseline), Redaction(spec.redact).hide_quotes
    every, pages = seconds_of(node.every), partial(find_trace_page, parts)
    return Watch(node, ledger, reader, series, every, baseline, explainer, destinations, hide, pages)


@contextmanager
def open_notifiers(spec: Spec) -> Iterator[dict[str, Notifier[Any]]]:
    """The notifiers of a spec by their names, without its other plugins."""
    built = [registry.load("notifiers", node.use)(node, Context(node.use, spec.folder)) for node in spec.notifiers]
    try:
        yield {one.name: one for one in built}
    finally:
        for one in built:
            one.close()


def open_book(spec: Spec, ledger: Ledger) -> AlertBook:
    """The alerts of a spec's monitor."""
    node = require_monitor(spec)
    page = None if node.page is None else str((spec.folder / node.page).resolve())
    return AlertBook(ledger.connection, spec.name, node.page_url or page)


def make_page(spec: Spec, watch: Watch, parts: SpecPlugins, path: Path) -> PageWriter:
    """What writes the page of a spec's monitor to a file."""
    return PageWriter(watch, parts.answer_metrics, open_book(spec, watch.ledger), Redaction(spec.redact), path)


@contextmanager
def open_collector(spec: Spec) -> Iterator[Collector]:
    """What chooses answers of a spec's monitor for a test set."""
    with open_ledger(spec) as ledger, _open_parts(spec) as parts:
        said = [one for labels in parts.labels.values() for one in labels.read()]
        labelled = {one.query_id: one.annotator or "a person" for one in said}
        yield Collector(spec, ledger, parts.answer_metrics, labelled, find_embedding(parts))


def open_feeds(spec: Spec, ledger: Ledger, parts: SpecPlugins) -> list[Feed]:
    """The feeds of a spec's systems."""
    settle = seconds_of(require_monitor(spec).settle)
    feeds = [open_feed(str(spec.path), name, system, settle, ledger) for name, system in parts.systems.items()]
    for feed in feeds[1:]:
        feed.prefix = f"{feed.name}/"
    return feeds


def forget(spec: Spec, ledger: Ledger, *, trace: str | None, user: str | None) -> int:
    """Remove the texts of one trace, or of all of a user, wherever they are; how many traces had any."""
    gathered = set() if user is None else find_traces_of(ledger, user)
    named = gathered if trace is None else {name_spans(trace)}
    folder = spec.folder / SPOOL_FOLDER / "monitor"
    spooled = forget_requests(folder, named, lambda span: user is not None and text_of(span, "user") == user)
    return ledger.forget(trace_id=trace, user=user, gathered=gathered | spooled)


def open_feed(where: str, name: str, system: Any, settle: float, ledger: Ledger) -> Feed:
    """The feed of a system; `where` is the spec.

    Raises:
        UsageError: nobody records the traces of this system, or its block names something that does not grow.
    """
    node, context = system.node, system.context
    if (fault := system.find_watch_fault()) is not None:
        raise UsageError(f"{where}: systems.{name}: {fault.message}; {fault.hint}")
    if isinstance(node, FileNode):
        named = {part: value for part, value in node.columns.model_dump().items() if value is not None}
        reader = RowReader(node.layout, named)
        return FileFeed(name, settle, context.resolve(node.path), reader, ledger.find_questions)
    if not isinstance(node, OtelFilesNode):
        return ToolFeed(name, settle, open_part(system.source_type, system))
    if node.listen is None:
        return SpanFileFeed(name, settle, ledger, context.resolve(node.path))
    token = None if node.token is None else node.token.reveal()
    folder = context.resolve(SPOOL_FOLDER / "monitor")
    return ReceiverFeed(name, settle, ledger, split_address(node.listen, USUAL_PORT), folder, token)


_RECENT = 200
"""How many of the last traces show which columns traces have."""


def list_remarks(node: MonitorNode, ledger: Ledger, series: Mapping[str, Series]) -> Iterator[tuple[str, str]]:
    """A remark for each part of the spec that comes to nothing, with a key by which it is told once."""
    columns = {"sample.by": node.sample.by, "ab.by": None if node.ab is None else node.ab.by}
    wanted = {place: column for place, column in columns.items() if column is not None}
    traces = ledger.read_recent(_RECENT) if wanted else []
    for place, column in wanted.items():
        if traces and all(name_group(one, column) is None for one in traces):
            names = dict.fromkeys(name for one in traces for name, _ in one.list_columns())
            has = make_visible(list_keys([*names])) if names else "none"
            recent = count_noun(len(traces), "trace")
            yield place, f"{place}: no column '{make_visible(column)}' in the last {recent}; the columns are {has}"
    for one in series.values():
        counts = ledger.count(one.id)
        if counts["filtered"] and not counts["judged"]:
            why = make_visible(ledger.read_reason(one.id) or "no reason is known")
            traces_left = count_noun(counts["filtered"], "trace")
            yield one.name, f"{one.name} has no value for any of {traces_left}: {why}"
