"""Coefficients of association: by hand, against scipy, and in resamples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rageval_spec.statistics.association import MOST_PAIRED, associate, rank, sum_groups

Floats = NDArray[np.float64]


def find(
    judged: Floats | list[float], labelled: Floats | list[float], weights: Floats | None = None
) -> dict[str, float]:
    first, second = np.array(judged, dtype=float), np.array(labelled, dtype=float)
    counts = np.ones((1, len(first))) if weights is None else weights
    return {name: float(statistic(counts)[0]) for name, statistic in associate(first, second).items()}


def test_four_rows_by_hand() -> None:
    # Means 0.5 and 0.625. Of the six pairs, four are in the same order, one in the opposite one, and one is tied in
    # the labels: tau-b = (4 - 1) / sqrt(6 * 5).
    found = find([0.2, 0.4, 0.6, 0.8], [0.0, 1.0, 0.5, 1.0])
    assert found["kendall"] == pytest.approx(3 / 30**0.5)
    assert found["mae"] == pytest.approx((0.2 + 0.6 + 0.1 + 0.2) / 4)
    assert found["bias"] == pytest.approx((2.0 - 2.5) / 4)
    assert found["pearson"] == pytest.approx(0.25 / (0.2 * 0.6875) ** 0.5)


numbers = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=12)


@given(numbers)
def test_tau_is_that_of_all_pairs(rows: list[tuple[int, int]]) -> None:
    pairs = [(np.sign(a[0] - b[0]), np.sign(a[1] - b[1])) for a, b in itertools.combinations(rows, 2)]
    same = sum(int(x * y) for x, y in pairs)
    spread = sum(int(x != 0) for x, _ in pairs) * sum(int(y != 0) for _, y in pairs)
    judged, labelled = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    expected = same / spread**0.5 if spread else np.nan
    assert find(judged, labelled)["kendall"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(10))
def test_coefficients_are_scipys_for_the_rows_and_for_a_resample(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(6, 80))
    judged = np.round(random.normal(size=size), 1)
    labelled = np.round(judged + random.normal(size=size), 1)
    drawn = random.integers(0, size, size)
    weights = np.bincount(drawn, minlength=size)[None].astype(float)
    for counts, first, second in ((None, judged, labelled), (weights, judged[drawn], labelled[drawn])):
        found = find(judged, labelled, counts)
        assert found["pearson"] == pytest.approx(stats.pearsonr(first, second)[0], abs=1e-12)
        assert found["spearman"] == pytest.approx(stats.spearmanr(first, second)[0], abs=1e-12)
        assert found["kendall"] == pytest.approx(stats.kendalltau(first, second)[0], abs=1e-12)


def test_a_series_that_does_not_vary_has_no_correlation() -> None:
    found = find([0.5, 0.5, 0.5], [0.0, 1.0, 1.0])
    assert all(np.isnan(found[name]) for name in ("pearson", "spearman", "kendall"))
    assert found["bias"] == pytest.approx(-1 / 6)


def test_copies_and_ties_share_their_mean_rank() -> None:
    ranks = rank(np.array([0.3, 0.1, 0.3]), np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]]))
    assert ranks.tolist() == [[2.5, 1.0, 2.5], [2.5, 1.0, 2.5]]


def test_weights_of_groups_are_summed() -> None:
    assert sum_groups(np.array([[1.0, 2.0, 3.0]]), np.array([1, 0, 1])).tolist() == [[2.0, 4.0]]


def test_too_many_rows_have_no_tau() -> None:
    many = np.arange(MOST_PAIRED + 1.0)
    found = find(many, many)
    assert np.isnan(found["kendall"])
    assert found["spearman"] == pytest.approx(1.0)


@pytest.mark.parametrize("levels", [2, 5, 40, 400])
@pytest.mark.parametrize("turned", [False, True])
def test_tau_of_labels_with_few_levels_is_scipys(levels: int, turned: bool) -> None:
    random = np.random.default_rng(levels)
    labels = random.integers(0, levels, 400).astype(float)
    values = (labels / levels + random.normal(0, 0.5, 400)).round(2)
    first, second = (labels, values) if turned else (values, labels)
    drawn = random.integers(0, 400, 400)
    weights = np.stack([np.ones(400), np.bincount(drawn, minlength=400)]).astype(float)
    found = associate(first, second)["kendall"](weights)
    expected = [stats.kendalltau(first, second).statistic, stats.kendalltau(first[drawn], second[drawn]).statistic]
    assert found == pytest.approx(expected, abs=1e-12)
