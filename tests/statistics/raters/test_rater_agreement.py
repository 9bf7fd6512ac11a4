"""Coefficients of agreement: worked examples, a slow reference, and the numbers of other libraries.

The logistic regression of choices: against statsmodels, and where it has no answer.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from rageval_spec.statistics.intervals import compute_exact_interval, compute_p_of_signs
from rageval_spec.statistics.raters.rater_agreement import (
    COEFFICIENTS,
    MISSING,
    Coefficient,
    Ratings,
    count_confusion,
    measure_agreement,
    measure_rater,
)

Codes = NDArray[np.int64]


def rate(rows: Sequence[Sequence[int]] | Codes, categories: int) -> Ratings:
    return Ratings(np.array(rows, dtype=np.int64), tuple(float(one) for one in range(categories)))


def find_value(ratings: Ratings, coefficient: Coefficient) -> float | None:
    return measure_agreement(ratings, coefficient, resamples=0).value


def make_codes(seed: int, *, missing: float = 0.0) -> tuple[Codes, int]:
    """Ratings that agree more than by chance."""
    random = np.random.default_rng(seed)
    items, raters, size = random.integers(8, 60), random.integers(2, 6), random.integers(2, 6)
    truth = random.integers(0, size, items)
    codes = np.where(random.random((items, raters)) < 0.6, truth[:, None], random.integers(0, size, (items, raters)))
    return np.where(random.random(codes.shape) < missing, MISSING, codes), int(size)


# Worked by hand


def test_cohens_kappa_of_a_table_of_four() -> None:
    # 20 twice yes, 15 twice no, 5 and 10 apart: observed 0.7; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5; (0.7 - 0.5) / 0.5
    ratings = rate([[1, 1]] * 20 + [[1, 0]] * 5 + [[0, 1]] * 10 + [[0, 0]] * 15, 2)
    assert find_value(ratings, "percent") == pytest.approx(0.7, abs=1e-15)
    assert find_value(ratings, "kappa") == pytest.approx(0.4, abs=1e-15)
    assert count_confusion(ratings).tolist() == [[15, 10], [5, 20]]


def test_ac1_stays_high_where_one_category_dominates_and_kappa_collapses() -> None:
    # 118 of 125 twice yes, 5 and 2 apart, none twice no (Gwet, 2008, table 3, rounded: kappa -0.023, AC1 0.94)
    ratings = rate([[1, 1]] * 118 + [[1, 0]] * 5 + [[0, 1]] * 2, 2)
    yes = ((118 + 5) / 125 + (118 + 2) / 125) / 2
    chance = 2 * yes * (1 - yes)
    assert find_value(ratings, "ac1") == pytest.approx((118 / 125 - chance) / (1 - chance), abs=1e-14)
    assert round(find_value(ratings, "ac1") or 0, 2) == 0.94
    assert round(find_value(ratings, "kappa") or 0, 3) == -0.023


def test_alpha_of_four_items_with_a_missing_rating() -> None:
    # Pairs of the first two items agree, the third disagrees, the fourth has one rating: coincidences (0,0) 2, (1,1) 2,
    # (0,1) 1 each way; 3 of each category. Observed 2/6; by chance 2 * 3 * 3 / (6 * 5) = 0.6; 1 - (1/3) / 0.6 = 4/9.
    ratings = rate([[0, 0], [1, 1], [0, 1], [1, MISSING]], 2)
    found = measure_agreement(ratings, "alpha-nominal", resamples=0)
    assert found.value == pytest.approx(4 / 9, abs=1e-15)
    assert found.items == 3


# A slow reference


def alpha_slowly(codes: Codes, distance: Any) -> float | None:
    """Krippendorff's alpha by its definition, one pair of ratings after the other."""
    units = [[int(one) for one in row if one != MISSING] for row in codes]
    units = [unit for unit in units if len(unit) >= 2]
    everything = [one for unit in units for one in unit]
    used = Counter(everything)
    observed = sum(
        distance(a, b, used) / (len(unit) - 1) for unit in units for a, b in itertools.permutations(unit, 2)
    ) / len(everything)
    count = len(everything)
    expected = sum(distance(a, b, used) for a, b in itertools.permutations(everything, 2)) / (count * (count - 1))
    return None if expected == 0 else 1 - observed / expected


