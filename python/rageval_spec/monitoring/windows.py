"""Windows: the judged values of a stretch of time, or of the last queries, as numbers with intervals.

A window is of the traces' own time. Stretches that follow one another begin at whole multiples of their length since
1970, in UTC; the latest that is over counts, once the traces of its end have had time to come. A window that slides
ends at that moment. What comes later still changes the numbers of the window that it belongs to when that is read
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Floats, np
from rageval_spec.monitoring.ledger import COUNTED, PANE, Ledger, State
from rageval_spec.monitoring.trace_judging import Series
from rageval_spec.spec.blocks.monitor import WindowNode
from rageval_spec.statistics.intervals import ResamplingSettings
from rageval_spec.statistics.mean_intervals import MeanValues, compute_mean_interval, compute_range, list_bounds
from rageval_spec.statistics.percentiles import compute_percentile, compute_percentile_interval, read_percentile
from rageval_spec.statistics.weighted_clusters import Layout
from rageval_spec.wording import read_duration

LATENESS = 60.0
"""Seconds that the traces of a window's end have to come, besides the time in which they settle."""
PERCENTS = (50, 95, 99)
"""The percentiles of a window that are shown."""


class Span(NamedTuple):
    """A stretch of time, in seconds since 1970; the end is not in it."""

    start: float
    end: float


@dataclass(frozen=True)
class WindowValues:
    """The judged values of one series in a window, in the order of the traces' time; arrays of shape (n,)."""

    trace_ids: Sequence[str]
    values: Floats
    weights: Floats
    started: Floats


@dataclass(frozen=True)
class WindowNumbers:
    """What a window of one series comes to.

    Attributes:
        span: the time that it covers.
        counts: the traces that began in it, by state; those that wait are not in it.
        value: the weighted mean, or the percentile that the metric is of; None without a judged trace.
        interval: of `value`; None if it cannot be computed, as for fewer than two values.
        percentiles: those of `PERCENTS`.
        cost: the dollars that judging it took, as far as they are known.
    """

    metric: str
    window: str
    span: Span
    counts: Mapping[State, int]
    samples: int
    value: float | None = None
    interval: Interval | None = None
    percentiles: Mapping[int, float] | None = None
    cost: float = 0.0

    @property
    def coverage(self) -> float | None:
        """The share of the traces in the sample that got a value; None if none is in it."""
        tried = sum(self.counts[state] for state in ("judged", "failed", "over_budget"))
        return self.counts["judged"] / tried if tried else None


@dataclass(frozen=True)
class WindowReader:
    """Reads windows from a ledger.

    Attributes:
        settle: how long traces wait before they are judged.
        statistics: how intervals are computed.
    """

    ledger: Ledger
    settle: float
    statistics: ResamplingSettings

    def find_span(self, window: WindowNode, now: float) -> Span:
        """The latest stretch of a window of time."""
        assert window.seconds is not None, "a window of queries has no length"
        latest = now - self.settle - LATENESS
        end = latest if window.slide else latest // window.seconds * window.seconds
        return Span(end - window.seconds, end)

    def read(self, series: Series, window: WindowNode, now: float, confidence: float | None = None) -> WindowNumbers:
        """The numbers of the latest window of a series."""
        if window.queries is not None:
            found = self.read_last(series, window.queries)
            span = Span(*(found.started[[0, -1]].tolist() if len(found.values) else (now, now)))
        else:
            span = self.find_span(window, now)
            found = self.read_values(series, span)
        return self.describe(series, window.name, span, found, confidence)

    def read_values(self, series: Series, span: Span) -> WindowValues:
        """The judged values of the traces that began in a stretch of time."""
        return _collect(
            self.ledger.connection.execute(
                f"{_VALUES} AND started >= ? AND started < ? ORDER BY started, trace_id", (series.id, *span)
            )
        )

    def read_last(self, series: Series, count: int) -> WindowValues:
        """The judged values of the last traces."""
        rows = self.ledger.connection.execute(
            f"{_VALUES} ORDER BY started DESC, trace_id DESC LIMIT ?", (series.id, count)
        )
        return _collect(rows[::-1])

    def describe(
        self, series: Series, name: str, span: Span, found: WindowValues, confidence: float | None = None
    ) -> WindowNumbers:
        """The numbers of values of a window."""
        counts, cost = self._sum(series, span)
        settings = _Settings(self.statistics, confidence or self.statistics.confidence)
        value = interval = percentiles = None
        if len(found.values):
            value, interval = summarize_values(series, found, settings)
            percentiles = {one: compute_percentile(np.sort(found.values), one) for one in PERCENTS}
        return WindowNumbers(series.name, name, span, counts, len(found.values), value, interval, percentiles, cost)

    def read_counts(self, series: Series, span: Span) -> dict[State, int]:
        """The traces that began in a stretch of time, by state, to the minute."""
        return self._sum(series, span)[0]

    def _sum(self, series: Series, span: Span) -> tuple[dict[State, int], float]:
        sums = ", ".join(f"COALESCE(SUM({name}), 0)" for name in (*COUNTED, "cost"))
        (row,) = self.ledger.connection.execute(
            f"SELECT {sums} FROM rageval_panes WHERE series = ? AND pane > ? AND pane < ?",
            (series.id, span.start - PANE, span.end),
        )
        return dict(zip(COUNTED, map(int, row[:-1]), strict=True)), float(row[-1])


