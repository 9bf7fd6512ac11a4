"""Draws a trend on a terminal: a chart of the newest records for each metric, with its breaks, changes and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rageval_spec.data.trend import Change, Series, Trend
from rageval_spec.wording import count_noun, format_number, make_visible

_HEIGHT = 8
_SHORTEST_WIDTH = 20
_POINT, _BREAK, _BOUND = "•", "┊", "┄"


def draw_trend(trend: Trend, width: int) -> str:
    """The charts below one another, each with the newest points that fit into `width` columns."""
    lines = [make_visible(trend.name)]
    for series in trend.series:
        lines += ["", *_draw_series(series, width)]
    if any(series.changes for series in trend.series):
        share = f"{trend.false_alarms:.0%}"
        lines += ["", f"▲▼ a change of level; without one, a stretch gets a mark with a probability of at most {share}"]
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


def _mark(change: Change) -> str:
    return "▲" if change.after > change.before else "▼"


def _draw_chart(series: Series) -> Iterator[str]:
    values = [point.mean for point in series.points]
    low, high = min(values), max(values)
    near = [bound for bound in series.bounds.values() if low - (high - low) <= bound <= high + (high - low)]
    low, high = min([low, *near]), max([high, *near])
    span = high - low
    height = _HEIGHT if span else 1
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
    columns: list[int | None] = []
    for index in range(len(series.points)):
        columns += [None, index] if index in broken else [index]
    return columns


def _find_row(value: float, low: float, span: float, height: int) -> int:
    return round((value - low) / span * (height - 1)) if span else 0
