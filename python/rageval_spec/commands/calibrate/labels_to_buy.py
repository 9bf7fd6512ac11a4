"""What more labels would bring, in words and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rageval_spec.calibration.learning import Learning, LearningPoint, Need, Quantity
from rageval_spec.reports.shared.console import tabulate
from rageval_spec.statistics.label_counts import MOST_LABELS
from rageval_spec.wording import format_number

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS: Mapping[Quantity, str] = {
    "corrected_mean": "corrected mean",
    "labels_alone": "labels alone",
    "auroc": "AUROC",
    "kappa": "kappa",
}


def say_needs(learning: Learning, items: int) -> Iterator[str]:
    """How many labels to buy, with this judge and without it."""
    half = f"±{learning.width / 2:g}"
    corrected, alone = learning.find("corrected_mean"), learning.find("labels_alone")
    if corrected is not None and alone is not None:
        yield _say_mean(corrected, alone, learning, items)
    others = [
        f"{_COLUMNS[need.quantity]} to {half} takes about {need.labels:,} labels"
        for need in learning.needs
        if need.quantity in ("auroc", "kappa") and not need.is_met(learning.width)
    ]
    if others:
        told = "; ".join(others)
        yield f"{told[:1].upper()}{told[1:]}."


def _say_mean(corrected: Need, alone: Need, learning: Learning, items: int) -> str:
    half = f"±{learning.width / 2:g}"
    without = f"Without the judge, it takes {_count(alone)}."
    if corrected.is_met(learning.width):
        now = format_number((corrected.now or 0.0) / 2)
        return f"The corrected mean is known to ±{now}, so that ±{learning.width / 2:g} needs no more labels. {without}"
    if corrected.labels is None:
        return (
            f"Labels of all {learning.rows:,} answers would not show the mean to {half}: have the judge score more "
            f"answers. {without}"
        )
    more = max(corrected.labels - items, 1)
    return (
        f"The mean to {half} takes {corrected.labels:,} labels{_describe_bounds(corrected)} with this judge: {more:,} "
        f"more. {without}"
    )


def _count(need: Need) -> str:
    return f"more than {MOST_LABELS:,}" if need.labels is None else f"{need.labels:,}"


def _describe_bounds(need: Need) -> str:
    bounds = need.labels_interval
    return "" if bounds is None else f" [{math.floor(bounds.low):,}, {math.ceil(bounds.high):,}]"


def draw_curve(learning: Learning) -> RenderableType:
    """How the half widths of intervals shrink with labels."""
    columns = [name for name in _COLUMNS if any(name in point.widths for point in learning.curve)]
    rows = [_describe(point, columns) for point in learning.curve]
    return tabulate(("labels", *(_COLUMNS[name] for name in columns), ""), rows, range(len(columns) + 1))


def _describe(point: LearningPoint, columns: list[Quantity]) -> tuple[str, ...]:
    cells = (f"±{format_number(point.widths[name] / 2)}" if name in point.widths else "" for name in columns)
    return f"{point.labels:,}", *cells, "" if point.is_measured else "expected"
