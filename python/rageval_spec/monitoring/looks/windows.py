"""Windows: the judged values of a stretch of time, or of the last queries, as numbers with intervals.

A window is of the traces' own time. Stretches that follow one another begin at whole multiples of their length since
1970, in UTC; the latest that is over counts, once the traces of its end have had time to come. A window that slides
ends at that moment. What comes later still changes the numbers of the window that it belongs to when that is read
again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

from rageval_spec.data.outcomes import Correction, Interval
from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass, field
from rageval_spec.libraries import Floats, np
from rageval_spec.monitoring.ledger import COUNTED, Ledger, State
from rageval_spec.monitoring.tables import PANE, choose_minutes
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.spec.blocks.monitor import WindowNode
from rageval_spec.statistics.intervals import ResamplingSettings
from rageval_spec.statistics.level_sequences import estimate_mean, lay_out_weights
from rageval_spec.statistics.mean_intervals import compute_range, list_bounds
from rageval_spec.statistics.weighted_clusters import Placed, compute_percentile, compute_percentile_interval
from rageval_spec.statistics.window_summaries import MANY, WindowSummary, find_middle
from rageval_spec.wording import read_duration

LATENESS = 60.0
"""Seconds that the traces of a window's end have to come, besides the time in which they settle."""
_PAGE, _MOST_PASSED = 100, 1000
"""How many of the worst answers are looked up at once, and how many may have lost their texts."""
PERCENTS = (50, 95, 99)
"""The percentiles of a window that are shown."""
_MOMENTS: Mapping[str, str] = {
    "weights": "weight",
    "squared_weights": "weight2",
    "weighted": "value",
    "squares": "value2",
    "squared_weighted": "weight2_value",
    "squared_squares": "weight2_value2",
}
"""The sums of panes, and what they are called in a summary."""


class Span(NamedTuple):
    """A stretch of time, in seconds since 1970; the end is not in it."""

    start: float
    end: float


class MissingValues(NamedTuple):
    """Traces without a value in a series that have one state and one reason."""

    state: str
    reason: str | None
    traces: int


@dataclass(frozen=True)
class WindowValues:
    """The judged values of one series in a window, in the order of the traces' time; arrays of shape (n,)."""

    trace_ids: Sequence[str]
    values: Floats
    weights: Floats
    started: Floats

    @property
    def count(self) -> int:
        return len(self.values)

    def find_span(self, now: float) -> Span:
        """From the first trace to the second after the last; `now` without any."""
        return Span(float(self.started[0]), float(self.started[-1]) + 1) if self.count else Span(now, now)

    def find_percentile(self, percent: int) -> float | None:
        """The weighted percentile; None without values."""
        return compute_percentile(self.values, percent, self.weights / self.weights.sum()) if self.count else None


Found: TypeAlias = WindowValues | WindowSummary
"""The values of a window, or the summary of very many."""


@dataclass(frozen=True)
class WindowNumbers:
    """What a window of one series comes to.

    Attributes:
        span: the time that it covers.
        counts: the traces that began in it, by state; `waiting` are those that failed and are to be tried again.
        value: the weighted mean, or the percentile that the metric is of; None without a judged trace.
        interval: of `value`; None if it cannot be computed, as for fewer than two values.
        cost: the dollars that judging it took, as far as they are known.
        correction: what people's labels made of the judge's mean, if the metric names labels; or why nothing.
    """

    metric: str
    window: str
    span: Span
    counts: Mapping[State, int]
    samples: int
    value: float | None = None
    interval: Interval | None = None
    percentiles: Mapping[int, float] = field(default_factory=dict)
    cost: float = 0.0
    correction: Correction | None = None

    @property
    def coverage(self) -> float | None:
        """The share of the traces in the sample that got a value; None if none is in it."""
        tried = sum(self.counts.get(state, 0) for state in ("judged", "failed", "over_budget", "waiting"))
        return self.counts["judged"] / tried if tried else None

    @property
    def is_corrected(self) -> bool:
        """Whether `value` is not what the judge's values come to, but what people's labels made of it."""
        return self.correction is not None and self.correction.reason is None

    def list_evidence(self) -> dict[str, Any]:
        """What messages of alerts tell of it."""
        return {name: getattr(self, name) for name in ("window", "value", "interval", "samples")}


Corrector: TypeAlias = Callable[[Series, WindowValues, WindowNumbers, float], WindowNumbers]
"""Corrects the numbers of values by what people say of some of them, at a level of confidence."""


