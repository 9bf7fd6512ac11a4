"""A monitor's numbers as metrics that Prometheus reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rageval_spec.dataclass import dataclass, field
from rageval_spec.drawing.openmetrics import MetricFamily
from rageval_spec.kernels import version
from rageval_spec.monitoring.alerts import AlertBook, load_message
from rageval_spec.monitoring.looks.experiments import Experiment
from rageval_spec.monitoring.looks.looking import Watch, list_alerts, name_experiment
from rageval_spec.monitoring.outputs.outbox import Outbox
from rageval_spec.monitoring.service import Progress

_FIRING = ("firing",)
_HELD = ("pending", "firing")


@dataclass
class Exposition:
    """Lists the metrics of a monitor.

    Windows and the A/B test take a look at many rows, so they are read anew only as often as alerts are decided.
    """

    watch: Watch
    book: AlertBook
    outbox: Outbox
    progress: Progress
    _read: Sequence[MetricFamily] = field(default=(), repr=False)
    _read_at: float = -math.inf

    def list_families(self, now: float) -> list[MetricFamily]:
        """The metrics with their samples. A number that is not known has no sample; it is never 0."""
        own = {"monitor": self.book.monitor}
        if now >= self._read_at + self.watch.every:
            found = self.watch.read_experiment()
            experiment = () if found is None else _list_experiment(found, own)
            self._read, self._read_at = (*_list_windows(self.watch, own, now), *experiment), now
        built = [({**own, "version": version()}, 1)]
        return [
            MetricFamily("rageval_build_info", "The version of the program.", built),
            *_list_ledger(self.watch, own, now),
            *self._read,
            *_list_alerts(self.watch, self.book, own),
            *_list_deliveries(self.outbox, own),
            *_list_feeds(self.progress, own),
        ]


def _list_feeds(progress: Progress, own: dict[str, str]) -> Iterator[MetricFamily]:
    polls = [({**own, "feed": name}, at) for name, at in progress.polled.items()]
    told = "When a feed was last read to its end, in seconds since 1970."
    yield MetricFamily("rageval_feed_polled_timestamp_seconds", told, polls)
    unread = [(own, progress.unread)]
    yield MetricFamily("rageval_rows_unread", "Rows that could not be read since the start.", unread, "counter")


def _list_alerts(watch: Watch, book: AlertBook, own: dict[str, str]) -> Iterator[MetricFamily]:
    """Each alert of the spec, and each that ever held: two may have one name, so `alert` tells them apart."""
    metrics = {name: one.metric for name, one in watch.series.items() if one.metric is not None}
    names = {key: name for key, (name, _) in list_alerts(watch.node, metrics).items()}
    names |= {} if watch.node.ab is None else dict([name_experiment(watch.node.ab.metric, watch.node.ab.by)])
    rows = {row.alert: row for row in book.read()}
    names |= {key: load_message(row.message).name if row.message else names.get(key, key) for key, row in rows.items()}
    for name, told, states in (
        ("rageval_alert_firing", "Whether an alert fires: 1 or 0.", _FIRING),
        ("rageval_alert_holds", "Whether the condition of an alert holds, also before its 'for:': 1 or 0.", _HELD),
    ):
        samples = []
        for key, shown in names.items():
            row = rows.get(key)
            severity = "" if row is None else row.severity or ""
            samples.append(({**own, "alert": key, "name": shown, "severity": severity},
                            row is not None and row.state in states))  # fmt: skip
        yield MetricFamily(name, told, samples)
    waiting = [(own, len(book.list_undelivered()))]
    yield MetricFamily("rageval_messages_waiting", "Messages of alerts that no notifier has taken yet.", waiting)


def _list_deliveries(outbox: Outbox, own: dict[str, str]) -> Iterator[MetricFamily]:
    counts = [({**own, "destination": name}, one) for name, one in outbox.count().items()]
    waiting = [(labels, one.waiting) for labels, one in counts]
    yield MetricFamily("rageval_values_waiting", "Values that are still to be sent to a tool.", waiting)
    sent = [(labels, one.sent) for labels, one in counts]
    yield MetricFamily("rageval_values_sent", "Values that a tool has taken.", sent, "counter")
    lost = [(labels, one.left_out) for labels, one in counts]
    told = "Values that have no place at a tool, or that it refused."
    yield MetricFamily("rageval_values_left_out", told, lost, "counter")
    failures = [(labels, one.failures) for labels, one in counts]
    yield MetricFamily("rageval_destination_failures", "Tries in a row in which a tool took nothing.", failures)


def _list_ledger(watch: Watch, own: dict[str, str], now: float) -> Iterator[MetricFamily]:
    ledger, found = watch.ledger, [(one.name, one.id) for one in watch.series.values()]
    counts = {name: {**ledger.count(series), "before": ledger.count_before(series)} for name, series in found}
    settled = [({**own, "metric": name, "state": state}, count) for name, of in counts.items()
               for state, count in of.items()]  # fmt: skip
    told = "Traces by metric and state, which add up to the traces seen; 'before': settled without the metric."
    yield MetricFamily("rageval_traces", told, settled)
    seen = [(own, watch.ledger.count_traces())]
    yield MetricFamily("rageval_traces_seen", "All traces that were seen.", seen, "counter")
    overdue = watch.ledger.find_oldest_due(now)
    lag = [(own, 0.0 if overdue is None else now - overdue)]
    yield MetricFamily("rageval_lag_seconds", "How long the trace waits that has been due for longest.", lag)


def _list_windows(watch: Watch, own: dict[str, str], now: float) -> Iterator[MetricFamily]:
    cells = [({**own, "metric": one.metric, "window": one.window}, one) for one in watch.read_windows(now)]
    value = [(labels, one.value) for labels, one in cells]
    yield MetricFamily("rageval_window_value", "The number of a metric in its last window.", value)
    for side in ("low", "high"):
        ends = [(labels, getattr(one.interval, side)) for labels, one in cells if one.interval is not None]
        told = f"The {side} end of the confidence interval of rageval_window_value."
        yield MetricFamily(f"rageval_window_{side}", told, ends)
    samples = [(labels, one.samples) for labels, one in cells]
    yield MetricFamily("rageval_window_samples", "Judged traces in the last window.", samples)
    coverage = [(labels, one.coverage) for labels, one in cells]
    yield MetricFamily("rageval_window_coverage_ratio", "The share of the sample that got a value.", coverage)
    shown = [({**labels, "percentile": str(percent)}, number) for labels, one in cells
             for percent, number in one.percentiles.items()]  # fmt: skip
    yield MetricFamily("rageval_window_percentile", "Percentiles of the values in the last window.", shown)
    cost = [(labels, one.cost) for labels, one in cells if one.cost]
    yield MetricFamily("rageval_window_cost_dollars", "What judging the last window took, as far as it is known.", cost)


def _list_experiment(found: Experiment, own: dict[str, str]) -> Iterator[MetricFamily]:
    """What an A/B test has come to; nothing of one that has no two arms."""
    labels = {**own, "metric": found.metric, "by": found.by}
    if found.shares is None:
        return
    arms = [{**labels, "arm": name} for name in found.names]
    shares = [*zip(arms, found.shares.shares, strict=False)]  # none before the first trace
    yield MetricFamily("rageval_ab_share_ratio", "The share of the traces that an arm of the A/B test gets.", shares)
    told = "The p-value of the shares that were set, at any time: near 0, traces of an arm are lost."
    yield MetricFamily("rageval_ab_share_p_value", told, [(labels, found.shares.sequential)])
    counts = [(arm, one.count) for arm, one in zip(arms, found.arms, strict=True)]
    yield MetricFamily("rageval_ab_samples", "Judged traces of an arm since the test began.", counts)
    means = [(arm, one.mean) for arm, one in zip(arms, found.arms, strict=True)]
    yield MetricFamily("rageval_ab_mean", "The mean of an arm.", means)
    if found.test is None:
        return
    labels = {**labels, "first": found.names[0], "second": found.names[1]}
    told = "The mean of the second arm less that of the first."
    yield MetricFamily("rageval_ab_difference", told, [(labels, found.test.difference)])
    for side in ("low", "high"):
        told = f"The {side} end of the interval of rageval_ab_difference, which holds at any time."
        yield MetricFamily(f"rageval_ab_difference_{side}", told, [(labels, getattr(found.test.interval, side))])
