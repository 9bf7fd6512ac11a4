"""Several judges side by side: a table, and which of them is better in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rageval_spec.calibration.comparing import Compared, JudgeComparison, JudgeDifference, JudgeRow
from rageval_spec.calibration.spending import Spending
from rageval_spec.reports.shared.console import tabulate
from rageval_spec.wording import (
    ADJUSTED,
    count_noun,
    format_interval,
    format_number,
    format_p_value,
    format_probability,
    format_signed,
    make_visible,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

_NAMES: Mapping[Compared, str] = {"auroc": "AUROC", "kappa": "kappa", "mae": "mean absolute error"}
_BETTER: Mapping[Compared, str] = {
    "auroc": "tells good answers from bad ones better",
    "kappa": "decides more like people",
}
"""What is said of a judge that is better by a measure; the others are in the table of --details."""
_MOST_SAID = 6
_SPENDING = ("$/sample", "s/sample")
"""Columns that are left out if no judge has a number for them."""


def draw_comparison(found: JudgeComparison, *, details: bool) -> Iterator[RenderableType]:
    """The judges in a table, and what is certain about them; with `details`, the test of each pair."""
    from rich.text import Text

    yield Text(f"{len(found.rows)} judges on the same {found.items} labelled items", "bold")
    yield ""
    yield _tabulate(found.rows)
    yield ""
    for sentence in conclude(found):
        yield Text(make_visible(sentence))
    yield ""
    if details:
        yield from _draw_details(found)


def _draw_details(found: JudgeComparison) -> Iterator[RenderableType]:
    errors = [(row.metric, *_write(row, "mae"), *_write(row, "bias")) for row in found.rows]
    yield tabulate(("metric", "mean absolute error", "95% interval", "bias", "95% interval"), errors, {1, 3})
    yield ""
    if found.differences:
        rows = [_describe_difference(one) for one in found.differences]
        yield tabulate(("judges", "measure", "difference", "95% interval", "adjusted p"), rows, {2, 4})
        yield ""


def conclude(found: JudgeComparison) -> Iterator[str]:
    """Which judges are certainly better, and by what."""
    certain = [one for one in found.differences if one.better is not None and one.measure in _BETTER]
    for one in certain[:_MOST_SAID]:
        first_is_better = one.better == one.first
        worse = one.second if first_is_better else one.first
        change = format_signed(one.difference if first_is_better else -one.difference)
        interval = format_interval(one.interval) if first_is_better else _turn(one)
        yield (
            f"{one.better} {_BETTER[one.measure]} than {worse}: {_NAMES[one.measure]} {change} {interval}, {ADJUSTED} "
            f"{format_p_value(one.p_adjusted)}."
        )
    if len(certain) > _MOST_SAID:
        yield f"{count_noun(len(certain) - _MOST_SAID, 'more difference')} of this kind: see --details."
    if not certain:
        yield "These labels do not show that one judge is better than another."


def _turn(one: JudgeDifference) -> str:
    """The interval of the difference the other way round."""
    if one.interval is None:
        return ""
    return f"[{format_number(-one.interval.high)}, {format_number(-one.interval.low)}]"


def _tabulate(rows: Sequence[JudgeRow]) -> RenderableType:
    named = any(row.judge not in (None, row.metric) for row in rows)
    first = ["metric", "judge"] if named else ["metric"]
    spent = [_describe_spending(row.spending) for row in rows]
    known = [place for place in range(len(_SPENDING)) if any(one[place] for one in spent)]
    header = (*first, "AUROC", "95% interval", "kappa", "95% interval", "bias", *(_SPENDING[place] for place in known))
    described = [
        (
            row.metric,
            *([row.judge or ""] if named else []),
            *_write(row, "auroc"),
            *_write(row, "kappa"),
            _write(row, "bias")[0],
            *(cost[place] for place in known),
        )
        for row, cost in zip(rows, spent, strict=True)
    ]
    numbers = {place for place, name in enumerate(header) if name not in (*first, "95% interval")}
    return tabulate(header, described, numbers)


def _write(row: JudgeRow, name: str) -> tuple[str, str]:
    measure = row.find(name)
    if measure is None or measure.value is None:
        return "", ""
    return (format_signed if name == "bias" else format_number)(measure.value), format_interval(measure.interval)


def _describe_spending(spending: Spending) -> tuple[str, str]:
    cost = "" if spending.cost is None else format_number(spending.cost, 4) if spending.cost else "0"
    return cost, "" if spending.seconds is None else _format_seconds(spending.seconds)


def _format_seconds(seconds: float) -> str:
    return "< 0.001" if seconds < 0.001 else format_number(seconds)


def _describe_difference(one: JudgeDifference) -> tuple[str, ...]:
    return (
        f"{one.first} less {one.second}",
        _NAMES[one.measure],
        format_signed(one.difference),
        format_interval(one.interval),
        format_probability(one.p_adjusted),
    )
