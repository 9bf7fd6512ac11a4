"""Rules of several thresholds, their paths, and the risk that they keep.

Guarantees: by hand, exact tails, a slow reference, and how often the promise is broken.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.intervals import compute_tail, compute_upper
from rageval_spec.statistics.raters.risk_control import (
    NOWHERE,
    STARTS,
    count_needed,
    find_best_limit,
    find_controlled,
    find_guarantee,
    learn_path,
    level_path,
    send_through_stages,
    send_through_steps,
    trace_risk,
)

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


Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def test_right_answers_alone_need_as_many_as_rule_the_limit_out() -> None:
    # 0.95^58 = 0.051 and 0.95^59 = 0.0485: 58 right answers do not show "at most 5% wrong" with 95%, and 59 do.
    assert count_needed(0.05, 0.05) == 59
    values = np.full(59, 0.9)
    found = find_guarantee(values, np.zeros(59, dtype=bool), 0.05, 0.95)
    assert found is not None
    assert (found.sent, found.wrong, found.labels, found.coverage) == (59, 0, 59, 1.0)
    assert found.threshold == 0.0
    assert find_guarantee(values[:58], np.zeros(58, dtype=bool), 0.05, 0.95) is None


def test_the_threshold_lies_above_the_wrong_answers() -> None:
    values = np.concatenate([np.full(100, 0.9), np.full(100, 0.3)])
    is_wrong = values < 0.5
    found = find_guarantee(values, is_wrong, 0.05, 0.95)
    assert found is not None
    assert 0.3 < found.threshold <= 0.9
    assert (found.sent, found.wrong, found.coverage) == (100, 0, 0.5)


@pytest.mark.parametrize(("wrong", "sent", "limit"), [(0, 10, 0.1), (3, 100, 0.05), (40, 1000, 0.05), (9, 10, 0.5)])
def test_tails_are_scipys(wrong: int, sent: int, limit: float) -> None:
    assert compute_tail(wrong, sent, limit) == pytest.approx(stats.binom.cdf(wrong, sent, limit), abs=1e-12)
    assert compute_upper(wrong, sent, 0.9) == pytest.approx(stats.beta.ppf(0.9, wrong + 1, sent - wrong), abs=1e-9)


def test_nothing_sent_and_everything_wrong_rule_nothing_out() -> None:
    assert compute_tail(0, 0, 0.1) == 1.0
    assert compute_tail(5, 5, 0.1) == 1.0
    assert compute_upper(5, 5, 0.95) == 1.0


@cache
def sum_binomial(wrong: int, sent: int, limit: float) -> float:
    """scipy's; most thresholds send the same answers as the one before."""
    return float(stats.binom.cdf(wrong, sent, limit))


def find_slowly(values: Floats, is_wrong: Bools, limit: float, confidence: float) -> tuple[int, int] | None:
    """Answers sent and wrong ones of the last threshold that some sequence accepts, one threshold after the other."""
    count = len(STARTS)
    while (
        count and len(values) < math.ceil(math.log((1 - confidence) / count) / math.log(1 - limit)) * STARTS[count - 1]
    ):
        count -= 1
    best = None
    for start in STARTS[:count]:
        error = (1 - confidence) / count
        fewest = math.ceil(math.log(error) / math.log(1 - limit)) * start
        for step in range(200, -1, -1):
            sent = [wrong for value, wrong in zip(values, is_wrong, strict=True) if value >= step / 200]
            if len(sent) < fewest:
                continue
            if sum_binomial(sum(sent), len(sent), limit) > error:
                break
            best = max(best or (0, 0), (len(sent), sum(sent)))
    return best


@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.1, 0.3]), st.sampled_from([0.8, 0.95]))
def test_the_threshold_is_that_of_the_slow_search(seed: int, limit: float, confidence: float) -> None:
    random = np.random.default_rng(seed)
    values = np.round(random.random(int(random.integers(1, 150))), 2)
    is_wrong = random.random(len(values)) < 0.4 * (1 - values) ** 2
    found = find_guarantee(values, is_wrong, limit, confidence)
    expected = find_slowly(values, is_wrong, limit, confidence)
    assert (None if found is None else (found.sent, found.wrong)) == expected


@pytest.mark.parametrize("kind", ["steep", "at the limit", "slow"])
def test_the_promise_is_broken_in_at_most_a_twentieth(kind: str) -> None:
    def draw(count: int) -> tuple[Floats, Bools]:
        values = random.beta(3, 1.5, count)
        risks: dict[str, Floats] = {
            "steep": 1 / (1 + np.exp(18 * (values - 0.45))),
            "at the limit": np.full(count, 0.0505),
            "slow": 0.3 * (1 - values),
        }
        risk: Floats = risks[kind]
        return values, np.less(random.random(count), risk)

    random = np.random.default_rng(8)
    everything, wrong = draw(200_000)
    broken = 0
    for _ in range(300):
        found = find_guarantee(*draw(300), 0.05, 0.95)
        broken += found is not None and bool(wrong[everything >= found.threshold].mean() > 0.05)
    assert broken / 300 <= 0.05


def test_the_best_promise_is_the_smallest_limit_that_can_be_shown() -> None:
    values, is_wrong = np.full(100, 0.9), np.zeros(100, dtype=bool)
    best = find_best_limit(values, is_wrong, 0.95)
    assert best is not None and best.limit == pytest.approx(0.03)  # 0.97^100 = 0.0476, 0.971^100 = 0.0527
    assert find_guarantee(values, is_wrong, 0.029, 0.95) is None
    assert find_best_limit(values[:2], ~is_wrong[:2], 0.95) is None


def test_risk_is_traced_from_the_strictest_threshold_on() -> None:
    values = np.linspace(0.01, 1, 100)
    points = trace_risk(values, values < 0.3, 0.95)
    assert [round(point.coverage, 2) for point in points] == sorted(round(point.coverage, 2) for point in points)
    assert points[-1].coverage == 1.0
    assert points[-1].risk == pytest.approx(0.29)
    assert all(point.risk <= point.upper for point in points)


def test_the_curve_never_sends_what_cannot_be_sent() -> None:
    """Answers without a value at some step have the score -1."""
    values, is_wrong = np.array([0.9, 0.8, 0.7, -1.0, -1.0]), np.array([False, False, True, True, True])
    last = trace_risk(values, is_wrong, 0.95)[-1]
    assert [last.threshold, last.coverage, last.risk] == pytest.approx([0.7, 0.6, 1 / 3])
    assert trace_risk(np.array([-1.0, -1.0]), np.array([True, True]), 0.95) == ()
