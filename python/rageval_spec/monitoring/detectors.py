"""The detectors of alerts on changes: what each knows is in the database, so that a restart loses and repeats nothing.

A detector is of one alert and one series. It begins with a baseline, from the values before it began or from an earlier
evaluation, and then sees each judged value once, in the order in which they were judged. A new series has a new
detector with a baseline of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.outcomes import DropSeverity
from rageval_spec.history.database import Connection, insert
from rageval_spec.libraries import np
from rageval_spec.monitoring.trace_judging import Series
from rageval_spec.monitoring.windows import Span, WindowReader, WindowValues
from rageval_spec.spec.blocks.monitor import Step
from rageval_spec.statistics.change_detection import HOURS, Baseline, Change, Detector, State, fit_baseline

if TYPE_CHECKING:
    from rageval_spec.statistics.change_detection import Side


LEAST_BASELINE = 30
"""The fewest values that a baseline is made of: with fewer, nothing is known of how much the values vary."""
_SEASONAL_DAYS = 14
"""The days of a baseline from which on the hours of the week have levels of their own."""
_HOUR, _DAY = 3600, 86_400
_MONDAY = 4 * _DAY
"""1970 began on a Thursday, so the first Monday is four days later."""
_BLOCK = 10_000
_NEARLY = 0.9
"""The part of its time from which on a baseline is complete."""
_WRITING = 5.0
"""Seconds in which a transaction is surely committed."""
_MOST_ALPHA = 0.5


@dataclass(frozen=True)
class ChangeRule:
    """What an alert on changes looks for.

    Attributes:
        alert: names the alert.
        steps: the size from which each severity begins.
        alarms_per_day: the expected number of false alarms a day.
        both: whether a change for the better counts too.
        bounds: the lowest and the highest value of the metric; None if it has none on one side.
        days: of how many days before it began its baseline is.
    """

    alert: str
    steps: Mapping[DropSeverity, Step]
    alarms_per_day: float
    both: bool
    bounds: tuple[float, float | None]
    days: float
    lower_is_better: bool = False

    @property
    def sides(self) -> tuple[Side, ...]:
        worse: Side = "rise" if self.lower_is_better else "fall"
        return ("fall", "rise") if self.both else (worse,)


class ChangeReading(NamedTuple):
    """What a detector says: the mean it compares with, how many values it is of, and what has changed at present.

    `changes` is None as long as there is no baseline.
    """

    baseline: Baseline | None
    values: int
    changes: Sequence[Change] | None


@dataclass(frozen=True)
class Detectors:
    """The detectors of a monitor."""

    connection: Connection
    reader: WindowReader

    def read(self, rule: ChangeRule, series: Series, now: float) -> ChangeReading:
        """Show the detector of a rule what was judged since it last looked, and read what it says."""
        row = self._find(rule, series)
        if row is None or self._can_be_better(row, rule, series, now):
            row = self._begin(rule, series, now)
        if row is None:
            return ChangeReading(None, len(self._before(rule, series, now).values), None)
        kept, state, made, trace_id = row
        bounds, baseline, per_day = kept[:3]
        detector = _make(rule, kept._replace(per_day=max(per_day, self._count_per_day(series, now))))
        while block := self._read_block(series, made, trace_id, now):
            values, weights, started = (
                np.array(column, dtype=np.float64) for column in list(zip(*block, strict=True))[:3]
            )
            state, _ = detector.update(
                state,
                np.clip(values, *bounds),
                np.minimum(weights, baseline.largest),
                hour_of_week(started) if baseline.offsets else None,
            )
            made, trace_id = block[-1][3], block[-1][4]
        self._write(rule, series, _Row(kept, state, made, trace_id))
        return ChangeReading(baseline, 0, detector.describe(state))

    def _find(self, rule: ChangeRule, series: Series) -> _Row | None:
        rows = self.connection.execute(
            "SELECT settings, baseline, state, made, trace_id FROM rageval_detectors WHERE alert = ? AND series = ?",
            (rule.alert, series.id),
        )
        if not rows:
            return None
        settings, baseline, state, made, trace_id = rows[0]
        found, parts = json.loads(settings), json.loads(baseline)
        if found["rule"] != _describe(rule):
            return None  # the alert was changed: it begins anew
        parts["offsets"] = tuple(parts["offsets"])
        kept = _Kept(tuple(found["bounds"]), Baseline(**parts), *(found[name] for name in _Kept._fields[2:]))
        return _Row(kept, State(*json.loads(state)), made, trace_id)

    def _can_be_better(self, row: _Row, rule: ChangeRule, series: Series, now: float) -> bool:
        """Whether a baseline of less than its time can now be of twice as many values; never while anything moved."""
        if row.kept.days >= rule.days * _NEARLY or any(row.state.changed):
            return False
        counts = self.reader.read_counts(series, Span(now - rule.days * _DAY, now))
        return counts["judged"] >= 2 * row.kept.size or now - row.kept.began >= rule.days * _DAY

    def _begin(self, rule: ChangeRule, series: Series, now: float) -> _Row | None:
        """A detector with the baseline of what was judged before; None as long as that is too little."""
        found = self._before(rule, series, now)
        if len(found.values) < LEAST_BASELINE:
            return None
        high = float(found.values.max()) * 2 or 1.0
        bounds = (rule.bounds[0], high if rule.bounds[1] is None else rule.bounds[1])
        days = float(np.ptp(found.started)) / _DAY
        hours = hour_of_week(found.started) if days >= _SEASONAL_DAYS else None
        baseline = fit_baseline(found.values, found.weights, hours, span=bounds[1] - bounds[0])
        kept = _Kept(bounds, baseline, len(found.values) / max(days, 1.0), len(found.values), days, now)
        (last,) = self.connection.execute(
            "SELECT MAX(made) FROM rageval_judgements WHERE series = ? AND state = 'judged'", (series.id,)
        )
        return _Row(kept, _make(rule, kept).begin(), float(last[0]), _LAST)

    def _before(self, rule: ChangeRule, series: Series, now: float) -> WindowValues:
        return self.reader.read_values(series, Span(now - rule.days * _DAY, now))

    def _count_per_day(self, series: Series, now: float) -> float:
        """How many values a day had in the last week."""
        ((count, first),) = self.connection.execute(
            "SELECT SUM(judged), MIN(pane) FROM rageval_panes WHERE series = ? AND pane >= ?",
            (series.id, now - 7 * _DAY),
        )
        return 0.0 if not count else float(count) / max(1.0, (now - first) / _DAY)

    def _read_block(self, series: Series, made: float, trace_id: str, now: float) -> Sequence[Sequence[Any]]:
        """The next values, except the latest: another monitor may still be writing some that come before those."""
        return self.connection.execute(
            "SELECT value, weight, started, made, trace_id FROM rageval_judgements WHERE series = ? "
            "AND state = 'judged' AND (made > ? OR (made = ? AND trace_id > ?)) AND made < ? "
            "ORDER BY made, trace_id LIMIT ?",
            (series.id, made, made, trace_id, now - _WRITING, _BLOCK),
        )

    def _write(self, rule: ChangeRule, series: Series, row: _Row) -> None:
        settings = {"rule": _describe(rule)} | {
            name: part for name, part in row.kept._asdict().items() if name != "baseline"
        }
        texts = [json.dumps(one) for one in (settings, row.kept.baseline._asdict(), row.state)]
        self.connection.execute(_PUT, (rule.alert, series.id, *texts, row.made, row.trace_id))


class _Kept(NamedTuple):
    """What does not change while a detector runs.

    The baseline is of `size` values in `days` days, `per_day` a day, before the detector began.
    """

    bounds: tuple[float, float]
    baseline: Baseline
    per_day: float
    size: int
    days: float
    began: float


class _Row(NamedTuple):
    kept: _Kept
    state: State
    made: float
    trace_id: str


_LAST = "\U0010ffff"
"""After all ids of traces."""
_COLUMNS = ("alert", "series", "settings", "baseline", "state", "made", "trace_id")
_PUT = f"{insert('rageval_detectors', _COLUMNS)} ON CONFLICT (alert, series) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _COLUMNS[2:]
)


def _describe(rule: ChangeRule) -> list[Any]:
    """What of a rule a detector's state depends on."""
    return [[[name, *step] for name, step in rule.steps.items()], list(rule.sides), list(rule.bounds)]


def _make(rule: ChangeRule, kept: _Kept) -> Detector:
    bounds, baseline, per_day = kept[:3]
    steps: dict[str, float] = {name: step.amount(baseline.mean) or step.size for name, step in rule.steps.items()}
    alpha = min(_MOST_ALPHA, rule.alarms_per_day / max(per_day, 1.0))
    return Detector(baseline, steps, alpha, rule.sides, bounds, per_week=7 * per_day)


def hour_of_week(started: Any) -> Any:
    """The hour of the week of moments, from Monday 0:00 UTC."""
    return ((np.asarray(started) - _MONDAY) // _HOUR).astype(np.int64) % HOURS
