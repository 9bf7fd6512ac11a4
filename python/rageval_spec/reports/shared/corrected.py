"""What people would say: the numbers of a judge, corrected by labels, beside those that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec.data.correction import Correction
from rageval_spec.wording import format_interval, format_number, format_signed

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, Interval

Row: TypeAlias = tuple[str, ...]
HEADER: Row = ("metric", "judge alone", "corrected", "labels alone", "labels", "worth")
NUMBERS = frozenset(range(1, len(HEADER)))
"""The columns with numbers."""
METHODS = {
    "ppi": "prediction-powered inference, PPI++",
    "rogan_gladen": "Rogan and Gladen's correction",
}
_NO_NUMBER = "–"


def list_corrected(evaluation: Evaluation, digits: int) -> list[Row]:
    """A row for each corrected mean and difference, with the cells of `HEADER`; no row if no metric has labels."""
    means = [_describe_mean(one, evaluation, digits) for one in evaluation.aggregates if one.correction]
    differences = [
        _describe_difference(one, evaluation, digits) for one in evaluation.every_comparison if one.correction
    ]
    return [*means, *differences]


def explain_corrections(evaluation: Evaluation) -> Iterator[str]:
    """What the rows mean, and why a number is missing, in sentences."""
    found = [one.correction for one in evaluation.aggregates if one.correction]
    methods = dict.fromkeys(METHODS[one.method] for one in found)
    yield (
        f"The judge's numbers are corrected by people's labels of some answers ({'; '.join(methods)}), so the "
        "intervals are of what people would say, however much the judge errs. 'worth' is how many labels would be "
        "needed for such an interval without the judge."
    )
    if any(one.is_clipped for one in found):
        yield "A number or interval that reached beyond what the metric can be ends there."
    if any(not one.correction.is_paired for one in evaluation.every_comparison if one.correction):
        yield "Where few questions have labels for both answers, a difference is that of the two corrected means."
    for reason, subjects in _gather_reasons(evaluation).items():
        yield f"{', '.join(subjects)}: no corrected mean, because {reason}."


def _gather_reasons(evaluation: Evaluation) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in evaluation.aggregates:
        if one.correction is not None and one.correction.reason is not None:
            found.setdefault(one.correction.reason.rstrip("."), []).append(_name(one, evaluation))
    return found


def _describe_mean(one: Aggregate, evaluation: Evaluation, digits: int) -> Row:
    assert one.correction is not None
    return _name(one, evaluation), *_cells(one.mean, one.interval, one.correction, digits, is_signed=False)


def _describe_difference(one: Comparison, evaluation: Evaluation, digits: int) -> Row:
    assert one.correction is not None
    name = f"{_name(one, evaluation)} vs {one.baseline}"
    return name, *_cells(one.difference, one.interval, one.correction, digits, is_signed=True)


def _cells(
    value: float | None, interval: Interval | None, correction: Correction, digits: int, *, is_signed: bool
) -> Sequence[str]:
    def show(number: float | None, ends: Interval | None) -> str:
        if number is None:
            return _NO_NUMBER
        shown = format_signed(number, digits) if is_signed else format_number(number, digits)
        return f"{shown} {format_interval(ends, digits)}".strip()

    return (
        show(correction.judged, None),  # its interval is not of what people would say, and invites to think so
        show(value, interval),
        show(correction.labelled, correction.labelled_interval),
        str(correction.labels),
        _NO_NUMBER if correction.worth is None else f"{correction.worth:.0f}",
    )


def _name(one: Aggregate | Comparison, evaluation: Evaluation) -> str:
    place = "" if len(evaluation.datasets) == 1 else f" on {one.dataset}"
    return f"{one.metric} of {one.system}{place}"
