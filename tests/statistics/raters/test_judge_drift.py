"""Changes of a judge, on values that can be counted by hand."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from rageval_spec.statistics.intervals import compute_p_of_signs
from rageval_spec.statistics.raters.judge_drift import compare_agreement, count_flips

BEFORE = np.array([0.1, 0.2, 0.6, 0.9])


def test_changed_decisions_are_counted_by_direction() -> None:
    found = count_flips(BEFORE, np.array([0.1, 0.5, 0.4, 0.8]), None, 0.5)
    assert (found.rows, found.up, found.down, found.moved, found.share) == (4, 1, 1, 3, 0.5)
    assert (found.p_value, found.p_moved) == (None, None)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.0676, abs=1e-4)  # of 2 of 4, Clopper and Pearson


def test_changes_are_compared_with_the_noise_of_the_judge() -> None:
    before = np.array([0.0] * 50 + [1.0] * 50)
    now, again = before.copy(), before.copy()
    now[:8] = again[:8] = 1.0
    # 8 of 100 changed, and 0 of 100 between two answers now: C(100, 8) / C(200, 8) of all ways to place 8 of 200.
    found = count_flips(before, now, again, 0.5)
    assert found.p_value == pytest.approx(comb(100, 8) / comb(200, 8))
    again[:8] = before[:8]
    noisy = count_flips(before, now, again, 0.5)
    assert noisy.p_value is not None
    assert noisy.p_value > 0.5


def test_values_that_move_below_the_threshold_are_seen() -> None:
    before = np.linspace(0, 0.4, 60)
    found = count_flips(before, before + 0.05, before + 0.05, 0.5)
    assert (found.up, found.down, found.moved) == (0, 0, 60)
    assert found.p_value == 1.0
    assert found.p_moved is not None
    assert found.p_moved < 1e-6


def test_agreement_with_people_is_compared_row_by_row() -> None:
    labels = np.array([1.0, 0.0, 1.0, 0.0])
    found = compare_agreement(BEFORE, np.array([0.9, 0.2, 0.2, 0.1]), labels, 0.5, range(4))
    # Before: wrong, right, right, wrong. Now: right, right, wrong, right.
    assert (found.before, found.now, found.gained, found.lost) == (0.5, 0.75, 2, 1)
    assert found.p_value == 1.0
    assert found.difference == pytest.approx(-0.1)
    assert found.interval is not None
    assert found.interval.low < -0.1 < found.interval.high


@pytest.mark.parametrize(
    ("gained", "lost", "p_value"),
    [(0, 0, 1.0), (3, 3, 1.0), (1, 9, 22 / 1024), (0, 6, 2 / 64), (6, 0, 2 / 64), (0, 1, 1.0)],
)
def test_mcnemars_exact_test(gained: int, lost: int, p_value: float) -> None:
    assert compute_p_of_signs(gained, gained + lost) == pytest.approx(p_value)