def ordinal(a: int, b: int, used: Counter[int]) -> float:
    low, high = min(a, b), max(a, b)
    return (sum(used[one] for one in range(low, high + 1)) - (used[low] + used[high]) / 2) ** 2


DISTANCES = {
    "alpha-nominal": lambda a, b, _: float(a != b),
    "alpha-interval": lambda a, b, _: float((a - b) ** 2),
    "alpha-ordinal": ordinal,
}

rows = st.lists(st.lists(st.integers(MISSING, 3), min_size=3, max_size=3), min_size=1, max_size=8)


@given(rows, st.sampled_from(sorted(DISTANCES)))
def test_alpha_is_that_of_its_definition(rows: list[list[int]], coefficient: Coefficient) -> None:
    ratings = rate(rows, 4)
    if not ((ratings.codes != MISSING).sum(axis=1) >= 2).any():
        assert measure_agreement(ratings, coefficient).reason == "no item has two ratings"
        return
    expected = alpha_slowly(ratings.codes, DISTANCES[coefficient])
    assert find_value(ratings, coefficient) == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(rows)
def test_percent_is_the_mean_share_of_equal_pairs(rows: list[list[int]]) -> None:
    given_twice = [[one for one in row if one != MISSING] for row in rows]
    shares = [
        float(np.mean([a == b for a, b in itertools.combinations(row, 2)])) for row in given_twice if len(row) > 1
    ]
    expected = pytest.approx(float(np.mean(shares)), abs=1e-12) if shares else None
    assert find_value(rate(rows, 4), "percent") == expected


