"""Confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean or a percentile, with `low <= high`.

    `confidence` is its level, in (0, 1); `method` names what computed it: a bootstrap, or "betting" for
    a confidence sequence, which also holds if the number of questions was not fixed beforehand.
    """

    low: float
    high: float
    confidence: float = 0.95
    method: str = "bootstrap-bca"
