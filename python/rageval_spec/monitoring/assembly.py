"""From a spec with `monitor:` to the loop that watches production."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from rageval_spec import registry
from rageval_spec.diagnostics import make_visible
from rageval_spec.endpoints.http_server import split_address
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.otel.source import SPOOL_FOLDER, USUAL_PORT, OtelFilesNode
from rageval_spec.exchange.shared.contracts import open_part
from rageval_spec.history.database import locate, open_history
from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.exposition import render_metrics
from rageval_spec.monitoring.feeds.contract import Feed
from rageval_spec.monitoring.feeds.row_files import FileFeed, RowReader
from rageval_spec.monitoring.feeds.spans import ReceiverFeed, SpanFileFeed
from rageval_spec.monitoring.feeds.tools import ToolFeed
from rageval_spec.monitoring.inspection.collection import Collector
from rageval_spec.monitoring.inspection.page import PageWriter
from rageval_spec.monitoring.inspection.redaction import Redaction
from rageval_spec.monitoring.ledger import Ledger, name_group
from rageval_spec.monitoring.looks.baselines import choose_baseline
from rageval_spec.monitoring.looks.label_corrections import LabelCorrector
from rageval_spec.monitoring.looks.looking import Watch
from rageval_spec.monitoring.looks.what_changed import ChangeExplainer
from rageval_spec.monitoring.looks.windows import WindowReader
from rageval_spec.monitoring.service import MonitorLoop, name_owner
from rageval_spec.monitoring.traces.filling import Filler
from rageval_spec.monitoring.traces.sampling import Sampler, Spending
from rageval_spec.monitoring.traces.trace_judging import Series, TraceJudge
from rageval_spec.pipeline.execution.anchor_judging import JudgeDrift, ask_again
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts
from rageval_spec.plugin import Context, EmbeddingModel, Notifier
from rageval_spec.plugin.budget import Budget
from rageval_spec.progress import ProgressDisplay
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.spec.blocks.monitor import MonitorNode, read_rate, read_share, seconds_of
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.store.store import open_store
from rageval_spec.systems.file import FileNode
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
    """The ledger of a spec's monitor, in its history."""
    place = locate(spec.history, spec.folder)
    if place is None:
        raise UsageError(f"{spec.path}: a monitor keeps its ledger in the history; remove 'history: none'")
    with open_history(place) as history:
        by = None if spec.monitor is None or spec.monitor.ab is None else spec.monitor.ab.by
        yield Ledger(history.connection, spec.name, name_owner(), by)


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
    with open_ledger(spec) as ledger:
        store = open_store(spec.folder / STORE)
        try:
            budget = Budget()
            parts = build_parts(spec, display.counting, store.answers, store.fingerprint, budget)
            spending = Spending(ledger.connection, spec.name, node.budget, budget)
            judge = TraceJudge(parts, ledger, seconds_of(node.retry_for), clock(), spending, begin=not is_plan)
            if not is_plan:
                with display.showing("load the metrics"):
                    judge.prepare()
            sample = node.sample
            kept = ledger.count_kept(clock() - _KEPT_FOR)
            sampler = Sampler(read_share(sample.rate), sample.at_least, sample.by, sample.always, kept)
            settle = seconds_of(node.settle)
            feeds: list[Feed] = [
                open_feed(str(spec.path), name, system, settle, ledger) for name, system in parts.systems.items()
            ]
            every = seconds_of(node.every)
            corrector = LabelCorrector(ledger, parts.labels)
            reader = WindowReader(ledger, settle, spec.statistics, corrector.correct)
            notifiers = {one.name: one for one in parts.notifiers}
            baseline, explainer = choose_baseline(spec, parts, node.baseline), make_explainer(spec, ledger, parts)
            watch = Watch(node, ledger, reader, judge.series, every, baseline, explainer)
            teller = Teller(watch, open_book(spec, ledger), notifiers, Redaction(spec.redact))
            filler = Filler(ledger, judge, parts, 0.0)
            keep = seconds_of(node.keep)

            def prune(now: float) -> None:
                ledger.prune_texts(now - keep)

            loop = MonitorLoop(ledger, feeds, judge, sampler, every, filler, [teller.look, prune], clock, [teller.tell])
            loop.display = display
            loop.find_remarks = lambda: dict(list_remarks(node, ledger, judge.series))
            if node.serve is not None:
                loop.publish = partial(render_metrics, watch, teller.book, loop.progress)
            if node.page is not None:
                page = make_page(spec, ledger, parts, spec.folder / node.page)
                loop.ticks = [*loop.ticks, lambda now: write_page(page, loop, now)]
            teller.complaints = loop.progress.complaints
            try:
                yield loop
            finally:
                for one in notifiers.values():
                    one.close()
        finally:
            store.close()


def find_embedding(parts: SpecPlugins) -> EmbeddingModel[Any] | None:
    """The first embedding model of a spec; None without one."""
    return next((one for one in parts.models.values() if isinstance(one, EmbeddingModel)), None)