# Other libraries


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_kappa_is_scikit_learns(seed: int, weights: str | None) -> None:
    coefficient: Any = f"kappa-{weights}" if weights else "kappa"
    codes, size = make_codes(seed)
    expected = cohen_kappa_score(codes[:, 0], codes[:, 1], weights=weights, labels=range(size))
    assert find_value(rate(codes[:, :2], size), coefficient) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_fleiss_is_statsmodels(seed: int) -> None:
    codes, size = make_codes(seed)
    table, _ = aggregate_raters(codes, n_cat=size)
    assert find_value(rate(codes, size), "fleiss") == pytest.approx(fleiss_kappa(table), abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_krippendorffs(seed: int, level: Any) -> None:
    codes, size = make_codes(seed, missing=0.3)
    data = np.where(codes == MISSING, np.nan, codes).T
    expected = krippendorff.alpha(data, level_of_measurement=level, value_domain=list(range(size)))
    coefficient: Any = f"alpha-{level}"
    assert find_value(rate(codes, size), coefficient) == pytest.approx(expected, abs=1e-12)


# Intervals and edges


def test_the_interval_holds_the_value_and_is_the_same_each_time() -> None:
    codes, size = make_codes(3)
    for coefficient in COEFFICIENTS:
        ratings = rate(codes[:, :2], size)
        first, again = (measure_agreement(ratings, coefficient) for _ in range(2))
        assert first == again
        assert first.value is not None and first.interval is not None
        assert first.interval.low < first.value < first.interval.high


def test_the_interval_covers_its_confidence() -> None:
    random = np.random.default_rng(7)
    agreeing, hits = 0.8, 0
    kappa = agreeing**2 + (1 - agreeing) ** 2 - 2 * agreeing * (1 - agreeing)  # of two raters who each err in 20%
    for draw in range(300):
        truth = random.integers(0, 2, 120)
        codes = np.stack([np.where(random.random(120) < agreeing, truth, 1 - truth) for _ in range(2)], axis=1)
        interval = measure_agreement(rate(codes, 2), "kappa", resamples=400, seed=draw).interval
        assert interval is not None
        hits += interval.low <= kappa <= interval.high
    assert 0.91 <= hits / 300 <= 0.985


def test_items_of_one_question_are_drawn_together() -> None:
    codes, size = make_codes(5)
    twice = rate(np.concatenate([codes, codes]), size)
    names = list(range(len(codes)))
    alone = measure_agreement(rate(codes, size), "alpha-nominal").interval
    clustered = measure_agreement(twice, "alpha-nominal", clusters=names * 2).interval
    naive = measure_agreement(twice, "alpha-nominal").interval
    assert alone is not None and clustered is not None and naive is not None
    width = alone.high - alone.low
    assert math.isclose(clustered.high - clustered.low, width, rel_tol=0.05)
    assert naive.high - naive.low < 0.85 * width


@pytest.mark.parametrize("coefficient", [one for one in COEFFICIENTS if one not in ("percent", "ac1")])
def test_one_category_alone_has_no_value_and_says_why(coefficient: Coefficient) -> None:
    found = measure_agreement(rate([[1, 1], [1, 1]], 2), coefficient)
    assert found.value is None
    assert found.reason == "all ratings are of one category, so chance explains them too"


def test_what_does_not_fit_is_refused_with_what_to_use() -> None:
    three = rate([[0, 1, 1], [1, 1, MISSING]], 2)
    assert measure_agreement(three, "kappa").reason == "kappa compares two raters; use fleiss, ac1 or alpha for more"
    assert "use ac1 or alpha" in (measure_agreement(three, "fleiss").reason or "")
    texts = Ratings(np.array([[0, 1]]), ("no", "yes"))
    assert measure_agreement(texts, "alpha-interval").reason == "alpha-interval needs numbers"


def test_ratings_are_gathered_by_item_and_rater() -> None:
    ratings = Ratings.of({("q1", "ann"): 3, ("q1", "bob"): 1, ("q2", "bob"): 3}, ["q1", "q2"], ["ann", "bob"])
    assert list(ratings.categories) == [1, 3]
    assert ratings.codes.tolist() == [[1, 0], [MISSING, 1]]
    scaled = Ratings.of({("q1", "ann"): 3}, ["q1"], ["ann"], categories=[1, 2, 3])
    assert scaled.codes.tolist() == [[2]]


def test_a_rater_is_compared_with_the_others_of_each_item() -> None:
    # The first agrees with one of two, with one of one, and is alone on the last item.
    ratings = rate([[0, 0, 1], [1, 1, MISSING], [0, MISSING, MISSING], [MISSING, 1, 0]], 2)
    found = measure_rater(ratings, 0)
    assert (found.value, found.items) == (0.75, 2)
    assert measure_rater(rate([[0, MISSING], [MISSING, 1]], 2), 0).reason == "nobody else rated the same items"


def test_ac1_counts_categories_of_items_with_one_rating_too() -> None:
    """Gwet (2014): 0.75 of the pairs agree; over all six items, category 0 has a share of 2.5 of 6."""
    found = measure_agreement(rate([[0, 0], [0, 0], [1, 1], [0, 1], [1, MISSING], [MISSING, 1]], 2), "ac1", resamples=9)
    chance = 2 * (2.5 / 6) * (3.5 / 6)
    assert found.value == pytest.approx((0.75 - chance) / (1 - chance), abs=1e-12)
    assert found.items == 4


@pytest.mark.parametrize("coefficient", ["kappa", "alpha-nominal", "ac1"])
def test_thousands_of_different_labels_need_no_table_of_their_pairs(coefficient: Coefficient) -> None:
    """A table for each of 1,500 items would take 27 GB."""
    values: dict[tuple[Hashable, Hashable], float | str] = {
        (item, rater): f"text {item * (1 + rater % 2)}" for item in range(1500) for rater in range(2)
    }
    found = measure_agreement(Ratings.of(values, range(1500), range(2)), coefficient, resamples=20)
    assert found.value == pytest.approx(0.0, abs=0.01)


Floats = NDArray[np.float64]


@pytest.mark.parametrize(("count", "total"), [(0, 5), (5, 5), (3, 10), (120, 200), (1, 1)])
def test_exact_intervals_and_sign_tests_are_scipys(count: int, total: int) -> None:
    test = stats.binomtest(count, total)
    expected = test.proportion_ci(0.95, method="exact")
    found = compute_exact_interval(count, total)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert compute_p_of_signs(count, total) == pytest.approx(test.pvalue, rel=1e-9)


def test_nothing_has_no_interval() -> None:
    assert compute_exact_interval(0, 0) is None
    assert compute_p_of_signs(0, 0) == 1.0
