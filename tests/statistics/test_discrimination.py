"""Telling yes from no: by hand, against scikit-learn, in resamples, and where to draw the line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics

from rageval_spec.statistics.discrimination import (
    DECISIONS,
    choose_for_precision,
    choose_threshold,
    decide,
    discriminate,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def find(values: Floats, labels: Bools, weights: Floats | None = None, threshold: float = 0.5) -> dict[str, float]:
    counts = np.ones((1, len(values))) if weights is None else weights
    statistics: list[tuple[str, Any]] = [
        *discriminate(values, labels).items(),
        *decide(values, labels, threshold).items(),
    ]
    return {name: float(statistic(counts)[0]) for name, statistic in statistics}


def test_five_rows_by_hand() -> None:
    # Yes at 0.9, 0.6 and 0.4, no at 0.6 and 0.1. Of six pairs, four are right, one is tied, one is wrong: 4.5 / 6.
    # From the best value on: precision 1 at 0.9, 2/3 at 0.6 (with the tie), 3/4 at 0.4: their mean over the yes.
    values, labels = np.array([0.9, 0.6, 0.4, 0.6, 0.1]), np.array([True, True, True, False, False])
    found = find(values, labels)
    assert found["auroc"] == pytest.approx(4.5 / 6)
    assert found["average_precision"] == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert (found["precision"], found["recall"], found["specificity"]) == pytest.approx((2 / 3, 2 / 3, 1 / 2))
    assert found["balanced_accuracy"] == pytest.approx(7 / 12)
    assert found["youden"] == pytest.approx(1 / 6)


rows = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=15)


@given(rows)
def test_auroc_counts_all_pairs(pairs: list[tuple[int, bool]]) -> None:
    yes = [value for value, label in pairs if label]
    no = [value for value, label in pairs if not label]
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in yes for b in no]
    values, labels = np.array([float(value) for value, _ in pairs]), np.array([label for _, label in pairs])
    expected = float(np.mean(wins)) if wins else np.nan
    assert find(values, labels)["auroc"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(rows)
def test_the_chosen_threshold_is_the_best_of_all(pairs: list[tuple[int, bool]]) -> None:
    values, labels = np.array([float(value) for value, _ in pairs]), np.array([label for _, label in pairs])
    choice = choose_threshold(values, labels, "youden")
    if labels.all() or not labels.any():
        assert choice is None
        return
    assert choice is not None
    best = max(find(values, labels, threshold=one)["youden"] for one in np.arange(-0.5, 6.0, 0.5))
    assert choice.value == pytest.approx(best)
    assert find(values, labels, threshold=choice.threshold)["youden"] == pytest.approx(best)


@pytest.mark.parametrize("seed", range(10))
def test_numbers_are_scikit_learns_for_the_rows_and_for_a_resample(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.round(random.normal(size=50), 1)
    labels = values + random.normal(size=50) > 0
    drawn = random.integers(0, 50, 50)
    weights = np.bincount(drawn, minlength=50)[None].astype(float)
    for counts, some, truth in ((None, values, labels), (weights, values[drawn], labels[drawn])):
        found, taken = find(values, labels, counts, 0.2), some >= 0.2
        assert found["auroc"] == pytest.approx(metrics.roc_auc_score(truth, some), abs=1e-12)
        assert found["average_precision"] == pytest.approx(metrics.average_precision_score(truth, some), abs=1e-12)
        assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(truth, taken), abs=1e-12)
        assert found["f1"] == pytest.approx(metrics.f1_score(truth, taken), abs=1e-12)
        assert found["precision"] == pytest.approx(metrics.precision_score(truth, taken), abs=1e-12)
        assert found["recall"] == pytest.approx(metrics.recall_score(truth, taken), abs=1e-12)
        assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(truth, taken), abs=1e-12)


def test_the_lowest_threshold_with_the_wanted_precision_is_chosen() -> None:
    values, labels = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, False])
    best = choose_for_precision(values, labels, 0.6)
    assert best is not None and (best.threshold, best.value) == pytest.approx((0.65, 2 / 3))
    sure = choose_for_precision(values, labels, 0.9)
    assert sure is not None and (sure.threshold, sure.value) == pytest.approx((0.85, 1.0))
    everything = choose_for_precision(values, labels, 0.5)
    assert everything is not None and everything.threshold == 0.6
    assert choose_for_precision(values[1:2], labels[1:2], 0.5) is None
    assert choose_for_precision(np.array([0.9, 0.1]), np.array([False, True]), 0.9) is None


def test_one_class_alone_tells_nothing() -> None:
    found = find(np.array([0.2, 0.7]), np.array([True, True]))
    assert np.isnan(found["auroc"]) and np.isnan(found["specificity"])
    assert found["recall"] == 0.5
    assert set(DECISIONS) < found.keys()
