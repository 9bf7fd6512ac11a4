"""The effect of the order: flips and differences, with tests that do not find what is not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from rageval_spec.commands.drift.frozen_answers import OrderEffect, adjust
from rageval_spec.commands.drift.frozen_answers import measure_order as measure_anchors
from rageval_spec.data.labels import Anchor


def measure_order(
    part: str,
    usual: Sequence[float | None],
    reverse: Sequence[float | None],
    questions: Iterable[object],
    labels: Sequence[float] | None = None,
    threshold: float = 0.5,
) -> OrderEffect:
    anchors = [
        Anchor("d", "s", str(question), "?", "!", label, 0.0)
        for question, label in zip(questions, labels or [0.0] * len(usual), strict=True)
    ]
    return measure_anchors(part, usual, reverse, anchors, threshold)


def test_flips_and_differences_are_counted() -> None:
    found = measure_order(
        "contexts", [1.0, 1.0, 0.0, 0.6, None, 1.0], [0.0, 1.0, 1.0, 0.4, 1.0, None], "abcdef", [1, 1, 0, 1, 1, 1]
    )
    assert (found.answers, found.failed, found.changed, found.to_yes, found.to_no) == (4, 2, 3, 1, 2)
    assert found.difference == pytest.approx(-0.05)
    assert found.errors == pytest.approx((0.1, 0.65))
    assert found.flips is not None
    assert found.flips.low < 0.75 < found.flips.high


def test_decisions_are_those_of_the_threshold() -> None:
    found = measure_order("contexts", [0.6, 0.9], [0.55, 0.6], "ab", threshold=0.8)
    assert (found.to_yes, found.to_no) == (0, 1)


@pytest.mark.parametrize("seed", range(4))
def test_tests_are_mcnemars_and_students(seed: int) -> None:
    random = np.random.default_rng(seed)
    one, two = random.random(60), random.random(60)
    found = measure_order("contexts", one.tolist(), two.tolist(), range(60))
    table = [[0, found.to_no], [found.to_yes, 0]]
    assert found.p_flips == pytest.approx(mcnemar(table, exact=True).pvalue)
    expected = stats.ttest_rel(two, one)
    assert found.p_difference == pytest.approx(expected.pvalue, rel=1e-3)
    assert found.interval is not None
    weights = random.dirichlet(np.ones(61), 40_000)
    low, high = (np.quantile(weights @ [*(two - one), end], at) for end, at in ((-1.0, 0.025), (1.0, 0.975)))
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=3e-3)


def test_answers_to_one_question_are_not_independent() -> None:
    alone = measure_order("contexts", [0.5] * 40, [0.6, 0.4] * 20, range(40))
    together = measure_order("contexts", [0.5] * 40, [0.6] * 20 + [0.4] * 20, [*range(8)] * 5)
    doubled = measure_order("contexts", [0.5] * 40, [0.6] * 20 + [0.4] * 20, [row // 5 for row in range(40)])
    assert alone.interval is not None
    assert together.interval is not None
    assert doubled.interval is not None
    assert doubled.interval.high > 2 * alone.interval.high


def test_nothing_can_be_compared() -> None:
    for values in ([], [None], [0.5]):
        found = measure_order("contexts", values, values, range(len(values)))
        assert found.interval is None
        assert found.p_difference == found.p_flips == 1.0


def test_equal_values_show_no_effect_and_equal_changes_show_one() -> None:
    same = measure_order("contexts", [0.5] * 9, [0.5] * 9, range(9))
    assert same.p_value == 1
    shifted = measure_order("contexts", [0.5] * 9, [0.6] * 9, range(9))
    assert shifted.p_value < 0.05


def test_p_values_are_adjusted_for_all_parts() -> None:
    random = np.random.default_rng(3)
    raw = [
        measure_order(part, random.random(30).tolist(), random.random(30).tolist(), range(30))
        for part in ("contexts", "choices")
    ]
    for one, other in zip(raw, adjust(raw), strict=True):
        assert other.p_flips >= one.p_flips
        assert other.p_difference >= one.p_difference
    assert adjust([]) == ()


def test_an_absent_direction_is_found_in_at_most_1_of_20_judges() -> None:
    random, hits = np.random.default_rng(6), 0
    for _ in range(300):
        # The judge is noisy: it says something else each time, but not in one direction.
        quality = random.random(50)
        one, two = ((quality + random.normal(0, 0.2, 50) > 0.5).astype(float).tolist() for _ in range(2))
        hits += adjust([measure_order("contexts", one, two, range(50))])[0].p_value < 0.05
    assert hits / 300 <= 0.065
