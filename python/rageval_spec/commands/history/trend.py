"""`history trend`: numbers over time, on the terminal or as a page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.errors import RagevalError
from rageval_spec.store.disk import write_atomically

if TYPE_CHECKING:
    from rageval_spec.history.database import Chosen, History
    from rageval_spec.history.trends import Wanted

_WIDTH_IN_A_PIPE = 100


def draw(history: History, wanted: Wanted, chosen: Chosen, html: Path | None = None) -> str:
    """The charts as text; or, if `html` is a file, write the page there and say so.

    Raises:
        UsageError: there are no such records or numbers.
        RagevalError: the page cannot be written.
    """
    from rageval_spec.history.trends import collect_trend

    trend = collect_trend(history, chosen, wanted)
    if html is None:
        from rageval_spec.reports.shared.trend_text import draw_trend

        return draw_trend(trend, shutil.get_terminal_size((_WIDTH_IN_A_PIPE, 24)).columns)
    from rageval_spec.reports.shared.trend_page import write_trend

    try:
        html.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(html, write_trend(trend))
    except OSError as error:
        raise RagevalError(f"{html}: the page could not be written: {error.strerror or error}") from error
    return f"wrote {html}\n"
