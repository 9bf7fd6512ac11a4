"""A reliability diagram: of the answers with each value, what do people say?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rageval_spec.reports.shared.console import tabulate
from rageval_spec.statistics.reliability import Bin
from rageval_spec.wording import format_number

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDTH = 30
_SAID, _EMPTY, _JUDGED = "█", "·", "│"


def draw_diagram(bins: Sequence[Bin]) -> RenderableType:
    """A row for each bin: how many answers, what the judge and people say of them, and a bar."""
    rows = [
        (
            f"{one.low:.1f} to {one.high:.1f}",
            str(one.count),
            format_number(one.value),
            format_number(one.label),
            draw_bar(one),
        )
        for one in bins
    ]
    header = ("judge's values", "items", "judge", "people", f"people {_SAID}, judge {_JUDGED}")
    return tabulate(header, rows, {1, 2, 3})


def draw_bar(one: Bin) -> str:
    """A bar as long as what people say, with a mark at what the judge says."""
    said, judged = round(one.label * _WIDTH), min(round(one.value * _WIDTH), _WIDTH - 1)
    return "".join(_JUDGED if place == judged else _SAID if place < said else _EMPTY for place in range(_WIDTH))
