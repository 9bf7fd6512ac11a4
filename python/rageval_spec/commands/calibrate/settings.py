"""What the options of `calibrate` mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rageval_spec.calibration.thresholds import Criterion
from rageval_spec.data.labels import Scale
from rageval_spec.errors import UsageError

_GUARANTEE = re.compile(r"(?:wrong(?: answers)?(?: sent)? *(?:<=|≤) *)?([0-9]+(?:\.[0-9]+)?) *%")
_PRECISION = re.compile(r"precision *(?:>=|≥) *([0-9]*\.?[0-9]+)( *%)?")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user wants to know.

    Attributes:
        scale: the labels' worst and best.
        criterion: what thresholds are the best by.
        width: the width of the intervals for which labels are planned.
        limit: the largest share of wrong answers to promise; None for no promise.
        confidence: the probability with which the promise must be kept.
        details: whether to show all tables.
    """

    scale: Scale | None
    criterion: Criterion
    width: float
    limit: float | None
    confidence: float
    details: bool


def read_scale(scale: str | None) -> Scale | None:
    """The labels that are worst and best: `1..5`."""
    if scale is None:
        return None
    low, dots, high = scale.partition("..")
    try:
        found = Scale(float(low), float(high))
    except ValueError:
        found = None
    if found is None or not dots or found.low == found.high:
        raise UsageError(f"--scale {scale}: write the worst and the best label, such as 1..5")
    return found


def read_guarantee(guarantee: str | None) -> float | None:
    """The largest share of wrong answers: `wrong answers sent <= 2%`."""
    if guarantee is None:
        return None
    found = _GUARANTEE.fullmatch(guarantee.strip())
    limit = float(found[1]) / 100 if found else 0.0
    if not 0 < limit < 1:
        raise UsageError(
            f"--guarantee '{guarantee}': write the largest share of wrong answers, such as 2% or 'wrong <= 2%'"
        )
    return limit


def read_criterion(threshold: str) -> Criterion:
    """What the threshold is the best by: `f1`, `youden`, `precision>=0.95` or `precision>=95%`."""
    text = threshold.strip().casefold()
    if text == "f1":
        return Criterion("f1")
    if text == "youden":
        return Criterion("youden")
    found = _PRECISION.fullmatch(text)
    wanted = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < wanted <= 1:
        raise UsageError(f"--threshold '{threshold}': write f1, youden or a precision, such as 'precision>=0.95'")
    return Criterion("precision", wanted)
