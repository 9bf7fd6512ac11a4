"""Whether values mean what they say."""

from __future__ import annotations

import numpy as np
import pytest

from rageval_spec.calibration.measures import Measuring
from rageval_spec.calibration.reliability import Reliability, rate_reliability


def simulate(off: float) -> Reliability | None:
    random = np.random.default_rng(2)
    shares = random.uniform(0, 1 - off, 300)
    return rate_reliability(
        shares + off, (random.random(300) < shares).astype(np.float64), Measuring(range(300), resamples=200)
    )


def test_a_generous_judge_is_off() -> None:
    found = simulate(0.2)
    assert found is not None and found.is_off
    assert found.error.value == pytest.approx(0.2, abs=0.06)
    assert found.error_by_mass.value == pytest.approx(found.error.value, abs=0.05)
    assert sum(one.count for one in found.bins) == 300
    brier = next(one for one in found.losses if one.name == "brier")
    parts = found.brier_parts
    assert brier.value == pytest.approx(parts.miscalibration - parts.discrimination + parts.uncertainty)
    assert brier.value is not None and brier.interval is not None
    assert brier.interval.low < brier.value < brier.interval.high


def test_a_judge_that_means_what_it_says_is_not_off() -> None:
    found = simulate(0.0)
    assert found is not None and not found.is_off


@pytest.mark.parametrize("value", [-0.1, 1.01])
def test_values_outside_0_and_1_are_no_probabilities(value: float) -> None:
    assert rate_reliability(np.array([0.5, value]), np.array([0.0, 1.0]), Measuring("ab")) is None


def test_one_answer_shows_nothing() -> None:
    found = rate_reliability(np.array([0.5]), np.array([1.0]), Measuring("a"))
    assert found is not None and not found.is_off
