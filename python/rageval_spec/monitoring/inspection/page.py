"""The page of a monitor: one HTML file without a script that makes no request.

It has the alerts, the last windows, the ledger, trends, and the worst answers, without what `redact:` of the spec
leaves out. Every text of it comes from users, models or tools, and is shown as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

from rageval_spec.data import results
from rageval_spec.data.alerts import AlertMessage
from rageval_spec.data.outcomes import Correction, Interval
from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.alert_text import format_time
from rageval_spec.drawing.html_shell import fill_page, join_styles, read_asset
from rageval_spec.drawing.trend_charts import PLACES, describe_chart
from rageval_spec.monitoring.alerts import AlertBook, AlertRow, load_message
from rageval_spec.monitoring.inspection.redaction import Redaction
from rageval_spec.monitoring.ledger import STATES
from rageval_spec.monitoring.looks.experiments import Experiment
from rageval_spec.monitoring.looks.levels import WindowComparison
from rageval_spec.monitoring.looks.looking import Watch
from rageval_spec.monitoring.looks.windows import Span, WindowNumbers
from rageval_spec.monitoring.outputs.outbox import Outbox
from rageval_spec.monitoring.traces.trace_judging import FEEDBACK, Series
from rageval_spec.plugin import AnswerMetric
from rageval_spec.statistics.intervals import Resampling, compute_exact_interval
from rageval_spec.statistics.window_summaries import MANY
from rageval_spec.store.disk import write_or_explain
from rageval_spec.wording import (
    count_noun,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_signed,
    list_counts,
)

HOUR, DAY = 3600, 86_400
UNITS = (("hour", HOUR, 2 * DAY), ("day", DAY, 30 * DAY))
"""What a point of a trend covers, and how far back trends go; in seconds."""
LONGEST = 20_000
"""The most bytes of a text on the page; what is longer is cut, and says so."""
_ROOM, _DOTS = 300_000, 2_000
"""The bytes of the page for the texts of all answers, and its dots in trends: with many metrics, each gets less."""
_WORST, _MOST_ANSWERS, _FEWEST = 10, 120, 3
_SHORT = 200
"""The most bytes of an id, of the line that opens an answer, and the least that is left for each of its texts."""
_MOST_READ = 100_000
"""Of how many traces the failures of a window are read at most, the newest first."""
_TRIES = 3
"""How often the ledger is read until it adds up, because a monitor may write in between."""
_ROUNDING = 1e-9
"""A spread of values that is a smaller part of their squared mean is one of rounding: they are equal."""
_REACH = NormalDist().inv_cdf(0.975)
_PARTS = {"metric": "metric", "judges": "judge", "models": "model"}
_BADNESS = {"warning": "weak", "low": "weak", "medium": "weak", "critical": "bad", "high": "bad"}


class _StoredSeries(NamedTuple):
    """A series as the database has it."""

    id: int
    metric: str
    description: str


_Point: TypeAlias = tuple[int, results.TrendPoint]
"""The numbers of one hour or day, with the id of the series that they are of."""


@dataclass(frozen=True)
class PageWriter:
    """Writes the page of a monitor to a file."""

    watch: Watch
    metrics: Mapping[str, AnswerMetric[Any]]
    book: AlertBook
    redaction: Redaction
    path: Path

    def write(self, now: float) -> None:
        """Write the page anew; a reader sees the old one or the new one, never half a page."""
        write_or_explain(self.path, self.draw(now), f"{self.path}: the page cannot be written")

    def draw(self, now: float) -> bytes:
        """The page in UTF-8."""
        stored = self._list_series()
        ids = self.watch.ledger.current_series()
        newest = {one.metric: ids[one.metric] for one in stored if one.metric in ids}  # in the order of their beginning
        current = [Series(one, name, self.metrics.get(name)) for name, one in newest.items() if self._is_watched(name)]
        alerts = [*self._describe_alerts()]
        firing = [one for one in alerts if one["state"] == "firing"]
        seen, ledger = self._read_ledger([one for one in current if one.metric is not None])
        settings = self.watch.reader.statistics
        fast = Resampling(settings.confidence, settings.resamples, 0, settings.seed)  # no p-value of it is shown
        series = {one.name: one for one in current}
        watch = replace(self.watch, series=series, reader=replace(self.watch.reader, statistics=fast))
        windows = [*watch.compare_windows(now)]
        worst = [(make_visible(one.name), self._read_worst(one, now)) for one in current]
        answers = [*(one for _, found in worst for one in found), *(one for alert in firing for one in alert["worst"])]
        for one in answers:
            _show_texts(one, _ROOM // len(answers))
        return fill_page(
            read_asset("chart.svg.jinja") + read_asset("monitor.html.jinja"),
            join_styles(("page.css", "overview.css", "trend.css", "monitor.css")),
            title=make_visible(self.book.monitor),
            made=format_time(now),
            outcome=max((one["kind"] for one in firing), key=("weak", "bad").index, default="good"),
            lead=f"{count_noun(len(firing), 'alert')} firing" if firing else "No alert is firing",
            seen=count_noun(seen, "trace"),
            alerts=alerts,
            experiment=_describe_experiment(watch.read_experiment()),
            windows=[
                {**_describe_window(one, compared), "gaps": self._explain_gaps(watch.series[one.metric], one)}
                for one, compared in windows
            ],
            has_costs=any(one.cost for one, _ in windows),
            states=[state.replace("_", " ") for state in STATES],
            ledger=ledger,
            sum=_describe_sum(seen, ledger),
            trends=[*self._describe_trends(stored, current, now)],
            worst=[(name, found) for name, found in worst if found],
            remarks=[*self._list_remarks([name for name in newest if not self._is_watched(name)])],
            **PLACES,
        )

    def _list_series(self) -> list[_StoredSeries]:
        rows = self.watch.ledger.connection.execute(
            "SELECT id, metric, description FROM rageval_series WHERE monitor = ? ORDER BY id",
            (self.watch.ledger.monitor,),
        )
        return [_StoredSeries(*row) for row in rows]

    def _is_watched(self, metric: str) -> bool:
        return metric in self.metrics or metric.startswith(FEEDBACK)

    def _describe_alerts(self) -> Iterator[dict[str, Any]]:
        """The alerts that hold or ever fired, first those that fire now, then the newest."""
        rows = [row for row in self.book.read() if row.state != "clear"]
        for row in sorted(rows, key=lambda row: (row.state != "firing", -(row.held_since or row.began or 0.0))):
            yield self._describe_alert(row)

    def _describe_alert(self, row: AlertRow) -> dict[str, Any]:
        assert row.message is not None, "an alert that held has a message"
        message, is_pending = load_message(row.message), row.state == "pending"
        waits = "The condition holds, but for a shorter time than 'for:' says."
        told, moved = (waits, {}) if is_pending else (message.summary, message.moved)
        severity = row.severity or "warning"
        return {
            "state": row.state,
            "kind": _BADNESS[severity] if row.state == "firing" else "",
            "severity": severity,
            "name": make_visible(message.name),
            "summary": make_visible(told),
            "since": format_time((row.held_since if is_pending else row.began) or 0.0),
            "until": "" if is_pending or row.ended is None else format_time(row.ended),
            "moved": [(part, make_visible(self.redaction.hide_quotes(why))) for part, why in moved.items()],
            "worst": [*self._read_answers(message)] if row.state == "firing" else [],
        }

    def _read_answers(self, message: AlertMessage) -> Iterator[dict[str, Any]]:
        """The answers behind an alert whose texts are still kept."""
        found = self.watch.ledger.read_traces([one.trace_id for one in message.worst])
        for one in message.worst:
            if one.trace_id in found:
                yield self._describe_answer(found[one.trace_id].trace, one.value, one.reason)

    def _list_messages(self) -> list[AlertMessage]:
        """What was told of beginnings, and the last beginning of each alert: one message for each."""
        texts = [row.message for row in self.book.list_messages() if row.state == "firing"]
        texts += [row.message for row in self.book.read() if row.message is not None and row.state != "clear"]
        return [*{one.key: one for one in map(load_message, texts)}.values()]

    def _read_ledger(self, current: Sequence[Series]) -> tuple[int, list[dict[str, Any]]]:
        """How many traces were seen, and the states of each series. Users say something of few traces, so the series
        of feedback account for no others and are left out."""
        ledger = self.watch.ledger
        for _ in range(_TRIES):
            seen = ledger.count_traces()
            counts = {one.name: [*ledger.count(one.id).values(), ledger.count_before(one.id)] for one in current}
            if all(sum(found) == seen for found in counts.values()):
                break
        return seen, [
            {"metric": make_visible(name), "counts": found, "total": sum(found), "is_whole": sum(found) == seen}
            for name, found in counts.items()
        ]

    def _explain_gaps(self, series: Series, one: WindowNumbers) -> str:
        """The most frequent reason why traces of a window have no value although they were to get one."""
        if not any(one.counts[state] for state in ("failed", "over_budget", "waiting")):
            return ""
        newest = (
            "SELECT state, reason FROM rageval_judgements WHERE series = ? AND started >= ? AND started < ? "
            f"ORDER BY started DESC LIMIT {_MOST_READ}"
        )
        rows = self.watch.ledger.connection.execute(
            f"SELECT reason FROM ({newest}) newest WHERE state IN ('failed', 'over_budget', 'waiting') GROUP BY reason "
            "ORDER BY COUNT(*) DESC, reason LIMIT 1",
            (series.id, *one.span),
        )
        reason = self.redaction.hide_reason(rows[0][0]) if rows else None
        return _show(reason, _SHORT) if reason else ""

    def _read_worst(self, series: Series, now: float) -> list[dict[str, Any]]:
        length = max((one.seconds or 0.0 for one in self.watch.node.windows), default=0.0) or float(DAY)
        if self.watch.reader.read_counts(series, Span(now - length, now))["judged"] > MANY:
            length = float(HOUR)  # all values of the stretch are sorted
        highest = series.lower_is_better
        most = max(_FEWEST, min(_WORST, _MOST_ANSWERS // max(1, len(self.metrics))))
        rows = self.watch.reader.read_worst(series, (now - length, now), most, highest=highest)
        best = self._find_best(series) if series.metric is None else _list_bounds(series)[0 if highest else 1]
        return [self._describe_answer(*row) for row in rows if row[1] != best]

    def _describe_answer(self, trace: Trace, value: float | None, reason: str | None) -> dict[str, Any]:
        """An answer with whole texts, which `_show_texts` cuts."""
        row = self.redaction.make_row(trace)
        return {
            "trace": _show(trace.id, _SHORT),
            "value": "" if value is None else format_number(value),
            "title": _show(row.get("question") or trace.id, _SHORT),
            "started": make_visible(str(row.get("started", ""))),
            "reason": self.redaction.hide_reason(reason),
            **{name: row.get(name) for name in ("question", "answer", "error")},
            "contexts": [*_list_contexts(row)],
        }

    def _find_best(self, series: Series) -> float:
        """The best that users ever said; 1 for thumbs, although nobody may have put one up."""
        ((best,),) = self.watch.ledger.connection.execute(
            "SELECT MAX(value) FROM rageval_judgements WHERE series = ? AND state = 'judged'", (series.id,)
        )
        return max(1.0, best or 0.0)

    def _list_remarks(self, gone: Sequence[str]) -> Iterator[str]:
        waiting: dict[tuple[str, str], list[str]] = {}
        for row in self.book.list_undelivered():
            waiting.setdefault((row.notifier, row.reason or "not tried yet"), []).append(load_message(row.message).name)
        for (name, reason), titles in waiting.items():
            more = f" and {len(titles) - 1:,} more" if len(titles) > 1 else ""
            yield make_visible(f"Not delivered to {name}: {titles[0]}{more}: {reason}")
        for line in Outbox(self.book.connection, self.book.monitor).describe(only_troubles=True):
            yield make_visible(f"Sent to {line}")
        if gone:
            yield make_visible(f"Not shown, because the spec no longer has the metric: {', '.join(gone)}")

    def _describe_trends(
        self, stored: Sequence[_StoredSeries], current: Sequence[Series], now: float
    ) -> Iterator[dict[str, Any]]:
        fired = self._list_messages()
        for one in current:
            alerts = [alert for alert in self.watch.node.alerts if not isinstance(alert, str)]
            bounds: dict[str, float] = {
                name: at for alert in alerts if alert.metric == one.name for name, at in alert.bounds.items()
            }
            versions = {row.id: row for row in stored if row.metric == one.name}
            marks = [(_read_moment(told.began), told.name) for told in fired if told.metric == one.name]
            for unit, length, reach in UNITS:
                points, is_mean = self._read_points(one, [*versions], length, now - reach)
                if points and (unit == "hour" or len(points) > 1):
                    has_labels = one.metric is not None and one.metric.node.labels is not None
                    measured = None if one.metric is None else one.metric.info.unit
                    place = "means" if is_mean else "without labels" if has_labels else ""
                    shown = ", ".join(filter(None, (place, measured)))
                    series, gaps = _make_series(one.name, shown, points, versions, length)
                    yield _describe_trend(
                        replace(series, bounds=bounds), unit, gaps, marks,
                        _DOTS // len(current) // len(UNITS), _list_bounds(one),
                    )  # fmt: skip

    def _read_points(self, series: Series, ids: Sequence[int], length: int, since: float) -> tuple[list[_Point], bool]:
        """The points of all series of a metric; and whether they are means although the metric is a percentile.

        Where two series have values of the same time, the newer one counts.
        """
        marks = ", ".join("?" * len(ids))
        sums = ", ".join(f"SUM({name})" for name in ("judged", "weights", "weighted", "squares", "squared_weights"))
        rows = self.watch.ledger.connection.execute(
            f"SELECT series, pane / ? * ?, {sums} FROM rageval_panes WHERE series IN ({marks}) AND pane >= ? "
            "GROUP BY 1, 2 HAVING SUM(judged) > 0 AND SUM(weights) > 0 ORDER BY 2, 1",
            (length, length, *ids, since // length * length),
        )
        judged = {start: count for _, start, count, *_ in rows}
        found = {start: (of, _estimate(_list_bounds(series), start, *sums)) for of, start, *sums in rows}
        points = [found[start] for start in sorted(found)]
        if series.percent is None:
            return points, False
        if sum(judged.values()) > MANY:
            return points, True
        found_again = (self._read_percentile(series, one, length) for one in points)
        return [one for one in found_again if one is not None], False

    def _read_percentile(self, series: Series, point: _Point, length: int) -> _Point | None:
        """The point with the percentile in place of the mean; None if its values were judged anew meanwhile."""
        of, shown = point
        span = Span(shown.time.timestamp(), shown.time.timestamp() + length)
        own, reader = replace(series, id=of), self.watch.reader
        numbers = reader.describe(own, "", span, reader.read_values(own, span))
        low, high = (None, None) if numbers.interval is None else (numbers.interval.low, numbers.interval.high)
        return None if numbers.value is None else (of, shown._replace(mean=numbers.value, low=low, high=high))


def _list_bounds(series: Series) -> tuple[float, float]:
    """The smallest and the largest value; what users say is from 0 to 1, or at least the better the higher."""
    low, high = (0.0, 1.0) if series.metric is None else series.metric.bounds
    return low, math.inf if high is None else high


def _estimate(bounds: tuple[float, float], start: float, judged: int, *sums: float) -> results.TrendPoint:
    """The weighted mean, with the normal interval of as many values as the weights are worth.

    Equal values show no spread. Within bounds, they have the exact interval of a proportion; others have none.
    """
    weights, weighted, squares, squared_weights = sums
    mean, worth = weighted / weights, weights**2 / squared_weights
    point = results.TrendPoint(count_noun(judged, "judged trace"), _read_moment(start), mean)
    if judged < 2 or worth <= 1:
        return point
    spread, (low, high) = squares / weights - mean**2, (min(bounds[0], mean), max(bounds[1], mean))
    if spread <= _ROUNDING * mean**2:
        exact = compute_exact_interval((mean - low) / (high - low) * worth, worth) if math.isfinite(high) else None
        ends = (None, None) if exact is None else (low + exact.low * (high - low), low + exact.high * (high - low))
        return point._replace(low=ends[0], high=ends[1])
    reach = _REACH * math.sqrt(spread / (worth - 1))
    return point._replace(low=max(low, mean - reach), high=min(high, mean + reach))


def _make_series(
    metric: str, place: str, points: Sequence[_Point], versions: Mapping[int, _StoredSeries], length: int
) -> tuple[results.Series, list[int]]:
    """The points with breaks where another series began; and those before which a time has no data."""
    pairs = [*enumerate(pairwise(points), 1)]
    breaks = tuple(
        results.Break(at, _tell_apart(versions[before], versions[after]))
        for at, ((before, _), (after, _)) in pairs
        if before != after
    )
    gaps = [at for at, ((_, before), (_, after)) in pairs if (after.time - before.time).total_seconds() > length]
    return results.Series(metric, place, "", None, tuple(point for _, point in points), breaks), gaps


def _tell_apart(before: _StoredSeries, after: _StoredSeries) -> str:
    """Which part of what makes a series is another one."""
    old, new = json.loads(before.description), json.loads(after.description)
    changed = [name for key, name in _PARTS.items() if old.get(key) != new.get(key)]
    return f"the {' and the '.join(changed) or 'metric'} changed"


def _describe_trend(
    series: results.Series,
    unit: str,
    gaps: Sequence[int],
    marks: Sequence[tuple[datetime, str]],
    most_dots: int,
    limits: tuple[float, float],
) -> dict[str, Any]:
    first, last = (series.points[place].time for place in (0, -1))
    shown = sorted((at, name) for at, name in marks if at >= first)
    form = "%Y-%m-%d" if unit == "day" else "%m-%d %H:%M"
    alerts = [f"{at:%Y-%m-%d %H:%M}: {make_visible(name)}" for at, name in shown]
    within = [(min(at, last), name) for at, name in shown]  # what begins after the last point is about it
    chart = describe_chart(series, gaps, within, _describe_point, most_dots, limits)
    return {**chart, "first": f"{first:{form}}", "last": f"{last:{form}}", "unit": unit, "alerts": alerts}


def _describe_point(point: results.TrendPoint) -> str:
    interval = "" if point.low is None or point.high is None else f" {format_interval(Interval(point.low, point.high))}"
    return f"{point.time:%Y-%m-%d %H:%M} UTC: {format_number(point.mean)}{interval}, {point.record_id}"


def _describe_experiment(found: Experiment | None) -> dict[str, Any] | None:
    """What the A/B test has come to; without numbers as long as there are not two systems."""
    if found is None:
        return None
    shares = found.shares.shares if found.shares is not None else ()
    kind = "bad" if found.has_wrong_shares or found.problem else "good" if found.better else ""
    told = {"bad": "not comparable", "good": f"{found.better} is better", "": "undecided"}[kind]
    checks = []
    if found.test is not None:
        checks.append((f"{found.names[1]} less {found.names[0]}", f"{format_signed(found.test.difference)} "
                       f"{format_interval(found.test.interval)}, {format_p_value(found.test.p_value)}"))  # fmt: skip
    if found.shares is not None and shares:
        said = "traces are lost" if found.has_wrong_shares else "as set"
        checks.append(("Shares of the traces", f"{said}, {format_p_value(found.shares.sequential)}"))
    return {
        "name": make_visible(f"{found.metric} by {found.by}"),
        "kind": kind,
        "told": make_visible(told),
        "problem": make_visible(found.problem or ""),
        "arms": [
            (make_visible(name), "no data" if arm.mean is None else format_number(arm.mean), f"{arm.count:,}", share)
            for name, arm, share in zip(found.names, found.arms, map(format_percent, shares or (0, 0)), strict=False)
        ],
        "checks": [(make_visible(name), told) for name, told in checks],
    }


def _describe_window(one: WindowNumbers, compared: WindowComparison) -> dict[str, Any]:
    others = {state: count for state, count in one.counts.items() if state != "judged"}
    moved = compared.difference
    of = "of the judge's values; " if moved is not None and one.is_corrected else ""
    return {
        "metric": make_visible(one.metric),
        "window": make_visible(one.window),
        "time": f"{format_time(one.span.start).removesuffix(' UTC')} to {_end(*one.span)}",
        "value": "no data" if one.value is None else format_number(one.value),
        "interval": format_interval(one.interval),
        "correction": _describe_correction(one.correction),
        "difference": "" if moved is None else format_signed(moved.difference),
        "difference_interval": "" if moved is None else format_interval(moved.interval),
        "baseline": make_visible(compared.reason or f"{of}{compared.baseline}"),
        "samples": f"{one.samples:,}",
        "others": list_counts(others),
        "coverage": "" if one.coverage is None else format_percent(one.coverage),
        "cost": f"{one.cost:,.2f} USD" if one.cost else "",
    }


def _describe_correction(found: Correction | None) -> str:
    if found is None:
        return ""
    if found.reason is not None:
        return make_visible(f"without labels: {found.reason}")
    judged = "" if found.judged is None else f"; the judge alone {format_number(found.judged)}"
    return f"corrected by {count_noun(found.labels, 'label')}{judged}"


def _end(start: float, end: float) -> str:
    """The end of a window, without the date if that is the one of its start."""
    first, last = format_time(start), format_time(end)
    return last.partition(" ")[2] if first[:10] == last[:10] else last


def _describe_sum(seen: int, ledger: Sequence[Mapping[str, Any]]) -> str:
    if not ledger:
        return "No series has begun yet."
    wrong = ", ".join(f"{one['metric']} for {one['total']:,}" for one in ledger if not one["is_whole"])
    if not wrong:
        return f"The numbers add up: each series accounts for all {count_noun(seen, 'trace')} that were seen."
    return f"The numbers do not add up: {count_noun(seen, 'trace')} were seen, but {wrong} are accounted for."


def _show_texts(answer: dict[str, Any], room: int) -> None:
    """Put the texts of an answer as the page shows them, all together in so many bytes, in place of the whole ones."""
    for name in ("question", "answer", "error", "reason"):
        if answer[name] is not None:
            answer[name] = _show(answer[name], max(_SHORT, min(room, LONGEST)))
            room -= _measure(answer[name])
    contexts, answer["contexts"] = answer["contexts"], []
    while contexts and room > 0:
        name, text = contexts.pop(0)
        answer["contexts"].append((_show(name, _SHORT), _show(text, min(room, LONGEST))))
        room -= sum(map(_measure, answer["contexts"][-1])) + _SHORT
    answer["more"] = count_noun(len(contexts), "more context") if contexts else ""


def _list_contexts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The id and the text of each context; the ids alone where texts are left out."""
    for one in row.get("contexts") or row.get("documents") or ():
        found = {"text": one} if isinstance(one, str) else one
        yield str(found.get("id") or ""), found.get("text") or ""
    if "contexts" not in row and "documents" not in row:
        yield from ((str(one), "") for one in row.get("context_ids", ()))


def _show(text: str, room: int) -> str:
    """A text with its lines, without control characters, cut if it takes more than `room` bytes of a page."""
    shown = text[:room]
    if (size := _measure(make_visible(shown, keep="\n\t"))) > room:
        shown = shown[: len(shown) * room // size]
    cut = f"… ({len(text) - len(shown):,} characters more)" if len(shown) < len(text) else ""
    return make_visible(shown, keep="\n\t") + cut


def _measure(text: str) -> int:
    """The bytes of a text in a page."""
    return len(escape(text).encode("utf-8", "replace"))


def _read_moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
