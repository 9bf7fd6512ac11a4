"""A look at the numbers: what each alert of the spec comes to at a moment.

- A **level** alert holds if the window's number is worse than its bound beyond doubt: the whole interval is, at a
  confidence from which the allowed false alarms follow. It is clear once the number itself meets the bound again.
- A **change** alert holds from when its detector is certain that the mean has moved until it has come back.
- **Coverage** holds if traces were to be judged, and a metric judged none; if traces wait far longer than they should;
  or if a feed could not be read for longer than three polls.

Too few judged traces decide nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rageval_spec.data.alerts import AlertSeverity, WorstAnswer
from rageval_spec.monitoring.alerts import Look
from rageval_spec.monitoring.detectors import LEAST_BASELINE, ChangeRule, Detectors
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.trace_judging import Series
from rageval_spec.monitoring.windows import Span, WindowNumbers, WindowReader, choose_window
from rageval_spec.recorded.values import write_time
from rageval_spec.spec.blocks.monitor import COVERAGE, AlertNode, BaselineNode, MonitorNode, read_rate
from rageval_spec.statistics.change_detection import Change, share_false_alarms
from rageval_spec.wording import count_noun, format_interval, format_number, read_duration

_DAY = 86_400
_WORST = 3
_COVERAGE_SPAN = 3600.0
"""The stretch in which a metric must have judged something if traces came."""
_LATE_LOOKS = 6
"""How many polls a trace may be overdue."""
_BASELINE_DAYS = 7.0


@dataclass(frozen=True)
class Watch:
    """Looks at the numbers of one monitor.

    Attributes:
        every: the seconds between two looks.
        series: the series of each metric at present.
    """

    node: MonitorNode
    ledger: Ledger
    reader: WindowReader
    series: Mapping[str, Series]
    every: float

    def look(self, now: float) -> list[Look]:
        """What each alert comes to."""
        return [one for alert in self.node.alerts for one in self._look_at(alert, now)]

    def read_windows(self, now: float) -> list[WindowNumbers]:
        """The numbers of all windows and series."""
        return [self.reader.read(one, window, now) for one in self.series.values() for window in self.node.windows]

    def _look_at(self, alert: AlertNode | str, now: float) -> Iterator[Look]:
        if isinstance(alert, str):
            yield from self._look_at_coverage(now)
        elif alert.metric not in self.series:
            yield _undecided(alert, alert.metric)
        elif alert.drift is None:
            yield self._look_at_level(alert, now)
        else:
            yield self._look_at_change(alert, now)

    def _look_at_level(self, alert: AlertNode, now: float) -> Look:
        series, window = self.series[alert.metric], choose_window(alert.window, self.node.windows)
        length = window.seconds or self.every
        looks_per_day = _DAY / (self.every if window.slide or window.seconds is None else length)
        (alpha,) = share_false_alarms(self._share(), 1.0, [looks_per_day])
        numbers = self.reader.read(series, window, now, confidence=1 - 2 * alpha)
        name = alert.name or f"{alert.metric} {_name_bound(alert, series)}"
        known = {"metric": alert.metric, "window": window.name, "value": numbers.value, "interval": numbers.interval,
                 "samples": numbers.samples, "labels": {"metric": alert.metric}}  # fmt: skip
        if numbers.samples < alert.min_samples or numbers.value is None:
            return _undecided(alert, name)
        broken = self._find_broken(alert, series, numbers)
        if broken is None:
            meets = all(not _is_worse(numbers.value, bound, series) for _, bound in _list_bounds(alert))
            told = f"{alert.metric} is {_show(numbers)} again" if meets else ""
            return _make_look(alert, name, "clear" if meets else "undecided", "warning", told, known)
        severity, bound = broken
        side = "above" if _lower_is_better(series) else "below"
        told = f"{alert.metric} is {_show(numbers)}, {side} {format_number(bound)}, in the last {window.name}"
        worst = self._find_worst(series, numbers.span)
        return _make_look(alert, name, "holds", severity, told, {**known, "bound": bound, "worst": worst})

    def _find_broken(
        self, alert: AlertNode, series: Series, numbers: WindowNumbers
    ) -> tuple[AlertSeverity, float] | None:
        """The worst of the alert's bounds that the whole interval is beyond."""
        if numbers.interval is None:
            return None
        best = numbers.interval.low if _lower_is_better(series) else numbers.interval.high
        broken = [(severity, bound) for severity, bound in _list_bounds(alert) if _is_worse(best, bound, series)]
        return broken[-1] if broken else None

    def _look_at_change(self, alert: AlertNode, now: float) -> Look:
        assert alert.drift is not None
        series = self.series[alert.metric]
        bounds = (0.0, None) if series.metric is None else series.metric.bounds
        low = bounds[0] if math.isfinite(bounds[0]) else 0.0
        rule = ChangeRule(
            _name_entry(alert), alert.drift.steps, self._share(), alert.direction == "both", (low, bounds[1]),
            self._baseline_days(), _lower_is_better(series),
        )  # fmt: skip
        reading = Detectors(self.ledger.connection, self.reader).read(rule, series, now)
        name = alert.name or f"{alert.metric} changed"
        if reading.baseline is None or reading.changes is None:
            missing = f"{reading.values} of the {LEAST_BASELINE} judged traces of a baseline"
            return _undecided(alert, name, f"{alert.metric} has {missing}")
        mean = reading.baseline.mean
        known: dict[str, Any] = {"metric": alert.metric, "bound": mean, "labels": {"metric": alert.metric}}
        if not reading.changes:
            return _make_look(alert, name, "clear", "low", f"{alert.metric} is back at {format_number(mean)}", known)
        change = max(reading.changes, key=lambda one: one.size)
        found = self.reader.read_last(series, change.values)
        numbers = self.reader.describe(series, "since the change", Span(*_ends(found.started, now)), found)
        known |= {"value": numbers.value, "interval": numbers.interval, "samples": numbers.samples,
                  "window": numbers.window, "worst": self._find_worst(series, numbers.span)}  # fmt: skip
        told = _tell_change(alert.metric, change, mean, numbers)
        return _make_look(alert, name, "holds", change.severity, told, known)

    def _look_at_coverage(self, now: float) -> Iterator[Look]:
        """A look for each metric, and one for all traces that wait."""
        span = Span(now - _COVERAGE_SPAN, now)
        for one in self.series.values():
            if one.metric is None:
                continue
            counts = self.reader.read_counts(one, span)
            expected = sum(counts[state] for state in ("judged", "failed", "over_budget", "filtered"))
            name = f"coverage of {one.name}"
            known = {"metric": one.name, "samples": expected, "labels": {"metric": one.name, "rule": COVERAGE}}
            told = f"{one.name} judged none of {count_noun(expected, 'trace')} of the last hour: " + ", ".join(
                f"{count:,} {state.replace('_', ' ')}" for state, count in counts.items() if count
            )
            verdict: Any = "clear" if counts["judged"] else "holds" if expected else "undecided"
            yield Look(f"coverage:{one.name}", name, verdict, "critical", told if verdict == "holds" else "", known)
        yield self._look_at_waiting(now)
        yield from self._look_at_feeds()

    def _look_at_feeds(self) -> Iterator[Look]:
        """A look for each feed: whether it could be read lately."""
        for one in self.ledger.read_feeds():
            since = write_time(datetime.fromtimestamp(one.since, UTC).replace(microsecond=0))
            told = f"{one.feed} could not be read since {since}: {one.message}" if one.is_stuck else ""
            known = {"samples": one.failures, "labels": {"feed": one.feed, "rule": COVERAGE}}
            verdict: Any = "holds" if one.is_stuck else "clear"
            yield Look(f"coverage:feed:{one.feed}", f"feed {one.feed}", verdict, "critical", told, known)

    def _look_at_waiting(self, now: float) -> Look:
        late = self.ledger.count_overdue(now - _LATE_LOOKS * max(self.every, 10.0))
        told = f"{count_noun(late, 'trace')} waited too long to be judged" if late else ""
        known = {"samples": late, "labels": {"rule": COVERAGE}}
        return Look("coverage:", "traces wait", "holds" if late else "clear", "critical", told, known)

    def _share(self) -> float:
        """The false alarms a day that each alert of the spec may raise on average."""
        rate = read_rate(self.node.false_alarms)
        alerts = sum(not isinstance(alert, str) for alert in self.node.alerts)
        return rate.events / (rate.seconds / _DAY) / max(1, alerts)

    def _baseline_days(self) -> float:
        baseline = self.node.baseline
        window = baseline.window if isinstance(baseline, BaselineNode) else None
        return (read_duration(window) or 0.0) / _DAY if window else _BASELINE_DAYS

    def _find_worst(self, series: Series, span: Span) -> tuple[WorstAnswer, ...]:
        rows = self.ledger.read_worst(series.id, span, _WORST, highest=_lower_is_better(series))
        return tuple(
            WorstAnswer(trace.id, trace.question, trace.answer or trace.error or "", value, reason)
            for trace, value, reason in rows
        )


