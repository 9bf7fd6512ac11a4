"""Rank correlations: by hand, against slow references and scipy, and the figures of autojudge-evaluate 1.1.0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rageval_spec.statistics.raters.rank_correlation import (
    COEFFICIENTS,
    RankCorrelation,
    compute_intervals,
    correlate_means,
    draw_true_means,
    list_topic_correlations,
)


def correlate(name: RankCorrelation, truth: Sequence[float], judged: Sequence[float], top: int | None = None) -> float:
    return float(correlate_means(name, np.array([[truth], [judged]], dtype=float), top)[0])


def test_by_hand() -> None:
    truth, judged = [4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]
    # Of six pairs, five are in the same order: (5 - 1) / 6.
    assert correlate("tau", truth, judged) == pytest.approx(4 / 6)
    assert correlate("tau_b", truth, judged) == pytest.approx(4 / 6)
    # One above the second, right; two above the third, both right; three above the fourth, two right.
    assert correlate("tau_ap", truth, judged) == pytest.approx(2 / 3 * (1 + 1 + 2 / 3) - 1)
    # The judge's order is a b d c with the gaps 1; 3 and 2; 2, 1 and (wrong) 1.
    assert correlate("tau_gap", truth, judged) == pytest.approx(2 / 3 * (1 + 1 + 3 / 4) - 1)
    assert correlate("spearman", truth, judged) == pytest.approx(1 - 6 * 2 / (4 * 15))


def test_a_swap_at_the_top_costs_more_than_one_at_the_end() -> None:
    truth, top, end = [4.0, 3.0, 2.0, 1.0], [3.0, 4.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]
    assert correlate("tau", truth, top) == correlate("tau", truth, end)
    for name in ("tau_ap", "tau_gap"):
        assert correlate(name, truth, top) < correlate(name, truth, end)


def test_only_the_best_systems_of_the_truth_count() -> None:
    truth, judged = [0.9, 0.8, 0.7, 0.1, 0.2], [0.9, 0.7, 0.8, 0.2, 0.1]
    assert correlate("tau_b", truth, judged, 3) == pytest.approx(1 / 3)
    assert correlate("tau_b", truth, judged, 5) == correlate("tau_b", truth, judged)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_without_any_order_there_is_no_number(name: RankCorrelation) -> None:
    assert math.isnan(correlate(name, [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]))
    assert math.isnan(correlate(name, [1.0], [2.0]))
    if name != "tau_gap":  # which breaks ties of the judge by place
        assert math.isnan(correlate(name, [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]))


def compute_tau_ap(truth: Sequence[float], judged: Sequence[float]) -> float:
    shares = []
    for one, value in enumerate(judged):
        above = [other for other in range(len(judged)) if judged[other] > value]
        if above:
            shares.append(sum(truth[other] > truth[one] for other in above) / len(above))
    return 2 * sum(shares) / len(shares) - 1 if shares else math.nan


def compute_tau_gap(truth: Sequence[float], judged: Sequence[float]) -> float:
    order = sorted(range(len(truth)), key=lambda place: (-judged[place], place))
    shares = []
    for rank, place in enumerate(order):
        gaps = [truth[other] - truth[place] for other in order[:rank]]
        if any(gaps):
            shares.append(sum(gap for gap in gaps if gap > 0) / sum(map(abs, gaps)))
    return 2 * sum(shares) / len(shares) - 1 if shares else math.nan


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12))
def test_slow_references_and_scipy_agree(pairs: list[tuple[int, int]]) -> None:
    truth, judged = ([pair[side] / 8 for pair in pairs] for side in (0, 1))
    with np.errstate(all="ignore"):
        expected = {
            "tau_b": stats.kendalltau(truth, judged).statistic,
            "spearman": stats.spearmanr(truth, judged).statistic
            if min(map(len, ({*truth}, {*judged}))) > 1
            else np.nan,
            "tau_ap": (compute_tau_ap(truth, judged) + compute_tau_ap(judged, truth)) / 2,
            "tau_gap": compute_tau_gap(truth, judged),
        }
    for name, value in expected.items():
        assert correlate(name, truth, judged) == pytest.approx(value, abs=1e-12, nan_ok=True), name  # type: ignore[arg-type]


GOLDEN = (
    ([0.25, 0.125, 0.5, 0.125, 0.875, 0.875], [0.375, 0.625, 0.375, 0.125, 0.0, 0.375],
     {"tau_b": -0.32025630761017426, "spearman": -0.3751832396884334, "pearson": -0.4049988356300213,
      "tau_ap": -0.6625, "tau_gap": -0.6}),
    ([0.0, 0.125, 0.125, 0.625, 0.25, 0.5, 0.5, 0.375, 0.0, 0.25],
     [0.375, 0.625, 0.375, 0.625, 0.5, 0.25, 0.5, 0.375, 0.5, 0.25],
     {"tau_b": 0.025674808298154838, "spearman": 0.041146658254029, "pearson": 0.05874228140418676,
      "tau_ap": 0.08379629629629615, "tau_gap": 0.012874779541446113}),
    ([0.375, 1.0, 0.25, 0.625, 0.875, 0.125, 0.0, 0.875, 0.5, 1.0, 0.375, 0.375, 0.875, 1.0, 1.0],
     [0.375, 0.375, 0.625, 0.125, 0.125, 0.625, 0.125, 0.5, 0.375, 0.625, 0.0, 0.625, 0.0, 0.125, 0.5],
     {"tau_b": -0.06632365324280728, "spearman": -0.08643361575462653, "pearson": -0.09667254626922159,
      "tau_ap": -0.20342157842157838, "tau_gap": -0.18248264076269205}),
)  # fmt: skip
"""What autojudge-evaluate 1.1.0 gives: its methods kendall, spearman, pearson, tauap_b and tau_gap."""


@pytest.mark.parametrize(("truth", "judged", "expected"), GOLDEN)
def test_the_figures_of_autojudge_evaluate(
    truth: list[float], judged: list[float], expected: dict[RankCorrelation, float]
) -> None:
    assert {name: correlate(name, truth, judged) for name in expected} == pytest.approx(expected, abs=1e-14)


def test_rows_are_computed_apart() -> None:
    random = np.random.default_rng(3)
    means = random.random((2, 7, 9)).round(1)
    for name in COEFFICIENTS:
        alone = [correlate(name, truth, judged, 5) for truth, judged in zip(*means, strict=True)]
        assert correlate_means(name, means, 5) == pytest.approx(alone)


def test_an_interval_holds_the_order_of_endless_topics() -> None:
    """Few noisy topics swap systems that are close: the coefficient is too low, and its interval knows that."""
    held, below = 0, 0.0
    true = np.linspace(0.2, 0.6, 12)
    for seed in range(40):
        random = np.random.default_rng(seed)
        judged = true + random.normal(size=12) * 0.06
        values = np.stack([mean + random.normal(size=(25, 12)) * 0.25 for mean in (true, judged)])
        interval = compute_intervals(values, 300)("tau_b", None)
        assert interval is not None
        expected = correlate("tau_b", true.tolist(), judged.tolist())
        held += interval.low <= expected <= interval.high
        below += (expected - correlate("tau_b", *values.mean(axis=1).tolist())) / 40
    assert below > 0.05
    assert held >= 34  # of 95%, fewer than 34 come up by chance in one of 100 such tests; a bootstrap alone holds 26


def test_draws_of_the_true_means_are_where_the_data_are() -> None:
    random = np.random.default_rng(5)
    true = np.linspace(0.2, 0.8, 8)
    values = np.stack([true + random.normal(size=(400, 8)) * 0.05 for _ in range(2)])
    drawn = draw_true_means(values)
    assert drawn.shape == (2, 600, 8)
    centred = values.mean(axis=1) - values.mean(axis=(1, 2))[:, None]
    assert np.allclose(drawn.mean(axis=1), centred, atol=0.005)
    # No more than the noise of a mean, and less: the two leaderboards agree, so that each tells of the other.
    assert (drawn.std(axis=1) < 0.05 / 20 * 1.1).all() and (drawn.std(axis=1) > 0.05 / 20 / 2).all()


def test_intervals_need_two_topics_and_an_order() -> None:
    assert compute_intervals(np.ones((2, 1, 4)))("tau", None) is None
    assert compute_intervals(np.ones((2, 5, 4)))("tau", None) is None


def test_equal_systems_stay_tied_however_topics_are_added() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.7])
    one, other = values, values[[3, 1, 0, 2]]  # the same numbers for other topics: equal means
    truth = np.stack([one, other, other + 0.2], axis=1)
    interval = compute_intervals(np.stack([truth, truth]), 50)("tau_b", None)
    assert interval is not None and interval.high == 1


def test_within_topics() -> None:
    truth = np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0], [3.0, 2.0, 1.0]])
    judged = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    assert list_topic_correlations(np.stack([truth, judged])) == pytest.approx([1.0, math.nan, -1.0], nan_ok=True)
