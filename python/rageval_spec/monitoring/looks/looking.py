"""A look at the numbers: what each alert of the spec comes to at a moment.

- A **level** alert holds if the window's number is worse than its bound beyond doubt, with a certainty from which the
  allowed false alarms follow. It is clear once the number itself meets the bound again.
- A **change** alert holds from when its detector is certain that the mean has moved until it has come back. When it
  begins, what moved is looked for.
- **Coverage** holds if traces were to be judged, and a metric judged none; if traces wait far longer than they
  should; if a feed, or none of its rows, can be read; or if nothing came in an hour that is never without traffic.
- **A/B** holds once one of the two systems is surely better, or if traces of one are lost.

Too few judged traces decide nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rageval_spec.data.alerts import AlertSeverity, WorstAnswer
from rageval_spec.data.traces import TraceLink
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.libraries import np
from rageval_spec.monitoring.alerts import Look, Verdict
from rageval_spec.monitoring.ledger import LEASE, Ledger, State
from rageval_spec.monitoring.looks.baselines import BaselineChoice
from rageval_spec.monitoring.looks.detectors import LEAST_BASELINE, ChangeReading, ChangeRule, Detectors, FixedBaseline
from rageval_spec.monitoring.looks.experiments import Experiment, read_experiment
from rageval_spec.monitoring.looks.levels import WindowComparison, compare_window, is_beyond, is_surely_beyond
from rageval_spec.monitoring.looks.what_changed import ChangeExplainer, Explanation
from rageval_spec.monitoring.looks.windows import (
    Found,
    MissingValues,
    Span,
    WindowNumbers,
    WindowReader,
    WindowValues,
    choose_window,
)
from rageval_spec.monitoring.outputs.outbox import Outbox
from rageval_spec.monitoring.tables import MOST_FAILURES
from rageval_spec.monitoring.traces.trace_judging import FEEDBACK, NO_QUESTION, Series
from rageval_spec.plugin import AnswerMetric
from rageval_spec.recorded.values import write_time
from rageval_spec.spec.blocks.monitor import (
    COVERAGE,
    AlertNode,
    MonitorNode,
    WindowNode,
    name_alert,
    read_rate,
    read_share,
    seconds_of,
)
from rageval_spec.statistics.change_detection import Change, share_false_alarms
from rageval_spec.statistics.window_summaries import MANY
from rageval_spec.wording import count_noun, format_interval, format_number, format_signed, list_counts

_DAY = 86_400
_WORST = 3
_COVERAGE_SPAN = 3600.0
"""The stretch in which a metric must have judged something if traces came."""
_LATE_LOOKS = 6
_LATE = LEASE + 60
"""How many polls a trace may be overdue, and the least seconds: what a killed process held is free after its lease."""
_MOST_SINCE = 1000
"""The most values that tell what a number is since a change was over."""
_USUAL, _USUAL_DAYS = 20, 7
"""How many traces an hour must have at least had on so many days before that none of them is a fault."""
_BASELINE_DAYS = 7.0
_CLICKS = "click"
_POSITION_BIAS = (
    ". People click what stands first whether or not it is better, so a change of clicks can come from another order "
    "of results"
)


class _Began(NamedTuple):
    """What an alert that holds was seen in: the values of a window, or of the time since a change."""

    series: Series
    is_change: bool
    span: Span
    found: Found
    is_corrected: bool


@dataclass(frozen=True)
class Watch:
    """Looks at the numbers of one monitor.

    Attributes:
        every: the seconds between two looks.
        series: the series of each metric at present.
        baseline: what changes are measured from.
        explainer: finds what moved; None if nobody asks.
        destinations: the names of the tools that values and numbers are sent to.
        hide: leaves out of a reason what must not be told.
        find_page: where people see a trace in its tool; None where that is not known.
    """

    node: MonitorNode
    ledger: Ledger
    reader: WindowReader
    series: Mapping[str, Series]
    every: float
    baseline: BaselineChoice = field(default_factory=lambda: BaselineChoice(_BASELINE_DAYS))
    explainer: ChangeExplainer | None = None
    destinations: Collection[str] = ()
    hide: Callable[[str], str] = lambda reason: reason
    find_page: Callable[[TraceLink], str | None] = lambda _: None
    _explained: dict[str, Explanation] = field(default_factory=dict)
    _began: dict[str, _Began] = field(default_factory=dict)

    def look(self, now: float, firing: Collection[str] = ()) -> list[Look]:
        """What each alert comes to. Of those that begin, which are not among the `firing` ones, also what moved."""
        looks = [one for alert in self.node.alerts for one in self._look_at(alert, now, firing)]
        looks += [] if (found := self.read_experiment()) is None else [_look_at_experiment(found)]
        return [self._explain(one, firing, now) for one in looks]

    def read_windows(self, now: float) -> list[WindowNumbers]:
        """The numbers of all windows and series."""
        return [self.reader.read(one, window, now) for one in self.series.values() for window in self.node.windows]

    def compare_windows(self, now: float) -> Iterator[tuple[WindowNumbers, WindowComparison]]:
        """The same, each against the baseline."""
        for one in self.series.values():
            for window in self.node.windows:
                span, found = self.reader.find(one, window, now)
                yield self.reader.describe(one, window.name, span, found), self._compare(one, span, found)

    def _compare(self, series: Series, span: Span, found: Found) -> WindowComparison:
        baseline = self._find_baseline(series)
        if isinstance(baseline, str):
            return WindowComparison(self.baseline.name, None, baseline)
        return compare_window(self.reader, series, span, found, baseline)

    def read_experiment(self) -> Experiment | None:
        """What the A/B test has come to; None without one, or before its metric has a series."""
        if self.node.ab is None or self.node.ab.metric not in self.series:
            return None
        series = self.series[self.node.ab.metric]
        return read_experiment(self.ledger, series, self.node.ab, self.reader.statistics.confidence)

    def _find_baseline(self, series: Series) -> float | FixedBaseline | str:
        """As `BaselineChoice.find`; no evaluation has what users of production say."""
        return (self.baseline.days or _BASELINE_DAYS) if series.metric is None else self.baseline.find(series.name)

    def _look_at(self, alert: AlertNode | str, now: float, firing: Collection[str]) -> Iterator[Look]:
        if isinstance(alert, str):
            yield from self._look_at_coverage(now)
        elif alert.metric not in self.series:
            yield self._make_look(alert, "undecided", f"no trace has {alert.metric} yet")
        elif alert.drift is None:
            yield self._look_at_level(alert, now)
        else:
            yield self._look_at_change(alert, now, is_firing=_name_entry(alert) in firing)

    def _look_at_level(self, alert: AlertNode, now: float) -> Look:
        series, window = self.series[alert.metric], choose_window(alert.window, self.node.windows)
        span, found = self.reader.find(series, window, now)
        numbers = self.reader.describe(series, window.name, span, found)
        where, known = describe_span(window, span), numbers.list_evidence()
        if numbers.samples < alert.min_samples or numbers.value is None:
            few = count_noun(numbers.samples, "judged trace")
            return self._make_look(
                alert, "undecided", f"{alert.metric} has {few} in {where}; {alert.min_samples} are needed"
            )
        # A stretch that slides, or the last so many queries, is another window at each look.
        is_new = window.slide or window.seconds is None
        (alpha,) = share_false_alarms(self._share(), 1.0, [_DAY / (self.every if is_new else window.seconds or _DAY)])
        side = "above" if series.lower_is_better else "below"
        broken = [
            (severity, bound)
            for severity, bound in alert.bounds.items()
            if _is_worse(numbers.value, bound, series) and self._is_beyond(series, found, numbers, bound, alpha)
        ]
        if not broken:
            missed = [bound for bound in alert.bounds.values() if _is_worse(numbers.value, bound, series)]
            told, meets = f"{alert.metric} is {describe_numbers(numbers)} again", not missed
            if missed:
                beyond = f"{side} {format_number(missed[-1])}"
                told = f"{alert.metric} is {describe_numbers(numbers)}, {beyond}, in {where}: not yet certain"
            return self._make_look(alert, "clear" if meets else "undecided", told, known=known)
        severity, bound = broken[-1]
        which = f"its {severity} bound of " if len(alert.bounds) > 1 else ""
        told = f"{alert.metric} is {describe_numbers(numbers)}, {side} {which}{format_number(bound)}, in {where}"
        self._began[_name_entry(alert)] = _Began(series, False, span, found, numbers.is_corrected)
        known |= {"bound": bound, "worst": self._find_worst(series, span)}
        return self._make_look(alert, "holds", told, severity, known)

    def _is_beyond(self, series: Series, found: Found, numbers: WindowNumbers, bound: float, alpha: float) -> bool:
        """Whether a window is surely worse than a bound; by the corrected mean, where labels correct it."""
        above = series.lower_is_better
        if not numbers.is_corrected:
            rate = 1 / read_share(self.node.sample.rate)
            return is_surely_beyond(series, found, bound, above=above, alpha=alpha, largest=rate)
        return is_beyond(self.reader.correct(series, found, numbers, 1 - 2 * alpha).interval, bound, above=above)

    def _look_at_change(self, alert: AlertNode, now: float, *, is_firing: bool) -> Look:
        assert alert.drift is not None
        series = self.series[alert.metric]
        baseline = self._find_baseline(series)
        if isinstance(baseline, str):
            return self._make_look(alert, "undecided", baseline)
        fixed = baseline if isinstance(baseline, FixedBaseline) else None
        rule = ChangeRule(
            _name_entry(alert), alert.drift.steps, self._share(), alert.direction == "both",
            (None, None) if series.metric is None else series.metric.bounds,
            _BASELINE_DAYS if isinstance(baseline, FixedBaseline) else baseline, series.lower_is_better,
            1 / read_share(self.node.sample.rate), series.percent, fixed,
        )  # fmt: skip
        reading = Detectors(self.ledger.connection, self.reader).read(rule, series, now)
        if reading.level is None:
            within = "" if fixed else f", in the {rule.days:g} days before"
            missing = f"{reading.values} of the {LEAST_BASELINE} judged traces that a baseline needs{within}"
            if reading.values >= LEAST_BASELINE:
                missing = f"{reading.values} judged traces for its baseline, which count at the next look"
            return self._make_look(alert, "undecided", f"{alert.metric} has {missing}")
        if not reading.changes:
            return self._tell_end(alert, series, rule, reading.level, now, is_firing=is_firing)
        return self._tell_reading(alert, series, reading, reading.level, now)

    def _tell_end(
        self, alert: AlertNode, series: Series, rule: ChangeRule, level: float, now: float, *, is_firing: bool
    ) -> Look:
        """That nothing has changed; after a change, with the number since it was over, once that is near the level."""
        known: dict[str, Any] = {"bound": level}
        told = f"{alert.metric} is near its level of {format_number(level)} again"
        if is_firing and series.percent is None:
            step = min(one.amount(level) or one.size for one in rule.steps.values())
            found = _choose_end(self.reader.read_last(series, _MOST_SINCE), level, step, rule.sides)
            numbers = self.reader.describe(series, "since the change was over", found.find_span(now), found)
            counts = numbers.value is not None and ("fall" if numbers.value < level else "rise") in rule.sides
            if numbers.value is None or (counts and abs(numbers.value - level) > step):
                return self._make_look(alert, "undecided", "", known=known)
            told = f"{alert.metric} is {describe_numbers(numbers)}, near its level of {format_number(level)} again"
            known |= numbers.list_evidence()
        return self._make_look(alert, "clear", told, "low", known)

    def _tell_reading(self, alert: AlertNode, series: Series, reading: ChangeReading, level: float, now: float) -> Look:
        change = max(reading.changes, key=lambda one: one.size)
        found = self.reader.read_last(series, min(change.values, MANY))
        span = found.find_span(now)
        numbers = self.reader.describe(series, "since the change", span, found)
        self._began[_name_entry(alert)] = _Began(series, True, span, found, numbers.is_corrected)
        known = {**numbers.list_evidence(), "bound": level, "worst": self._find_worst(series, span)}
        return self._make_look(alert, "holds", _tell_change(series, change, level, numbers), change.severity, known)

    def _explain(self, look: Look, firing: Collection[str], now: float) -> Look:
        """A look with how far the number is from the baseline, and with what moved.

        Both are looked for when the alert begins; what moved only once, even if the alert has to wait to fire.
        """
        if look.verdict != "holds":
            self._explained.pop(look.alert, None)
        if look.verdict != "holds" or look.alert not in self._began:
            return look
        began = self._began.pop(look.alert)
        if look.alert not in firing:
            look = replace(look, summary=look.summary + self._tell_difference(began))
        if not began.is_change or self.explainer is None:
            return look
        if look.alert not in self._explained:
            if look.alert in firing:
                return look  # it began before this process did
            start, days = began.span.start, self.baseline.days or _BASELINE_DAYS
            before, since = Span(start - days * _DAY, start), Span(start, now + _DAY)
            self._explained[look.alert] = self.explainer.explain(began.series, before, since)
        found = self._explained[look.alert]
        return replace(look, summary=look.summary + found.tell(), evidence={**look.evidence, "moved": found.moved})

    def _tell_difference(self, began: _Began) -> str:
        """`; -0.300 [-0.350, -0.250] against the 7 days before`; "" if there is nothing to compare with."""
        compared = self._compare(began.series, began.span, began.found)
        if (apart := compared.difference) is None:
            return ""
        told = f"{format_signed(apart.difference)} {format_interval(apart.interval)}".rstrip()
        told += " of the judge's values" if began.is_corrected else ""
        return f"; {told} against {compared.baseline}"

    def _make_look(
        self, alert: AlertNode, verdict: Verdict, told: str, severity: Any = "warning",
        known: Mapping[str, Any] | None = None,
    ) -> Look:  # fmt: skip
        series = self.series.get(alert.metric)
        name = name_alert(alert, self.node.windows, lower_is_better=series is not None and series.lower_is_better)
        evidence = {"metric": alert.metric, "labels": {"metric": alert.metric}, **(known or {})}
        seconds, cooldown = (seconds_of(one) if one else 0.0 for one in (alert.for_, alert.cooldown))
        return Look(_name_entry(alert), name, verdict, severity, told, evidence, seconds, cooldown, alert.notify)

    def _look_at_coverage(self, now: float) -> Iterator[Look]:
        """A look for each metric, feed and tool, and one for all traces that wait."""
        span = Span(now - _COVERAGE_SPAN, now)
        for one in self.series.values():
            if one.metric is None:
                continue
            counts = self.reader.read_counts(one, span)
            missing = [] if counts["judged"] else self.reader.count_reasons(one.id, span, MOST_FAILURES)
            counts["waiting"] = sum(count for state, _, count in missing if state == "waiting")
            expected = sum(counts.values()) - counts["sampled_out"]
            told = None if counts["judged"] else self._explain_nothing(one, counts, expected, missing, span)
            is_clear = bool(counts["judged"])
            yield _cover(one.name, f"coverage of {one.name}", told, expected, {"metric": one.name}, is_clear=is_clear)
        for feed in self.ledger.read_feeds():
            since = write_time(datetime.fromtimestamp(feed.since, UTC).replace(microsecond=0))
            told = f"{feed.feed} could not be read since {since}: {feed.message}" if feed.is_stuck else None
            yield _cover(f"feed:{feed.feed}", f"feed {feed.feed}", told, feed.failures, {"feed": feed.feed})
        for name, tool in Outbox(self.ledger.connection, self.ledger.monitor).count().items():
            if name in self.destinations:
                told = f"{name}: {tool.explain_failure()}" if tool.is_stuck else None
                labels = {"destination": name}
                yield _cover(f"send:{name}", f"send to {name}", told, tool.failures, labels, severity="warning")
        late = self.ledger.count_overdue(now - max(_LATE_LOOKS * self.every, _LATE))
        due = self.ledger.find_oldest_due(now) if late else None
        oldest = "" if due is None else f", the oldest since {_write_minute(due)}"
        told = f"{count_noun(late, 'trace')} waited too long to be judged{oldest}" if late else None
        yield _cover("", "traces wait", told, late, {})

    def _explain_nothing(
        self, series: Series, counts: Mapping[State, int], expected: int, missing: Sequence[MissingValues], span: Span
    ) -> str | None:
        """Why it is a fault that a series judged nothing; None if it is none, as far as can be known.

        Traces in which nothing was asked, such as those of health checks, are none, once the series has judged any.
        """
        unasked = sum(one.traces for one in missing if one.reason == NO_QUESTION)
        if expected > unasked or (unasked and not self.ledger.count(series.id)["judged"]):
            told = f"{series.name} judged none of {count_noun(expected, 'trace')} of the hour before "
            told += f"{_write_minute(span.end)}: {list_counts(counts)}"
            if (most := next((one for one in missing if one.reason), None)) is not None:
                told += f". The most frequent reason, of {most.traces}: {self.hide(str(most.reason))}"
            last = self.reader.find_last_judged(series.id)
            return told if last is None else f"{told}. Its last value is of {_write_minute(last)}"
        days = [Span(*(end - day * _DAY for end in span)) for day in range(1, _USUAL_DAYS + 1)]
        usual = min(self.reader.read_counts(series, one)["judged"] for one in days)
        if usual < _USUAL:
            return None
        return (
            f"{series.name} judged nothing in the hour before {_write_minute(span.end)}; at this time of each of the "
            f"last {_USUAL_DAYS} days it judged {usual:,} traces or more"
        )

    def _share(self) -> float:
        """The false alarms a day that each alert of the spec may raise on average."""
        rate = read_rate(self.node.false_alarms)
        alerts = sum(not isinstance(alert, str) for alert in self.node.alerts)
        return rate.events / (rate.seconds / _DAY) / max(1, alerts)

    def _find_worst(self, series: Series, span: Span) -> tuple[WorstAnswer, ...]:
        rows = self.reader.read_worst(series, span, _WORST, highest=series.lower_is_better)
        return tuple(
            WorstAnswer(
                trace.id, trace.question, trace.answer or trace.error or "", value, reason, self.find_page(trace.link)
            )
            for trace, value, reason in rows
        )


def _name_entry(alert: AlertNode) -> str:
    """What an alert is called in the database: another one if its entry in the spec changes."""
    content = alert.model_dump_json(by_alias=True, exclude={"notify", "cooldown", "for_"})
    return f"{alert.metric}:{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def _cover(
    key: str, name: str, told: str | None, samples: int, labels: Mapping[str, str],
    severity: AlertSeverity = "critical", *, is_clear: bool = True,
) -> Look:  # fmt: skip
    """A look at coverage: it holds if there is something to tell; without that, it may still not be decided."""
    known = {"metric": labels.get("metric"), "samples": samples, "labels": {**labels, "rule": COVERAGE}}
    verdict: Verdict = "clear" if is_clear else "undecided"
    return Look(f"coverage:{key}", name, "holds" if told else verdict, severity, told or "", known)


def _is_worse(value: float, bound: float, series: Series) -> bool:
    return value > bound if series.lower_is_better else value < bound


def list_alerts(node: MonitorNode, metrics: Mapping[str, AnswerMetric[Any]]) -> dict[str, tuple[str, AlertNode]]:
    """The alerts on metrics by what they are called in the database, each with the name that people know."""
    found = {}
    for one in node.alerts:
        if not isinstance(one, str):
            lower_is_better = Series(0, one.metric, metrics.get(one.metric)).lower_is_better
            found[_name_entry(one)] = name_alert(one, node.windows, lower_is_better=lower_is_better), one
    return found


def describe_numbers(numbers: WindowNumbers) -> str:
    """`0.61 [0.55, 0.67] of 60 judged traces`."""
    assert numbers.value is not None
    told = f"{format_number(numbers.value)} {format_interval(numbers.interval)}".rstrip()
    return f"{told} of {count_noun(numbers.samples, 'judged trace')}"


def describe_span(window: WindowNode, span: Span) -> str:
    """`window hour (2026-11-28 02:00 to 03:00 UTC)`, or `the last 500 judged traces`."""
    if window.queries is not None:
        return f"the last {window.queries} judged traces"
    start, end = _write_minute(span.start).removesuffix(" UTC"), _write_minute(span.end)
    return f"window {window.name} ({start} to {end.removeprefix(start[:11])})"


def _write_minute(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _tell_change(series: Series, change: Change, level: float, numbers: WindowNumbers) -> str:
    moved = "fell" if change.side == "fall" else "rose"
    by = f" by {format_number(change.size)}" if series.percent is None else ""
    now = "" if numbers.value is None else f", {describe_numbers(numbers)} since then"
    of = " of the judge's values" if numbers.is_corrected else ""
    now += ", corrected by labels" if numbers.is_corrected else ""
    bias = _POSITION_BIAS if series.name.startswith(FEEDBACK) and _CLICKS in series.name.lower() else ""
    return f"{series.name} {moved}{by} from {format_number(level)}{of}{now}{bias}"


def _choose_end(found: WindowValues, level: float, step: float, sides: Collection[str]) -> WindowValues:
    """The last values, from when on they have most likely been within half a step of a level on these sides."""
    gains = {"fall": found.values - level + step / 2, "rise": level + step / 2 - found.values}
    sums = [np.cumsum((found.weights * gains[side])[::-1]) for side in sides]
    count = min((int(np.argmax(one)) + 1 for one in sums if len(one)), default=0)
    kept = [one[len(one) - count :] for one in (found.values, found.weights, found.started)]
    return WindowValues(found.trace_ids[len(found.trace_ids) - count :], *kept)


def name_experiment(metric: str, by: str) -> tuple[str, str]:
    """What the alert of an A/B test is called in the database, and by people."""
    return f"ab:{metric}:{by}", f"A/B test of {metric} by {by}"


def _look_at_experiment(found: Experiment) -> Look:
    """A look at an A/B test. It is never clear for lack of data."""
    holds, (key, name) = found.has_wrong_shares or found.better is not None, name_experiment(found.metric, found.by)
    known: dict[str, Any] = {"metric": found.metric, "labels": {"metric": found.metric, "rule": "ab"}}
    if found.test is not None:
        samples = sum(arm.count for arm in found.arms)
        known |= {"value": found.test.difference, "interval": found.test.interval, "samples": samples}
    verdict: Verdict = "holds" if holds else "undecided" if found.test is None else "clear"
    severity: AlertSeverity = "high" if found.has_wrong_shares else "low"
    return Look(key, name, verdict, severity, found.tell(), known)