@dataclass(frozen=True)
class WindowReader:
    """Reads windows from a ledger.

    Attributes:
        settle: the seconds from the end of a trace until it is judged; with a tool, it is asked for it first.
        statistics: how intervals are computed.
        corrector: corrects means by labels; None where no metric has any.
    """

    ledger: Ledger
    settle: float
    statistics: ResamplingSettings
    corrector: Corrector | None = None

    def find_span(self, window: WindowNode, now: float) -> Span:
        """The latest stretch of a window of time."""
        assert window.seconds is not None, "a window of queries has no length"
        latest = now - self.settle - LATENESS
        end = latest if window.slide else latest // window.seconds * window.seconds
        return Span(end - window.seconds, end)

    def read(self, series: Series, window: WindowNode, now: float) -> WindowNumbers:
        """The numbers of the latest window of a series."""
        span, found = self.find(series, window, now)
        return self.describe(series, window.name, span, found)

    def find(self, series: Series, window: WindowNode, now: float) -> tuple[Span, Found]:
        """The latest window of a series: its time, and its values, or the summary of very many."""
        if window.queries is not None:
            last = self.read_last(series, window.queries)
            return last.find_span(now), last
        span = self.find_span(window, now)
        return span, self.read_or_sum(series, span)

    def read_or_sum(self, series: Series, span: Span) -> Found:
        """The judged values of a stretch of time, or their summary by whole minutes if there are more than `MANY`."""
        is_many = self.read_counts(series, span)["judged"] > MANY
        return self.read_summary(series, span) if is_many else self.read_values(series, span)

    def read_summary(self, series: Series, span: Span) -> WindowSummary:
        """The summary of the judged values of the whole minutes of a stretch of time, from the sums of panes."""
        within = (series.id, math.ceil(span.start / PANE) * PANE, math.floor(span.end / PANE) * PANE)
        sums = ", ".join(f"COALESCE(SUM({name}), 0)" for name in ("judged", *_MOMENTS))
        of_panes = f"SELECT {sums} FROM rageval_panes WHERE series = ? AND pane >= ? AND pane < ?"
        ((count, *moments),) = self.ledger.connection.execute(of_panes, within)
        rows = self.ledger.connection.execute(
            "SELECT bucket, SUM(units) FROM rageval_buckets WHERE series = ? AND pane >= ? AND pane < ? "
            "GROUP BY bucket HAVING SUM(units) > 0 ORDER BY bucket",
            within,
        )
        buckets = {int(bucket): int(units) for bucket, units in rows}
        exact = {name: Fraction(total) for name, total in zip(_MOMENTS.values(), moments, strict=True)}
        ends = [find_middle(bucket) for bucket in (min(buckets), max(buckets))] if buckets else [None, None]
        return WindowSummary(int(count), exact, buckets, *ends)

    def read_values(self, series: Series, span: Span) -> WindowValues:
        """The judged values of the traces that began in a stretch of time."""
        return _collect(self.ledger.connection.execute(f"{_VALUES} {_WITHIN} {_IN_ORDER}", (series.id, *span)))

    def read_part(self, series: Series, span: Span, counted_before: float) -> WindowValues:
        """The same of those that were first judged before a time; of every so many minutes, if there are very many."""
        chosen = choose_minutes("started", self.read_counts(series, span)["judged"], MANY)
        parts = (series.id, *span, counted_before)
        rows = self.ledger.connection.execute(f"{_VALUES} {_WITHIN} AND counted < ? AND {chosen} {_IN_ORDER}", parts)
        return _collect(rows)

    def read_last(self, series: Series, count: int) -> WindowValues:
        """The judged values of the last traces."""
        rows = self.ledger.connection.execute(
            f"{_VALUES} ORDER BY started DESC, trace_id DESC LIMIT ?", (series.id, count)
        )
        return _collect(rows[::-1])

    def read_worst(
        self, series: Series, span: Sequence[float], most: int, *, highest: bool
    ) -> list[tuple[Trace, float, str | None]]:
        """The traces of a stretch of time with the lowest or highest values, whose texts are still kept."""
        order, found = "DESC" if highest else "ASC", list[tuple[Trace, float, str | None]]()
        for skipped in range(0, _MOST_PASSED, _PAGE):  # joined with the texts at once, this would read all of them
            rows = self.ledger.connection.execute(
                "SELECT trace_id, value, reason FROM rageval_judgements WHERE series = ? AND state = 'judged' "
                f"AND started >= ? AND started < ? ORDER BY value {order}, started DESC LIMIT ? OFFSET ?",
                (series.id, *span, _PAGE, skipped),
            )
            traces = self.ledger.read_traces([row[0] for row in rows])
            found += [(traces[name].trace, value, reason) for name, value, reason in rows if name in traces]
            if len(found) >= most or len(rows) < _PAGE:
                break
        return found[:most]

    def describe(self, series: Series, name: str, span: Span, found: Found) -> WindowNumbers:
        """The numbers of values of a window."""
        counts, cost = self._sum(series, span)
        ((counts["waiting"],),) = self.ledger.connection.execute(
            "SELECT COUNT(*) FROM rageval_judgements WHERE series = ? AND retry_at IS NOT NULL "
            "AND started >= ? AND started < ?",
            (series.id, *span),
        )
        value, interval = summarize(series, found, self.statistics)
        percentiles = {one: at for one in PERCENTS if (at := found.find_percentile(one)) is not None}
        numbers = WindowNumbers(series.name, name, span, counts, found.count, value, interval, percentiles, cost)
        return self.correct(series, found, numbers)

    def correct(
        self, series: Series, found: Found, numbers: WindowNumbers, confidence: float | None = None
    ) -> WindowNumbers:
        """Numbers corrected by labels, where the metric names any and the values are not too many."""
        if self.corrector is None or isinstance(found, WindowSummary):
            return numbers
        return self.corrector(series, found, numbers, confidence or self.statistics.confidence)

    def read_counts(self, series: Series, span: Span) -> dict[State, int]:
        """The traces that began in a stretch of time, by state, to the minute."""
        return self._sum(series, span)[0]

    def count_reasons(self, series: int, span: Sequence[float], tries: int) -> list[MissingValues]:
        """What became of the traces of a stretch of time without a value, and why: the most frequent reason first.

        Those that wait to be tried again count if they failed more often than `tries`.
        """
        rows = self.ledger.connection.execute(
            "SELECT state, reason, COUNT(*) FROM rageval_judgements WHERE series = ? AND started >= ? AND started < ? "
            "AND state <> 'judged' AND (state <> 'waiting' OR tries > ?) GROUP BY state, reason "
            "ORDER BY COUNT(*) DESC, reason",
            (series, *span, tries),
        )
        return [MissingValues(*row) for row in rows]

    def find_last_judged(self, series: int) -> float | None:
        """The minute of the newest trace with a value; None without one."""
        ((last,),) = self.ledger.connection.execute(
            "SELECT MAX(pane) FROM rageval_panes WHERE series = ? AND judged > 0", (series,)
        )
        return None if last is None else float(last)

    def _sum(self, series: Series, span: Span) -> tuple[dict[State, int], float]:
        sums = ", ".join(f"COALESCE(SUM({name}), 0)" for name in (*COUNTED, "cost"))
        (row,) = self.ledger.connection.execute(
            f"SELECT {sums} FROM rageval_panes WHERE series = ? AND pane > ? AND pane < ?",
            (series.id, span.start - PANE, span.end),
        )
        return dict(zip(COUNTED, map(int, row[:-1]), strict=True)), float(row[-1])


