"""A monitor's numbers as metrics that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from rageval_spec.drawing.openmetrics import MetricFamily, render_families
from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.ledger import STATES
from rageval_spec.monitoring.looking import Watch
from rageval_spec.monitoring.service import Progress


def render_metrics(watch: Watch, book: AlertBook, progress: Progress, now: float) -> bytes:
    """The text of `/metrics`. A number that is not known has no line; it is never 0."""
    return render_families(list_families(watch, book, progress, now))


def list_families(watch: Watch, book: AlertBook, progress: Progress, now: float) -> Iterator[MetricFamily]:
    """The metrics with their samples."""
    own = {"monitor": book.monitor}
    yield MetricFamily("rageval_monitor", "The version of the program.",
                       [({**own, "version": version("rageval-spec")}, 1)])  # fmt: skip
    yield from _list_ledger(watch, own, now)
    yield from _list_windows(watch, own, now)
    rows = book.read()
    firing = [({**own, "alert": row.alert, "severity": row.severity or ""}, row.state == "firing") for row in rows]
    yield MetricFamily("rageval_alert_firing", "Whether an alert fires: 1 or 0.", firing)
    waiting = [(own, len(book.list_undelivered()))]
    yield MetricFamily("rageval_messages_waiting", "Messages of alerts that no notifier has taken yet.", waiting)
    polls = [({**own, "feed": name}, at) for name, at in progress.polled.items()]
    yield MetricFamily("rageval_feed_polled_seconds", "When a feed was last read, in seconds since 1970.", polls)
    unread = [(own, progress.unread)]
    yield MetricFamily("rageval_rows_unread", "Rows that could not be read since the start.", unread, "counter")


def _list_ledger(watch: Watch, own: dict[str, str], now: float) -> Iterator[MetricFamily]:
    counts = {one.name: watch.ledger.count(one.id) for one in watch.series.values()}
    settled = [({**own, "metric": name, "state": state}, of[state]) for name, of in counts.items() for state in STATES]
    yield MetricFamily("rageval_traces", "Traces by metric and state: all states add up to the traces seen.", settled)
    yield MetricFamily("rageval_traces_seen", "All traces that were seen.", [(own, watch.ledger.count_traces())])
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
    yield MetricFamily("rageval_window_coverage", "The share of the sample that got a value.", coverage)
    shown = [({**labels, "percentile": str(percent)}, number) for labels, one in cells
             for percent, number in (one.percentiles or {}).items()]  # fmt: skip
    yield MetricFamily("rageval_window_percentile", "Percentiles of the values in the last window.", shown)
    cost = [(labels, one.cost) for labels, one in cells if one.cost]
    yield MetricFamily("rageval_window_cost_dollars", "What judging the last window took, as far as it is known.", cost)
