"""The table of systems and slices: how close the judge comes to people on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rageval_spec.calibration.measures import Measure
from rageval_spec.calibration.slices import FEWEST, SliceCalibration
from rageval_spec.reports.shared.console import tabulate
from rageval_spec.wording import count_noun, format_interval, format_number, format_signed, make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType

_MOST_NAMED = 5


def draw_slices(parts: Sequence[SliceCalibration]) -> Iterator[RenderableType]:
    """A row for each part with enough labelled items, and a sentence on the others."""
    from rich.text import Text

    enough = [part for part in parts if part.bias is not None]
    if enough:
        header = ("part", "items", "judge", "people", "bias", "95% interval", "AUROC", "95% interval")
        yield tabulate(header, [_describe(part) for part in enough], {1, 2, 3, 4, 6})
    few = [part for part in parts if part.bias is None]
    if few:
        yield Text(make_visible(_list_few(few)), "dim")
    if parts:
        yield ""


def _describe(part: SliceCalibration) -> tuple[str, ...]:
    means = format_number(part.judged), format_number(part.labelled)
    bias, auroc = _write(part.bias, signed=True), _write(part.auroc, signed=False)
    return f"{part.kind} {part.name}", str(part.items), *means, *bias, *auroc


def _write(measure: Measure | None, *, signed: bool) -> tuple[str, str]:
    if measure is None or measure.value is None:
        return "", ""
    return (format_signed if signed else format_number)(measure.value), format_interval(measure.interval)


def _list_few(parts: Sequence[SliceCalibration]) -> str:
    named = ", ".join(f"{part.kind} {part.name} ({part.items})" for part in parts[:_MOST_NAMED])
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    are = "has" if len(parts) == 1 else "have"
    return f"{count_noun(len(parts), 'part')} {are} fewer than {FEWEST} labelled items: {named}{more}."