_VALUES = "SELECT trace_id, value, weight, started FROM rageval_judgements WHERE series = ? AND state = 'judged'"


def _collect(rows: Sequence[Sequence[object]]) -> WindowValues:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    numbers = [np.array(column, dtype=np.float64) for column in columns[1:]]
    return WindowValues([str(one) for one in columns[0]], *numbers)


class _Settings(NamedTuple):
    """The settings of the spec, at another level of confidence."""

    base: ResamplingSettings
    confidence: float

    @property
    def resamples(self) -> int:
        return self.base.resamples

    @property
    def permutations(self) -> int:
        return self.base.permutations

    @property
    def seed(self) -> int:
        return self.base.seed


def summarize_values(
    series: Series, found: WindowValues, settings: ResamplingSettings
) -> tuple[float, Interval | None]:
    """The weighted mean of values and its interval, or the percentile that the metric is of.

    Percentiles are of the values as they are: a sample in which strata have rates of their own has those of the
    sample.
    """
    percent = None if series.metric is None else read_percentile(series.metric.statistic)
    if percent is not None:
        ordered = np.sort(found.values)
        ends = compute_percentile_interval(ordered, percent, settings.confidence)
        interval = None if ends is None else Interval(*ends, settings.confidence, "order statistics")
        return compute_percentile(ordered, percent), interval
    bounds = compute_range(list_bounds(series.metric), "mean", found.values.tolist())
    weights = found.weights / found.weights.sum()
    count = len(weights)
    layout = Layout(np.arange(count), weights, np.arange(count), np.zeros(count, dtype=np.int64), np.ones(1), 0.0,
                    is_weighted=bool(np.ptp(weights)), is_clustered=False)  # fmt: skip
    interval = compute_mean_interval(MeanValues(found.values, bounds, None if layout.is_plain else layout), settings)
    return float((weights * found.values).sum()), interval


def choose_window(name: str | None, windows: Sequence[WindowNode]) -> WindowNode:
    """The window that an alert names: an entry of `windows:`, or a length; the first one if it names none."""
    if name is None:
        return windows[0] if windows else WindowNode(name="hour", length="1h")
    found = next((one for one in windows if one.name == name), None)
    if found is None:
        assert read_duration(name), "names of windows are checked when a spec is read"
        return WindowNode(name=name, length=name)
    return found


def count_by_state(numbers: WindowNumbers) -> Iterator[tuple[State, int]]:
    """The states that any trace of a window has, with their counts."""
    yield from ((state, count) for state, count in numbers.counts.items() if count)
