"""One number with its interval, or why there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rageval_spec.calibration.measures import Measuring

Floats = NDArray[np.float64]


def test_questions_are_drawn_as_wholes() -> None:
    numbers = np.repeat([0.0, 1.0] * 20, 10)

    def mean(weights: Floats) -> Floats:
        found: Floats = weights @ numbers / weights.sum(axis=1)
        return found

    together = Measuring([row // 10 for row in range(400)]).measure("mae", mean)
    apart = Measuring(range(400)).measure("mae", mean)
    assert together.value == apart.value == 0.5
    assert together.interval is not None and apart.interval is not None
    assert together.interval.high - together.interval.low > 2.5 * (apart.interval.high - apart.interval.low)


def test_a_number_that_is_not_defined_says_why() -> None:
    found = Measuring("ab").measure("pearson", lambda weights: np.full(len(weights), np.nan))
    assert (found.value, found.interval, found.reason) == (None, None, "the values, or the labels, are all the same")
