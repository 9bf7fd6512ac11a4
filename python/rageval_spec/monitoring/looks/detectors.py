"""The detectors of alerts on changes: what each knows is in the database, so that a restart loses and repeats nothing.

A detector is of one alert and one series. It begins with a baseline, from the first values that there are or from an
earlier evaluation, and then sees each judged trace once: those that were judged before it began in the order of their
time, later ones in the order in which they were first judged. What a trace that was opened again comes to later changes
windows, not detectors. A new series has a new detector with a baseline of its own.

What a detector sees has bounds. Where the metric has none, as the seconds of an answer, values count as at most twice
the 99th percentile of the baseline, so one very slow answer is no change. For a percentile it sees whether a value is
above the baseline's percentile; a step of 10 % is the share that would be above it if all values were 10 % larger.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.outcomes import DropSeverity
from rageval_spec.dataclass import dataclass
from rageval_spec.history.database import Connection, insert_or_set
from rageval_spec.libraries import Floats, np
from rageval_spec.monitoring.looks.windows import Span, WindowReader, WindowValues
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.spec.blocks.monitor import Step
from rageval_spec.statistics.change_detection import HOURS, Baseline, Change, Detector, State, fit_baseline
from rageval_spec.statistics.weighted_clusters import compute_percentile

if TYPE_CHECKING:
    from rageval_spec.statistics.change_detection import Side


LEAST_BASELINE = 30
"""The fewest values that a baseline is made of: with fewer, nothing is known of how much the values vary."""
SEASONAL_DAYS = 13.5
"""The days of a baseline from which on the hours of the week have levels of their own: two weeks, nearly."""
_HOUR, _DAY = 3600, 86_400
_MONDAY = 4 * _DAY
"""1970 began on a Thursday, so the first Monday is four days later."""
_BLOCK = 10_000
_MOST_PER_DAY = 10_000
"""A detector that would see more values a day sees means of several, so that it keeps up with any traffic."""
_NEARLY = 0.9
"""The part of its time from which on a baseline is complete."""
_MOST_ALPHA = 0.5
_TAIL, _ROOM = 99, 2.0
"""Without a bound, a value counts as at most twice this percentile."""


class FixedBaseline(NamedTuple):
    """Values of an earlier evaluation: what production is compared with. `name` tells which."""

    name: str
    values: Floats
    weights: Floats


@dataclass(frozen=True)
class ChangeRule:
    """What an alert on changes looks for.

    Attributes:
        steps: the size from which each severity begins.
        alarms_per_day: the expected number of false alarms a day.
        both: whether a change for the better counts too.
        bounds: the lowest and the highest value of the metric; None, or infinite, if it has none on one side.
        days: of how many days before it began its baseline is.
        largest: the largest weight that the sample gives to a trace.
        fixed: the values of an earlier evaluation to compare with; None for those of the days before.
    """

    alert: str
    steps: Mapping[DropSeverity, Step]
    alarms_per_day: float
    both: bool
    bounds: tuple[float | None, float | None]
    days: float
    lower_is_better: bool = False
    largest: float = 1.0
    percent: int | None = None
    fixed: FixedBaseline | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        worse: Side = "rise" if self.lower_is_better else "fall"
        return ("fall", "rise") if self.both else (worse,)


class ChangeReading(NamedTuple):
    """What a detector says.

    Attributes:
        level: the number that it compares with: a mean, or a percentile; None as long as there is no baseline.
        values: how many judged traces are known while there is none.
        changes: what has changed at present; each has the number of traces since then in `values`.
    """

    level: float | None
    values: int
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Detectors:
    """The detectors of a monitor."""

    connection: Connection
    reader: WindowReader

    def read(self, rule: ChangeRule, series: Series, now: float) -> ChangeReading:
        """Show the detector of a rule what was judged since it last looked, and read what it says.

        All that it learns is written in one statement, so a process that is killed here loses only what the next one
        reads again.
        """
        row = self._find(rule, series) or self._begin(rule, series, now)
        if row is None:
            return ChangeReading(None, self.reader.read_counts(series, Span(now - rule.days * _DAY, now))["judged"])
        row = self._show(row, rule, series, now)
        if self._can_be_better(row, rule, series, now):
            row = self._renew(rule, series, now, row.kept.settled) or row
        self._write(rule, series, row)
        kept = row.kept
        changes = self._make(rule, kept, series, now).describe(row.state)
        return ChangeReading(kept.level, 0, [one._replace(values=one.values * kept.group) for one in changes])

    def _show(self, row: _Row, rule: ChangeRule, series: Series, now: float) -> _Row:
        """The row after all whole groups of values that it has not seen."""
        kept, whole = row.kept, _BLOCK // row.kept.group * row.kept.group
        while block := self._read_block(series, kept.began, row.counted, row.trace_id, now, whole):
            if not (block := block[: len(block) // kept.group * kept.group]):
                break
            seen = [np.array(column, dtype=np.float64) for column in list(zip(*block, strict=True))[:3]]
            row = self._advance(row, rule, series, now, seen)._replace(counted=block[-1][3], trace_id=block[-1][4])
        return row

    def _advance(self, row: _Row, rule: ChangeRule, series: Series, now: float, seen: Sequence[Floats]) -> _Row:
        """The row after values, with their weights and when their traces began."""
        kept = row.kept
        values, weights, started = kept.group_values(*seen)
        hours = hour_of_week(started) if kept.baseline.offsets else None
        weights = np.minimum(weights, kept.baseline.largest)
        state, changes = self._make(rule, kept, series, now).update(row.state, values, weights, hours)
        if changes:
            kept = kept._replace(settled=float(started[changes[-1].place]))
        return row._replace(kept=kept, state=state)

    def _make(self, rule: ChangeRule, kept: _Kept, series: Series, now: float) -> Detector:
        """The detector of the traffic of the baseline, or of that of the last week if there was more."""
        per_day = max(kept.per_day, self._count_per_day(series, now)) / kept.group
        alpha = min(_MOST_ALPHA, rule.alarms_per_day / per_day)
        return Detector(kept.baseline, kept.steps, alpha, rule.sides, kept.seen_bounds, per_week=7 * per_day)

    def _find(self, rule: ChangeRule, series: Series) -> _Row | None:
        rows = self.connection.execute(
            "SELECT settings, baseline, state, made, trace_id FROM rageval_detectors WHERE alert = ? AND series = ?",
            (rule.alert, series.id),
        )
        if not rows:
            return None
        settings, baseline, state, counted, trace_id = rows[0]
        found, parts = json.loads(settings), json.loads(baseline)
        if found.pop("rule") != _describe(rule):
            return None  # the alert was changed: it begins anew
        parts["offsets"] = tuple(parts["offsets"])
        kept = _Kept(**found | {"bounds": tuple(found["bounds"]), "baseline": Baseline(**parts)})
        return _Row(kept, State(*json.loads(state)), counted, trace_id)

    def _can_be_better(self, row: _Row, rule: ChangeRule, series: Series, now: float) -> bool:
        """Whether a baseline of less than its time can now be of twice as many values; never while anything moved.

        Those of a change that is over are not among them: the level would be none that there ever was.
        """
        kept, days = row.kept, rule.days * _DAY
        if rule.fixed is not None or kept.days >= rule.days * _NEARLY or any(row.state.changed):
            return False
        counts = self.reader.read_counts(series, Span(max(now - days, kept.settled), now))
        return counts["judged"] >= 2 * kept.size or now - max(kept.began, kept.settled) >= days

    def _begin(self, rule: ChangeRule, series: Series, now: float) -> _Row | None:
        """The first detector; None as long as there is too little for a baseline.

        It sees what was judged already as if that had come bit by bit. So a change in a backlog that one run judged is
        found, and does not become a part of the baseline.
        """
        found = self._read_before(series, now, (1 if rule.fixed else 2) * rule.days)
        columns, count = [found.values, found.weights, found.started], len(found.values)
        if rule.fixed is not None:
            row = self._fit(rule, series, now, [*rule.fixed[1:], np.zeros(len(rule.fixed.values))])
            return None if row is None else self._advance(row, rule, series, now, columns) if count else row
        row, at, size = None, _find_first(found.started, now - rule.days * _DAY), 0
        while at < count:
            if row is None or not any(row.state.changed):
                row, size = self._fit(rule, series, now, _take(columns, at, rule.days)), at
            if row is None:
                break
            row = self._advance(row, rule, series, now, [column[at : at + size] for column in columns])
            at += size
        return row if row is not None and any(row.state.changed) else self._renew(rule, series, now)

    def _renew(self, rule: ChangeRule, series: Series, now: float, settled: float = 0.0) -> _Row | None:
        """A detector with the baseline of all that was judged since the last change; None if that is too little."""
        found = self._read_before(series, now, min(rule.days, (now - settled) / _DAY))
        row = self._fit(rule, series, now, [found.values, found.weights, found.started])
        return row and row._replace(kept=row.kept._replace(settled=settled))

    def _fit(self, rule: ChangeRule, series: Series, now: float, columns: Sequence[Floats]) -> _Row | None:
        """A detector with the baseline of some values, with their weights and when their traces began."""
        values, weights, started = columns
        if len(values) < LEAST_BASELINE:
            return None
        per_day = self._count_per_day(series, now)
        days = 0.0 if rule.fixed else float(np.ptp(started)) / _DAY
        per_day = per_day if rule.fixed else max(per_day, len(values) / max(days, 1.0))
        began = now - rule.days * _DAY if rule.fixed else float(started.max())
        size = self.reader.read_counts(series, Span(float(started.min()), began))["judged"]
        empty = Baseline(0.0, 0.0, 0.0)
        kept = _Kept(_find_bounds(rule, values), empty, 0.0, per_day, size, days, began, None, 1, {})
        kept = _choose_level(rule, kept, values, weights)
        group = 1 if rule.fixed else max(1, min(math.ceil(per_day / _MOST_PER_DAY), len(values) // LEAST_BASELINE))
        kept = kept._replace(group=group)
        values, weights, started = kept.group_values(values, weights, started)
        hours = hour_of_week(started) if days >= SEASONAL_DAYS else None
        span = kept.seen_bounds[1] - kept.seen_bounds[0]
        kept = kept._replace(baseline=fit_baseline(values, weights, hours, largest=rule.largest, span=span))
        return _Row(kept, self._make(rule, kept, series, now).begin(), now - self.reader.ledger.writing, "")

    def _read_before(self, series: Series, now: float, days: float) -> WindowValues:
        """What was judged before a detector begins: all that its first block does not have."""
        return self.reader.read_part(series, Span(now - days * _DAY, now), now - self.reader.ledger.writing)

    def _count_per_day(self, series: Series, now: float) -> float:
        """How many values a day had in the last week."""
        ((count, first),) = self.connection.execute(
            "SELECT SUM(judged), MIN(pane) FROM rageval_panes WHERE series = ? AND pane >= ?",
            (series.id, now - 7 * _DAY),
        )
        return 1.0 if not count else max(1.0, float(count) / max(1.0, (now - first) / _DAY))

    def _read_block(
        self, series: Series, began: float, counted: float, trace_id: str, now: float, most: int
    ) -> Sequence[Sequence[Any]]:
        """The next values, except the latest: another monitor may still be writing some that come before those.

        Traces of long ago that are judged now, to fill a new series, say nothing of today.
        """
        return self.connection.execute(
            "SELECT value, weight, started, counted, trace_id FROM rageval_judgements WHERE series = ? "
            "AND state = 'judged' AND (counted > ? OR (counted = ? AND trace_id > ?)) AND counted < ? "
            "AND started >= ? ORDER BY counted, trace_id LIMIT ?",
            (series.id, counted, counted, trace_id, now - self.reader.ledger.writing, began - _DAY, most),
        )

    def _write(self, rule: ChangeRule, series: Series, row: _Row) -> None:
        settings = {"rule": _describe(rule)} | {
            name: part for name, part in row.kept._asdict().items() if name != "baseline"
        }
        texts = [json.dumps(one) for one in (settings, row.kept.baseline._asdict(), row.state)]
        self.connection.execute(_PUT, (rule.alert, series.id, *texts, row.counted, row.trace_id))


class _Kept(NamedTuple):
    """What does not change while a detector runs.

    The baseline is of at most `size` values in `days` days, `per_day` a day, before the detector began. `level` is the
    number that people know, `above` the percentile above which values count (None for means), `group` how many values
    are seen as one, `steps` the size of each step in what is seen, and `settled` when the last change began or ended,
    0 before the first one.
    """

    bounds: tuple[float, float]
    baseline: Baseline
    level: float
    per_day: float
    size: int
    days: float
    began: float
    above: float | None
    group: int
    steps: Mapping[str, float]
    settled: float = 0.0

    @property
    def seen_bounds(self) -> tuple[float, float]:
        return self.bounds if self.above is None else (0.0, 1.0)

    def group_values(self, values: Floats, weights: Floats, started: Floats) -> tuple[Floats, Floats, Floats]:
        """What is seen of values: the weighted mean of each whole group, its mean weight, and when it began.

        What a group gains is the mean of what its values gain, so the bound of false alarms stays as it is.
        """
        seen = np.clip(values, *self.bounds) if self.above is None else (values > self.above).astype(np.float64)
        if self.group == 1:
            return seen, weights, started
        shape = (len(seen) // self.group, self.group)
        whole = shape[0] * shape[1]
        own = weights[:whole].reshape(shape)
        totals = own.sum(axis=1)
        means = np.clip((own * seen[:whole].reshape(shape)).sum(axis=1) / totals, *self.seen_bounds)
        return means, totals / self.group, started[: whole : self.group]


class _Row(NamedTuple):
    kept: _Kept
    state: State
    counted: float
    trace_id: str


_PUT = insert_or_set("rageval_detectors", ("alert", "series"), ("settings", "baseline", "state", "made", "trace_id"))


def _describe(rule: ChangeRule) -> list[Any]:
    """What of a rule a detector's state depends on."""
    fixed = None if rule.fixed is None else [rule.fixed.name, len(rule.fixed.values), float(rule.fixed.values.sum())]
    steps = [[name, *step] for name, step in rule.steps.items()]
    return [steps, list(rule.sides), list(rule.bounds), rule.largest, rule.percent, fixed]


