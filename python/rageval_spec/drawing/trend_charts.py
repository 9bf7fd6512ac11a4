"""Draws a trend as text for a terminal and as one HTML page without a script.

The text has a chart of the newest records for each metric, with its breaks, changes and bounds. The page has small
multiples, each the chart of one number over time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from rageval_spec.data.results import LevelChange, Series, Trend, TrendPoint
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.html_shell import fill_page, join_styles, read_asset
from rageval_spec.wording import count_noun, format_number, format_percent

_TEXT_HEIGHT = 8
_SHORTEST_WIDTH = 20
_POINT, _BREAK, _BOUND = "•", "┊", "┄"


def draw_trend(trend: Trend, width: int) -> str:
    """The charts below one another, each with the newest points that fit into `width` columns."""
    lines = [make_visible(trend.name)]
    for series in trend.series:
        lines += ["", *_draw_series(series, width)]
    if any(series.changes for series in trend.series):
        share = format_percent(trend.false_alarms)
        lines += ["", f"▲▼ a change of level; without one, a stretch gets a mark with a probability of at most {share}"]
    lines += ["", *trend.remarks] if trend.remarks else []
    return "".join(f"{line}\n" for line in lines)


def _draw_series(series: Series, width: int) -> Iterator[str]:
    shown = _cut(series, max(_SHORTEST_WIDTH, width - 12))
    place = f" ({series.place})" if series.place else ""
    count = count_noun(len(series.points), "record")
    more = f", the newest {len(shown.points)} shown" if len(shown.points) < len(series.points) else ""
    newest = format_number(series.points[-1].mean)
    yield make_visible(f"{series.metric}{place}: {newest}, {count}{more}")
    yield from _draw_chart(shown)
    first, last = shown.points[0].time, shown.points[-1].time
    yield f"{'':>10}  {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    for one in shown.breaks:
        yield f"{'':>10}  {_BREAK} {shown.points[one.index].time:%Y-%m-%d %H:%M}: {one.reason}"
    for change in shown.changes:
        point = shown.points[change.index]
        where = f"{point.time:%Y-%m-%d %H:%M}, record {point.record_id[:8]}"
        commit = f", commit {point.commit[:8]}" if point.commit else ""
        levels = f"{format_number(change.before)} → {format_number(change.after)}"
        yield make_visible(f"{'':>10}  {_mark(change)} {where}{commit}: {levels}")


def _cut(series: Series, most: int) -> Series:
    """The newest points, with the breaks and changes between them. A break takes a column of its own."""
    start = len(series.points)
    for index in range(len(series.points) - 1, -1, -1):
        most -= 1 + any(one.index == index for one in series.breaks)
        if most < 0:
            break
        start = index
    return replace(
        series,
        points=series.points[start:],
        breaks=tuple(replace(one, index=one.index - start) for one in series.breaks if one.index > start),
        changes=tuple(replace(one, index=one.index - start) for one in series.changes if one.index >= start),
    )


def _mark(change: LevelChange) -> str:
    return "▲" if change.after > change.before else "▼"


def _draw_chart(series: Series) -> Iterator[str]:
    values = [point.mean for point in series.points]
    low, high = min(values), max(values)
    near = [bound for bound in series.bounds.values() if low - (high - low) <= bound <= high + (high - low)]
    low, high = min([low, *near]), max([high, *near])
    span = high - low
    height = _TEXT_HEIGHT if span else 1
    bounds = {_find_row(bound, low, span, height) for bound in near}
    columns = _list_columns(series)
    for row in range(height - 1, -1, -1):
        filler = _BOUND if row in bounds else " "
        cells = [
            _BREAK if point is None else _POINT if _find_row(values[point], low, span, height) == row else filler
            for point in columns
        ]
        label = format_number(high) if row == height - 1 else format_number(low) if row == 0 else ""
        yield f"{label:>10}  {''.join(cells)}".rstrip()
    marks = {change.index: _mark(change) for change in series.changes}
    if marks:
        yield f"{'':>10}  {''.join(' ' if point is None else marks.get(point, ' ') for point in columns)}".rstrip()


def _list_columns(series: Series) -> list[int | None]:
    """The index of the point in each column; None for a break."""
    broken = {one.index for one in series.breaks}
    return [at for index in range(len(series.points)) for at in ([None, index] if index in broken else [index])]


def _find_row(value: float, low: float, span: float, height: int) -> int:
    return round((value - low) / span * (height - 1)) if span else 0


_WIDTH, _PAGE_HEIGHT = 460.0, 150.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 10.0, 24.0
_MOST_DOTS = 200
"""Above this many points a chart has only the line, and the dots of its ends, of changes, and of points without a
line."""


@dataclass(frozen=True)
class _Frame:
    """Where values and times are on a chart, which is `_WIDTH` by `_PAGE_HEIGHT` pixels."""

    low: float
    high: float
    begin: float
    end: float

    def x(self, time: datetime) -> float:
        span = self.end - self.begin
        share = (time.timestamp() - self.begin) / span if span else 0.5
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return round(_PAGE_HEIGHT - _BOTTOM - share * (_PAGE_HEIGHT - _TOP - _BOTTOM), 1)


def write_trend(trend: Trend) -> bytes:
    """The page in UTF-8. It makes no request, runs no script, and shows names as text."""
    return fill_page(
        read_asset("chart.svg.jinja") + read_asset("trend.html.jinja"),
        join_styles(("page.css", "overview.css", "trend.css")),
        title=make_visible(trend.name),
        charts=[describe_chart(series) for series in trend.series],
        records=max(len(series.points) for series in trend.series),
        false_alarms=format_percent(trend.false_alarms),
        remarks=trend.remarks,
        **PLACES,
    )


PLACES = {"width": _WIDTH, "height": _PAGE_HEIGHT, "left": _LEFT, "right": _WIDTH - _RIGHT,
          "bottom": _PAGE_HEIGHT - _BOTTOM, "top": _TOP}  # fmt: skip
"""What a template that begins with `chart.svg.jinja` needs to know besides charts."""


def describe_chart(
    series: Series,
    gaps: Sequence[int] = (),
    marks: Sequence[tuple[datetime, str]] = (),
    describe_point: Callable[[TrendPoint], str] | None = None,
    most_dots: int = _MOST_DOTS,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> dict[str, Any]:
    """What the template draws of one series: texts and coordinates.

    Args:
        gaps: the points before which the line is interrupted, because nothing is known in between.
        marks: moments to mark, each with a text; those outside the chart are left out.
        describe_point: what a dot says; by default its record.
        most_dots: above this many points there is only the line, and the dots that stand out.
        limits: the smallest and the largest value that there can be; the axis does not exceed them.
    """
    frame, points = _frame(series, limits), series.points
    tell = describe_point or _describe_point
    ends = [*pairwise([0, *sorted({*(one.index for one in series.breaks), *gaps}), len(points)])]
    stretches = [points[start:end] for start, end in ends]
    alone = {start for start, end in ends if end - start == 1}
    changes = {change.index: change for change in series.changes}
    last = len(points) - 1
    dots = [
        {
            "x": frame.x(point.time),
            "y": frame.y(point.mean),
            "title": tell(point),
            "kind": "" if index not in changes else "up" if changes[index].after > changes[index].before else "down",
        }
        for index, point in enumerate(points)
        if len(points) <= most_dots or index in (0, last) or index in changes or index in alone
    ]
    return {
        "metric": make_visible(series.metric),
        "place": make_visible(series.place),
        "newest": format_number(points[-1].mean),
        "interval": _describe_interval(points[-1]),
        "lines": [" ".join(f"{frame.x(one.time)},{frame.y(one.mean)}" for one in stretch) for stretch in stretches],
        "areas": [_draw_area(frame, stretch) for stretch in stretches if all(one.low is not None for one in stretch)],
        "dots": dots,
        "bounds": [
            {"y": frame.y(value), "name": name, "value": format_number(value)}
            for name, value in series.bounds.items()
            if frame.low <= value <= frame.high
        ],
        "breaks": [
            {
                "x": round((frame.x(points[one.index - 1].time) + frame.x(points[one.index].time)) / 2, 1),
                "time": f"{points[one.index].time:%Y-%m-%d %H:%M}",
                "reason": one.reason,
            }
            for one in series.breaks
        ],
        "changes": [
            {
                "time": f"{points[one.index].time:%Y-%m-%d %H:%M}",
                "commit": (points[one.index].commit or "")[:8],
                "record": points[one.index].record_id[:8],
                "kind": "up" if one.after > one.before else "down",
                "before": format_number(one.before),
                "after": format_number(one.after),
            }
            for one in series.changes
        ],
        "marks": [
            {"x": frame.x(time), "title": make_visible(title)}
            for time, title in marks
            if frame.begin <= time.timestamp() <= frame.end
        ],
        "low": format_number(frame.low),
        "high": format_number(frame.high),
        "first": f"{points[0].time:%Y-%m-%d}",
        "last": f"{points[-1].time:%Y-%m-%d}",
    }


def _frame(series: Series, limits: tuple[float, float]) -> _Frame:
    """The frame of a series: all values, intervals and bounds near them, with a little room."""
    points = series.points
    numbers = [number for one in points for number in (one.mean, one.low, one.high) if number is not None]
    low, high = min(numbers), max(numbers)
    span = (high - low) or abs(high) or 1.0
    near = [bound for bound in series.bounds.values() if low - span <= bound <= high + span]
    low, high = min([low, *near]), max([high, *near])
    room = 0.05 * ((high - low) or span)
    least, most = min(limits[0], low), max(limits[1], high)
    return _Frame(
        max(least, low - room), min(most, high + room), points[0].time.timestamp(), points[-1].time.timestamp()
    )


def _draw_area(frame: _Frame, points: Sequence[TrendPoint]) -> str:
    """The outline of the intervals: along the upper ends, and back along the lower ones."""
    upper = [f"{frame.x(one.time)},{frame.y(one.high)}" for one in points if one.high is not None]
    lower = [f"{frame.x(one.time)},{frame.y(one.low)}" for one in reversed(points) if one.low is not None]
    return " ".join((*upper, *lower))


def _describe_interval(point: TrendPoint) -> str:
    if point.low is None or point.high is None:
        return ""
    return f"[{format_number(point.low)}, {format_number(point.high)}]"


def _describe_point(point: TrendPoint) -> str:
    commit = f", commit {point.commit[:8]}" if point.commit else ""
    parts = f"{format_number(point.mean)} {_describe_interval(point)}".strip()
    return make_visible(
        f"{point.time:%Y-%m-%d %H:%M} UTC: {parts}, {point.outcome}, record {point.record_id[:8]}{commit}"
    )