def make_explainer(spec: Spec, ledger: Ledger, parts: SpecPlugins) -> ChangeExplainer:
    """Finds what moved, with the spec's embedding model and its anchors, where there are any."""
    node, embedding = require_monitor(spec), find_embedding(parts)
    if node.anchors is None:
        return ChangeExplainer(ledger, embedding)
    path, budget = spec.folder / node.anchors, node.budget
    calls, cost = (None if rate is None else read_rate(rate).events for rate in (budget.calls, budget.cost))

    def ask(metric: str) -> JudgeDrift | None:
        return ask_again(spec, path, metric, Budget(None if calls is None else int(calls), cost))

    return ChangeExplainer(ledger, embedding, ask)


@dataclass
class Teller:
    """Looks at the numbers, writes down what alerts came to, and tells the notifiers.

    Attributes:
        redaction: what messages leave out.
        complaints: why notifiers took nothing last, by `monitor.notify.` and their name.
    """

    watch: Watch
    book: AlertBook
    notifiers: Mapping[str, Notifier[Any]]
    redaction: Redaction = field(default_factory=Redaction)
    complaints: dict[str, str] = field(default_factory=dict)
    _refreshed: dict[str, float] = field(default_factory=dict)

    def look(self, now: float) -> None:
        """Look once. An alert that is no longer in the spec is over."""
        firing = {row.alert for row in self.book.read() if row.state == "firing"}
        found = self.watch.look(now, firing)
        looks = [replace(one, evidence=self.redaction.hide_evidence(one.evidence)) for one in found]
        self.book.record([*looks, *self.book.list_removed(looks)], list(self.notifiers), now)

    def tell(self, now: float) -> None:
        """Send what is due, and remind those who forget of what still fires."""
        self.book.deliver(self.notifiers, now, self._note)
        for name, notifier in self.notifiers.items():
            every = notifier.refresh_every
            if every is not None and now >= self._refreshed.get(name, 0.0) + every:
                self._refreshed[name] = now
                self._note(name, self.book.refresh(name, notifier))

    def _note(self, name: str, reason: str | None) -> None:
        where = self.notifiers[name].where
        self.complaints.pop(where, None)
        if reason is not None:
            self.complaints[where] = reason


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
    return AlertBook(ledger.connection, spec.name, node.page_url or node.page)


def make_page(spec: Spec, ledger: Ledger, parts: SpecPlugins, path: Path) -> PageWriter:
    """What writes the page of a spec's monitor to a file."""
    node = require_monitor(spec)
    reader = WindowReader(ledger, seconds_of(node.settle), spec.statistics)
    return PageWriter(node, reader, parts.answer_metrics, open_book(spec, ledger), Redaction(spec.redact), path)


def write_page(page: PageWriter, loop: MonitorLoop, now: float) -> None:
    """Write the page. A page that cannot be written does not stop the monitor."""
    try:
        page.write(now)
    except RagevalError as error:
        loop.complain(str(error))


@contextmanager
def open_collector(spec: Spec) -> Iterator[Collector]:
    """What chooses answers of a spec's monitor for a test set."""
    require_monitor(spec)
    with open_ledger(spec) as ledger:
        store = open_store(spec.folder / STORE)
        try:
            parts = build_parts(spec, answers=store.answers, fingerprint=store.fingerprint)
            said = [one for labels in parts.labels.values() for one in labels.read()]
            labelled = {one.query_id: one.annotator or "a person" for one in said}
            yield Collector(spec, ledger, parts.answer_metrics, labelled, find_embedding(parts))
        finally:
            store.close()


def open_feed(where: str, name: str, system: Any, settle: float, ledger: Ledger) -> Feed:
    """The feed of a system; `where` is the spec.

    Raises:
        UsageError: nobody records the traces of this system, or its block names something that does not grow.
    """
    node = system.node
    if (fault := system.find_watch_fault()) is not None:
        raise UsageError(f"{where}: systems.{name}: {fault.message}; {fault.hint}")
    if isinstance(node, FileNode):
        named = {part: value for part, value in node.columns.model_dump().items() if value is not None}
        reader = RowReader(node.layout, named)
        return FileFeed(name, settle, system.context.resolve(node.path), reader, ledger.find_questions)
    if isinstance(node, OtelFilesNode):
        return _open_spans(name, system, settle, ledger)
    return ToolFeed(name, settle, open_part(system.source_type, system))


def _open_spans(name: str, system: Any, settle: float, ledger: Ledger) -> Feed:
    node, context = system.node, system.context
    if node.listen is not None:
        token = None if node.token is None else node.token.reveal()
        folder = context.resolve(SPOOL_FOLDER / "monitor")
        return ReceiverFeed(name, settle, ledger, split_address(node.listen, USUAL_PORT), folder, token)
    return SpanFileFeed(name, settle, ledger, context.resolve(node.path))


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