def _find_bounds(rule: ChangeRule, values: Floats) -> tuple[float, float]:
    """The bounds of what counts; on a side where the metric has none, twice as far out as nearly all of the values."""
    low, high = (one if one is not None and math.isfinite(one) else None for one in rule.bounds)
    tail = float(np.percentile(np.abs(values), _TAIL)) * _ROOM or 1.0
    found = (-tail if values.min() < 0 else 0.0) if low is None else low, tail if high is None else high
    return found if found[0] < found[1] else (found[0], found[0] + 1.0)


def _choose_level(rule: ChangeRule, kept: _Kept, values: Floats, weights: Floats) -> _Kept:
    """The number that the baseline comes to, and its steps in what the detector sees."""
    if rule.percent is None:
        level = float((weights * np.clip(values, *kept.bounds)).sum() / weights.sum())
        return kept._replace(level=level, steps=_size_steps(rule, level))
    level = compute_percentile(values, rule.percent, weights / weights.sum())
    sign = 1 if rule.lower_is_better else -1

    def share(moved: Floats) -> float:
        return float((weights * (moved > level)).sum() / weights.sum())

    sizes = {name: abs(share(values + sign * size) - share(values)) for name, size in _size_steps(rule, level).items()}
    least = 1 / len(values)
    return kept._replace(level=level, above=level, steps={name: max(size, least) for name, size in sizes.items()})


def _size_steps(rule: ChangeRule, level: float) -> dict[str, float]:
    """Steps as amounts. A part of a level of 0 is nothing; there it counts as an amount: 5 % as 0.05."""
    return {name: step.amount(level) or step.size for name, step in rule.steps.items()}


def _find_first(started: Floats, before: float) -> int:
    """How many values the first baseline is of: those before a time, or if these are too few, those of a day or 30."""
    whole = int(np.searchsorted(started, before))
    if whole >= LEAST_BASELINE or not len(started):
        return whole
    is_long = float(np.ptp(started)) >= 2 * _DAY
    return max(LEAST_BASELINE, int(np.searchsorted(started, started[0] + _DAY)) if is_long else 0)


def _take(columns: Sequence[Floats], end: int, days: float) -> list[Floats]:
    """The values before a place, of at most so many days."""
    begin = int(np.searchsorted(columns[-1][:end], columns[-1][end - 1] - days * _DAY))
    return [column[begin:end] for column in columns]


def hour_of_week(started: Any) -> Any:
    """The hour of the week of moments, from Monday 0:00 UTC."""
    return ((np.asarray(started) - _MONDAY) // _HOUR).astype(np.int64) % HOURS
