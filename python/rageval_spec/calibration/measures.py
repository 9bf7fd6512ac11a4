"""One number of a calibration with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.data.interval import Interval
from rageval_spec.statistics.association import Association
from rageval_spec.statistics.discrimination import Decision, Discrimination
from rageval_spec.statistics.reliability import Loss
from rageval_spec.statistics.resampling import RESAMPLES, find_interval

if TYPE_CHECKING:
    from rageval_spec.statistics.resampling import Statistic

Name = Association | Discrimination | Decision | Loss
BETWEEN = 0.5
"""Labels above it are a yes, labels below it a no."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a calibration. `reason` says why `value` is None, or why only `interval` is."""

    name: Name
    value: float | None
    interval: Interval | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Measuring:
    """How numbers get their intervals.

    Attributes:
        questions: what each row belongs to; whole questions are drawn, because answers to one are not independent.
        resamples: the number of bootstrap resamples.
        seed: equal seeds give equal intervals.
    """

    questions: Sequence[Hashable]
    resamples: int = RESAMPLES
    seed: int = 42

    def measure(self, name: Name, statistic: Statistic) -> Measure:
        """The number that a function of weights gives, with its interval.

        A perfect value has no interval: the resamples all have it, which does not make it certain.
        """
        import numpy as np

        rows = len(self.questions)
        value = float(statistic(np.ones((1, rows)))[0])
        if not np.isfinite(value):
            return Measure(name, None, None, "the values, or the labels, are all the same")
        interval = find_interval(statistic, rows, clusters=self.questions, resamples=self.resamples, seed=self.seed)
        if interval is not None and interval.low == interval.high and name != "bias" and abs(value) in (0.0, 1.0):
            return Measure(name, value, None, "not known: without a mistake, no resample has one")
        return Measure(name, value, interval)
