"""What makes a judge err, in sentences; with details, the effects of all properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rageval_spec.calibration.bias import Bias, Biases
from rageval_spec.reports.shared.console import tabulate
from rageval_spec.wording import format_interval, format_probability, format_signed, make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType


def draw_biases(biases: Biases, *, details: bool) -> Iterator[RenderableType]:
    """The biases that the labels show; with `details`, all effects, and the properties that were left out."""
    from rich.text import Text

    yield Text("What makes the judge err", "bold")
    certain = [one for one in biases.found if one.is_significant]
    for one in certain:
        yield Text(make_visible(f"! {one}"), "yellow")
        if explanation := one.explain():
            yield Text(f"  {explanation}", "yellow")
    if biases.reason is not None:
        yield Text(make_visible(f"It cannot be told: {biases.reason}."))
    elif not certain:
        yield Text("Nothing that these labels can show.")
    yield ""
    if details:
        yield from _draw_details(biases)


def _draw_details(biases: Biases) -> Iterator[RenderableType]:
    from rich.text import Text

    if biases.found:
        header = ("property", "effect on the error", "95% interval", "at equal labels", "standardized", "adjusted p")
        yield tabulate(header, [_describe(one) for one in biases.found], {1, 4, 5})
    for left in biases.left_out:
        yield Text(make_visible(f"Left out: {left.name} ({left.reason})."), "dim")
    if biases.found or biases.left_out:
        yield ""


def _describe(one: Bias) -> tuple[str, ...]:
    held = one.at_equal_labels
    return (
        one.change.rpartition(" ")[0],
        format_signed(one.effect.slope),
        format_interval(one.effect.interval),
        "" if held is None else f"{format_signed(held.slope)} {format_interval(held.interval)}",
        format_signed(one.standardized),
        format_probability(one.p_adjusted),
    )