def _name_entry(alert: AlertNode) -> str:
    """What an alert is called in the database: another one if its entry in the spec changes."""
    content = alert.model_dump_json(by_alias=True, exclude={"notify", "cooldown", "for_"})
    return f"{alert.metric}:{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def _ends(started: Sequence[float] | Any, now: float) -> tuple[float, float]:
    return (float(started[0]), float(started[-1]) + 1) if len(started) else (now, now)


def _undecided(alert: AlertNode, name: str, told: str = "") -> Look:
    return _make_look(alert, name, "undecided", "warning", told, {})


def _make_look(
    alert: AlertNode, name: str, verdict: Any, severity: Any, summary: str, known: Mapping[str, Any]
) -> Look:
    seconds, cooldown = ((read_duration(one) or 0.0) if one else 0.0 for one in (alert.for_, alert.cooldown))
    return Look(_name_entry(alert), name, verdict, severity, summary, known, seconds, cooldown, alert.notify)


def _list_bounds(alert: AlertNode) -> list[tuple[AlertSeverity, float]]:
    """The bounds of a level alert, the mildest first."""
    bounds: list[tuple[AlertSeverity, float | None]] = [("warning", alert.warning), ("critical", alert.critical)]
    return [(severity, bound) for severity, bound in bounds if bound is not None]


def _lower_is_better(series: Series) -> bool:
    return series.metric is not None and series.metric.higher_is_better is False


def _is_worse(value: float, bound: float, series: Series) -> bool:
    return value > bound if _lower_is_better(series) else value < bound


def _name_bound(alert: AlertNode, series: Series) -> str:
    side = "above" if _lower_is_better(series) else "below"
    return f"{side} {format_number(_list_bounds(alert)[0][1])}"


def _show(numbers: WindowNumbers) -> str:
    """`0.61 [0.55, 0.67] of 60 judged traces`."""
    interval = "" if numbers.interval is None else f" {format_interval(numbers.interval)}"
    assert numbers.value is not None
    return f"{format_number(numbers.value)}{interval} of {count_noun(numbers.samples, 'judged trace')}"


def _tell_change(metric: str, change: Change, mean: float, numbers: WindowNumbers) -> str:
    moved = "fell" if change.side == "fall" else "rose"
    now = "" if numbers.value is None else f", {_show(numbers)} since then"
    return f"{metric} {moved} by {format_number(change.size)} from {format_number(mean)}{now}"
