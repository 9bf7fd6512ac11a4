"""Rules of several thresholds, their paths, and the risk that they keep."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rageval_spec.statistics.control import (
    NOWHERE,
    find_controlled,
    learn_path,
    level_path,
    send_through_stages,
    send_through_steps,
)
from rageval_spec.statistics.guarantees import find_guarantee

NAN = float("nan")


def test_stages_send_what_reaches_every_bound() -> None:
    values = np.array([[0.9, 0.5], [0.9, 0.4], [0.1, 0.9], [NAN, 0.5], [-1.0, 0.9]])
    assert send_through_stages(values, (0.5, 0.5)).tolist() == [True, False, False, True, False]
    assert send_through_stages(values, (0.0, 0.0)).tolist() == [True, True, True, True, False]


def test_the_first_step_that_is_sure_decides() -> None:
    values = np.array([[0.9, 0.0], [0.5, 0.8], [0.5, 0.2], [0.1, 0.9], [NAN, 0.8], [0.5, NAN]])
    send = send_through_steps([0.2, float("inf")])
    assert send(values, (0.7, 0.6)).tolist() == [True, True, False, False, True, False]
    # A step that decides everything leaves nothing to the next one; one that never says no leaves it all the rest.
    assert send_through_steps([float("inf"), None])(values, (0.7, 0.6)).tolist() == [True, *[False] * 3, True, False]
    assert send_through_steps([None, None])(values, (0.7, 0.6)).tolist() == [True, True, False, True, True, False]


def test_the_level_path_sends_an_answer_from_its_lowest_value_on() -> None:
    path = level_path(2, send_through_stages)
    scores = path.score(np.array([[1.0, 1.0], [0.9, 0.5], [0.0, 0.3], [-1.0, 1.0]]))
    assert scores.tolist() == pytest.approx([1.0, 0.5, 0.0, NOWHERE])
    assert path.find(0.5) == pytest.approx((0.5, 0.5))


def make(count: int, seed: int) -> tuple[Any, Any]:
    """Answers whose second value says whether they are wrong, and whose first is noise."""
    random = np.random.default_rng(seed)
    values = random.random((count, 2))
    return values, random.random(count) < 0.5 * (1 - values[:, 1])


@pytest.mark.parametrize(("rule", "together"), [(send_through_stages, True), (send_through_steps([0.1, None]), False)])
def test_a_learnt_path_is_nested(rule: Any, together: bool) -> None:
    values, is_wrong = make(200, 1)
    path = learn_path(values, is_wrong, rule, together=together)
    sent = [rule(values, bounds) for bounds in path.bounds]
    assert sent[0].sum() < 5
    assert sent[-1].sum() > 150
    assert all((more >= fewer).all() for fewer, more in pairwise(sent))
    scores = path.score(values)
    for place in (10, 50, 200):
        assert ((scores >= path.place(place) - 1e-9) == sent[place]).all()
        assert path.find(path.place(place)) == path.bounds[place]


@pytest.mark.parametrize(("rule", "together"), [(send_through_stages, True), (send_through_steps([None, None]), False)])
def test_a_learnt_path_moves_the_bound_that_tells_wrong_from_right(rule: Any, together: bool) -> None:
    values, is_wrong = make(300, 2)
    path = learn_path(values, is_wrong, rule, together=together)
    fresh, wrong = make(20_000, 3)
    risks = []
    for tried in (path, level_path(2, rule)):
        scores = tried.score(fresh)
        risks.append(wrong[scores >= np.quantile(scores, 0.5)].mean())
    assert risks[0] < risks[1] - 0.02
    assert risks[0] < wrong[fresh[:, 1] >= 0.5].mean() + 0.02


def test_promises_of_two_thresholds_are_kept() -> None:
    everything, truth = make(50_000, 4)
    random = np.random.default_rng(5)
    broken = found = 0
    for _ in range(200):
        drawn = random.integers(0, len(truth), 300)
        values, is_wrong = everything[drawn], truth[drawn]
        path = learn_path(values[:75], is_wrong[:75], send_through_stages, together=True)
        promise = find_guarantee(path.score(values[75:]), is_wrong[75:], 0.15, 0.95)
        if promise is not None:
            found += 1
            broken += truth[send_through_stages(everything, path.find(promise.threshold))].mean() > 0.15
    assert found > 80
    assert broken <= 15  # 10 are expected at most; more than 15 of 200 happen once in 20 such promises


def test_conformal_risk_control_counts_one_more_wrong_answer() -> None:
    scores = np.linspace(1, 0.01, 100)
    is_wrong = np.zeros(100, dtype=bool)
    is_wrong[[20, 50, 80]] = True
    # (1 + 1) / 101 is at most 0.02, (2 + 1) / 101 is not: everything above the second wrong answer can be sent.
    found = find_controlled(scores, is_wrong, 0.02)
    assert found is not None
    assert (found.wrong, found.sent) == (1, 50)
    assert find_controlled(scores, is_wrong, 0.0098) is None
    everything = find_controlled(scores, is_wrong, 0.04)
    assert everything is not None
    assert everything.sent == 100


def test_the_mean_of_controlled_risks_is_at_most_the_limit() -> None:
    everything, truth = make(50_000, 6)
    random = np.random.default_rng(7)
    losses = []
    for _ in range(400):
        drawn = random.integers(0, len(truth), 100)
        found = find_controlled(everything[drawn, 1], truth[drawn], 0.05)
        threshold = 2.0 if found is None else found.threshold
        losses.append((truth & (everything[:, 1] >= threshold)).mean())
    assert np.mean(losses) <= 0.05
    assert np.mean(losses) > 0.035
