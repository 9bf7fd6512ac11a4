"""Promises of judges of several steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rageval_spec.calibration.controlling import promise_steps
from rageval_spec.statistics.control import send_through_stages


def make(count: int) -> tuple[Sequence[Sequence[float | None]], list[float]]:
    """Answers that are wrong where their second value is below 0.4; the first one says nothing."""
    random = np.random.default_rng(1)
    values = random.random((count, 2)).tolist()
    return values, [float(row[1] >= 0.4) for row in values]


def promise(count: int, limit: float, **options: Any) -> Any:
    values, labelled = make(count)
    questions = options.pop("questions", range(count))
    return promise_steps(values, labelled, questions, send_through_stages, limit, 0.95, together=True, **options)


def test_bounds_are_found_and_the_labels_that_were_learnt_from_are_not_tested() -> None:
    found = promise(400, 0.05)
    assert (found.labels, found.learnt, found.wanted.labels) == (400, 100, 300)
    assert found.bounds[1] > 0.35
    assert found.bounds[0] < 0.35
    assert found.wanted.sent > 100
    assert found.best == found.wanted


def test_few_labels_lower_all_bounds_together() -> None:
    found = promise(140, 0.2)
    assert (found.learnt, found.wanted.labels) == (0, 140)
    assert found.bounds[0] == found.bounds[1]


def test_the_best_promise_is_named_if_the_wanted_one_cannot_be_kept() -> None:
    found = promise(100, 0.005)
    assert (found.bounds, found.wanted) == (None, None)
    assert found.best.limit > 0.005
    assert found.best_bounds is not None


def test_one_answer_of_each_question_counts() -> None:
    assert promise(400, 0.05, questions=[place // 2 for place in range(400)]).labels == 200


def test_conformal_risk_control_limits_a_mean() -> None:
    found = promise(400, 0.05, control="crc")
    assert found.control == "crc"
    assert (found.wanted.wrong + 1) / (found.wanted.labels + 1) <= 0.05
    assert found.best is None
    assert promise(10, 0.05, control="crc").bounds is None


def test_the_curve_goes_from_few_answers_to_many() -> None:
    curve = promise(400, 0.05).curve
    assert [one.coverage for one in curve] == sorted(one.coverage for one in curve)
    assert all(one.risk <= one.upper for one in curve)
