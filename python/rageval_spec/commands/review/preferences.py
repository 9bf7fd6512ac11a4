"""`review preferences`: whether choices between two answers follow their order or their lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.diagnostics import dump_visible
from rageval_spec.reading.preferences import read_preferences
from rageval_spec.reports.shared.console import render_text
from rageval_spec.review.preferences import ENOUGH, SIGNIFICANT, PreferenceBias, Share, Swaps, measure_preferences
from rageval_spec.wording import count_noun, format_p_value, format_percent, make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.data.interval import Interval


def describe_preferences(paths: Sequence[Path], columns: Sequence[str], form: str) -> bytes:
    """What choices depend on besides the answers' content, on each metric, as text or JSON.

    Args:
        paths: the files of choices.
        columns: names of columns as `part=name`.
        form: `text` or `json`.

    Raises:
        DataError: a file cannot be read.
        UsageError: a column is not `part=name`.
    """
    found = measure_preferences(read_preferences(paths, columns))
    if form == "json":
        return dump_visible([asdict(one) for one in found]).encode()
    return render_text(lambda _: (block for one in found for block in _draw(one)))


def _draw(found: PreferenceBias) -> Iterator[RenderableType]:
    from rich.text import Text

    title = f"Preferences on {found.metric}" if found.metric else "Preferences"
    ties = f", {count_noun(found.ties, 'tie')}" if found.ties else ""
    yield Text(make_visible(f"{title}: {count_noun(found.verdicts, 'verdict')}{ties}"), "bold")
    yield ""
    for sentence, is_bias in _conclude(found):
        yield Text(f"{'!' if is_bias else ' '} {sentence}", "yellow" if is_bias else "")
    if found.questions < ENOUGH:
        few = f"Only {count_noun(found.questions, 'question')}: {ENOUGH} or more show whether order and length matter."
        yield Text(few, "yellow")
    if found.reason is not None:
        yield Text(f"Whether length matters cannot be told: {found.reason}.")
    yield from _say_orders(found.swaps)
    yield ""


def _conclude(found: PreferenceBias) -> Iterator[tuple[str, bool]]:
    if found.first is not None:
        yield f"The answer that is shown first wins {_say(found.first)}.", found.first.is_significant
    if found.first_at_equal_length is not None:
        equal = found.first_at_equal_length
        yield f"If both are equally long, the first one wins {_say(equal)}.", equal.is_significant
    if found.longer is not None:
        words = count_noun(found.unit, "word")
        yield f"An answer that is {words} longer than the other wins {_say(found.longer)}.", found.longer.is_significant


def _say(share: Share) -> str:
    """`54.1% [51%, 57.2%] of the verdicts (adjusted p = 0.0123)`."""
    value = format_percent(share.value)
    return f"{value} {_write_interval(share.interval)} of the verdicts (adjusted {format_p_value(share.p_adjusted)})"


def _write_interval(interval: Interval) -> str:
    return f"[{format_percent(interval.low)}, {format_percent(interval.high)}]"


def _say_orders(swaps: Swaps | None) -> Iterator[RenderableType]:
    from rich.text import Text

    if swaps is None:
        yield Text(
            "No pair was judged in both orders, so a preference for a place cannot be told from better answers there, "
            "unless the order was drawn at random."
        )
        return
    interval = swaps.interval
    spread = "" if interval is None else f" {_write_interval(interval)}"
    yield Text(
        f"Of {count_noun(swaps.pairs, 'pair')} in both orders, {format_percent(swaps.same / swaps.pairs)}{spread} have "
        "the same verdict."
    )
    if not swaps.first + swaps.second:
        return
    yield Text(
        f"The answer shown first won both times in {swaps.first}, the one shown second in {swaps.second} "
        f"({format_p_value(swaps.p_value)}).",
        "yellow" if swaps.p_value < SIGNIFICANT else "",
    )