_WITHIN, _IN_ORDER = "AND started >= ? AND started < ?", "ORDER BY started, trace_id"
_VALUES = "SELECT trace_id, value, weight, started FROM rageval_judgements WHERE series = ? AND state = 'judged'"


def _collect(rows: Sequence[Sequence[object]]) -> WindowValues:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    numbers = [np.array(column, dtype=np.float64) for column in columns[1:]]
    return WindowValues([str(one) for one in columns[0]], *numbers)


def summarize(series: Series, found: Found, settings: ResamplingSettings) -> tuple[float | None, Interval | None]:
    """The weighted mean of values and its interval, or the weighted percentile that the metric is of.

    A percentile of a sketch has no interval: it is within 1 % of the value.
    """
    if series.percent is not None:
        value = found.find_percentile(series.percent)
        if isinstance(found, WindowSummary) or not found.count:
            return value, None
        placed = Placed(found.values, lay_out_weights(found.weights), f"p{series.percent}")
        return value, compute_percentile_interval(placed, settings.confidence)
    if isinstance(found, WindowSummary):
        if found.mean is None or found.error is None:
            return found.mean, None
        reach = NormalDist().inv_cdf((1 + settings.confidence) / 2) * found.error
        return found.mean, Interval(found.mean - reach, found.mean + reach, settings.confidence, "normal")
    bounds = compute_range(list_bounds(series.metric), "mean", found.values.tolist())
    estimate = estimate_mean(found.values, found.weights, value_range=bounds, settings=settings)
    return (None, None) if estimate is None else (estimate.mean, estimate.interval)


def choose_window(name: str | None, windows: Sequence[WindowNode]) -> WindowNode:
    """The window that an alert names: an entry of `windows:`, or a length; the first one if it names none."""
    if name is None:
        return windows[0] if windows else WindowNode(name="hour", length="1h")
    found = next((one for one in windows if one.name == name), None)
    if found is None:
        assert read_duration(name), "names of windows are checked when a spec is read"
        return WindowNode(name=name, length=name)
    return found
