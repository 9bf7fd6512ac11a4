"""Summaries of windows: means, errors, and percentiles within 1 %."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rageval_spec.statistics.window_summaries import WindowSummary, summarize_values


def test_three_values_worked_by_hand() -> None:
    found = summarize_values([1.0, 2.0, 4.0], [1.0, 1.0, 2.0])
    assert found.mean == 11 / 4
    assert found.effective == pytest.approx(16 / 6)
    # The squared weighted distances are 1.75², 0.75² and (2 * 1.25)².
    assert found.error == pytest.approx(math.sqrt((1.75**2 + 0.75**2 + 2.5**2) * 1.5) / 4)
    assert found.find_percentile(50) == pytest.approx(2, rel=0.01)
    assert found.find_percentile(51) == pytest.approx(4, rel=0.01)


def test_percentiles_are_within_one_percent() -> None:
    random = np.random.default_rng(1)
    values = np.concatenate([random.lognormal(3, 2, 5000), -random.lognormal(0, 1, 500), np.zeros(100)])
    found = summarize_values(values)
    for percent in (0.5, 5, 9, 50, 95, 99, 100):
        expected = float(np.percentile(values, percent, method="inverted_cdf"))
        assert found.find_percentile(percent) == pytest.approx(expected, rel=0.0101, abs=1e-12)


def test_moments_are_scipys() -> None:
    values = np.random.default_rng(2).normal(100, 1e-3, 1000)
    found = summarize_values(values)
    assert found.mean == pytest.approx(values.mean(), rel=1e-15)
    assert found.error == pytest.approx(stats.sem(values), rel=1e-6)
    assert found.deviation == pytest.approx(values.std(ddof=1), rel=1e-6)


def test_no_data_is_a_state_of_its_own() -> None:
    empty = WindowSummary()
    assert (empty.mean, empty.error, empty.deviation, empty.find_percentile(50)) == (None, None, None, None)
    assert summarize_values([]) == empty
    assert summarize_values([0.1] * 7).error == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="finite"):
        summarize_values([math.nan])
