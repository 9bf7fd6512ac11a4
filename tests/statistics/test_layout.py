"""Layouts of questions that belong together or count differently: hand-worked numbers, slow references, statsmodels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rageval_spec.data.design import Design, DesignSummary
from rageval_spec.statistics.layout import Layout, lay_out


def clustered(clusters: Sequence[int], weights: Sequence[float] | None = None, strata: Sequence[int] = ()) -> Design:
    """The design of questions q0000, q0001, ..."""
    return Design(
        dict(zip(names(len(clusters)), clusters, strict=True)),
        None if weights is None else dict(zip(names(len(weights)), weights, strict=True)),
        dict(zip(names(len(strata)), strata, strict=True)),
        DesignSummary(len(clusters), cluster="source"),
    )


def names(count: int) -> list[str]:
    return [f"q{number:04}" for number in range(count)]


def weighted(weights: Sequence[float], strata: Sequence[int] = ()) -> Design:
    every = names(len(weights))
    return Design({}, dict(zip(every, weights, strict=True)), dict(zip(every, strata, strict=False)))


def whole(design: Design, count: int) -> Layout:
    return lay_out(design, names(count), names(count))


def mix(shares: Mapping[int, float], strata: Sequence[int]) -> Design:
    """A production mix: each stratum's share is spread evenly over its questions."""
    return weighted([shares[one] / strata.count(one) for one in strata], strata)


def test_the_parts_of_clusters_worked_by_hand() -> None:
    layout = whole(clustered([0, 0, 1, 1]), 4)
    # The mean is 0.5; the clusters are 0.5 and -0.5 apart in sum, so 1/8 of the mean each way, times sqrt(2 / 1).
    parts = layout.split([1.0, 0.5, 0.5, 0.0])
    assert parts == pytest.approx([0.5 + 2 * 0.125 * math.sqrt(2), 0.5 - 2 * 0.125 * math.sqrt(2)])
    assert layout.find_variance([1.0, 0.5, 0.5, 0.0]) == pytest.approx(2 * 0.125**2 * 2)
    assert layout.clusters == 2
    assert layout.degrees == 1


def test_weights_of_a_mix_worked_by_hand() -> None:
    # Two easy questions are 20% of production and three hard ones 80%.
    layout = whole(mix({0: 0.2, 1: 0.8}, [0, 0, 1, 1, 1]), 5)
    values = [1.0, 0.0, 1.0, 1.0, 0.0]
    assert layout.average(values) == pytest.approx(0.2 * 0.5 + 0.8 * 2 / 3)
    assert layout.effective == pytest.approx(1 / (2 * 0.1**2 + 3 * (0.8 / 3) ** 2))
    assert layout.uncovered == 0
    # Each stratum has its own variance, and with one further degree of freedom that of all values.
    spread = 5 / 4 * sum(layout.weights * (np.array(values) - layout.average(values)) ** 2)
    by_hand = 0.2**2 * (0.5 + spread) / 2**2 + 0.8**2 * (2 / 3 + spread) / 3**2
    assert layout.find_variance(values) == pytest.approx(by_hand)


def test_a_large_mix_has_the_textbook_variance_of_a_stratified_mean() -> None:
    random, strata = np.random.default_rng(3), [0] * 3000 + [1] * 5000
    values = np.concatenate([random.random(3000), random.random(5000) ** 3])
    by_hand = 0.3**2 * values[:3000].var(ddof=1) / 3000 + 0.7**2 * values[3000:].var(ddof=1) / 5000
    found = whole(mix({0: 0.3, 1: 0.7}, strata), 8000).find_variance(values)
    assert found == pytest.approx(by_hand, rel=1e-3)


def test_a_small_stratum_whose_values_are_equal_is_not_known_exactly() -> None:
    layout = whole(mix({0: 0.5, 1: 0.5}, [0] * 4 + [1] * 400), 404)
    values = [1.0] * 4 + [0.0, 1.0] * 200
    large = 0.5**2 * 0.25 / 400
    assert layout.find_variance(values) > 10 * large


def test_scored_questions_stand_for_the_others_of_their_stratum() -> None:
    design = mix({0: 0.5, 1: 0.5}, [0, 0, 1, 1])
    layout = lay_out(design, ["q0000", "q0002", "q0003"], names(4))
    assert layout.weights == pytest.approx([0.5, 0.25, 0.25])


def test_a_stratum_without_a_scored_question_is_uncovered() -> None:
    design = mix({0: 0.7, 1: 0.3}, [0, 0, 1, 1])
    layout = lay_out(design, ["q0000", "q0001"], names(4))
    assert layout.uncovered == pytest.approx(0.3)
    assert layout.average([1.0, 0.0]) == 0.5


def test_questions_of_weight_zero_do_not_count() -> None:
    layout = whole(clustered([0, 1, 2], [1.0, 0.0, 3.0]), 3)
    assert layout.average([1.0, 100.0, 0.0]) == 0.25
    assert layout.clusters == 2


def test_questions_without_a_cluster_are_on_their_own() -> None:
    design = Design({"a": 0, "b": 0}, summary=DesignSummary(4, cluster="source"))
    assert lay_out(design, ["a", "b", "c", "d"], ["a", "b", "c", "d"]).clusters == 3


def test_a_stratum_of_one_cluster_varies_as_all_values_do() -> None:
    layout = whole(mix({0: 0.5, 1: 0.5}, [0, 1, 1, 1]), 4)
    values = [1.0, 0.0, 0.5, 1.0]
    lonely = 0.5**2 * (np.average((np.array(values) - 0.75) ** 2, weights=layout.weights) * 4 / 3)
    others = 0.5**2 * (2 * np.var(values[1:], ddof=1) + lonely / 0.5**2) / 3**2
    assert layout.find_variance(values) == pytest.approx(lonely + others)


def test_equal_values_have_no_variance() -> None:
    layout = whole(mix({0: 0.3, 1: 0.7}, [0, 1, 1, 1]), 4)
    assert layout.split([0.1] * 4) == pytest.approx([0.1] * len(layout.split([0.1] * 4)), abs=0)


def test_a_slice_across_strata_also_varies_with_how_many_of_each_it_has() -> None:
    strata = [0, 0, 0, 0, 1, 1, 1, 1]
    design = mix({0: 0.5, 1: 0.5}, strata)
    inside = [name for name, at in zip(names(8), range(8), strict=True) if at % 4 < 2]
    layout = lay_out(design, inside, inside)
    values = [1.0, 1.0, 0.0, 0.0]
    # Both strata are constant. How many questions of each belong to the slice varies: half do.
    assert layout.inside == pytest.approx([0.5, 0.5])
    spread = 4 / 3 * 0.25
    assert layout.find_variance(values) == pytest.approx(
        4 * (0.25 * math.sqrt(0.5) * 0.5) ** 2 + 2 * 0.5**2 * spread / 2**2
    )


def reference_variance(
    values: Sequence[float], weights: Sequence[float], strata: Sequence[int], clusters: Sequence[int]
) -> float:
    """The linearised variance of a stratified mean, in plain loops, with a further degree of freedom a stratum."""
    total = sum(weights)
    whole_mean = sum(weight * value for weight, value in zip(weights, values, strict=True)) / total
    squares = sum(weight * (value - whole_mean) ** 2 for weight, value in zip(weights, values, strict=True))
    spread = squares / total * len(values) / (len(values) - 1)
    parts: dict[int, float] = {}
    further = 0.0
    for stratum in sorted(set(strata)):
        rows = [row for row, of in enumerate(strata) if of == stratum]
        mean = sum(weights[row] * values[row] for row in rows) / sum(weights[row] for row in rows)
        count = len({clusters[row] for row in rows})
        further += spread * (sum(weights[row] for row in rows) / total / count) ** 2
        for row in rows:
            part = weights[row] / total * (values[row] - mean)
            parts[clusters[row]] = parts.get(clusters[row], 0.0) + part
    return sum(part**2 for part in parts.values()) + further


rows = st.tuples(st.floats(0, 1), st.floats(0.01, 10), st.integers(0, 2), st.integers(0, 5))


@given(st.lists(rows, min_size=1, max_size=40))
def test_the_variance_equals_a_slow_reference(drawn: list[tuple[float, float, int, int]]) -> None:
    # Two further questions in each stratum, so that none has only one cluster.
    every = [*drawn, *((value, 1.0, at, 6 + at + 3 * value) for at in range(3) for value in (0, 1))]
    values, weights = [float(one[0]) for one in every], [float(one[1]) for one in every]
    strata, numbers = [int(one[2]) for one in every], [int(one[3]) for one in every]
    layout = whole(clustered(numbers, weights, strata), len(every))
    assert layout.average(values) == pytest.approx(float(np.average(values, weights=weights)))
    assert layout.find_variance(values) == pytest.approx(
        reference_variance(values, weights, strata, numbers), abs=1e-12
    )
    parts = layout.split(values)
    assert parts.mean() == pytest.approx(layout.average(values))


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 10), st.integers(0, 4)), min_size=2, max_size=30))
def test_totals_of_clusters_equal_a_slow_reference(drawn: list[tuple[float, float, int]]) -> None:
    values, weights, clusters = ([*of] for of in zip(*drawn, strict=True))
    layout = whole(clustered(clusters, weights), len(drawn))
    sums = dict.fromkeys(clusters, 0.0)
    for value, weight, of in drawn:
        sums[of] += value * weight / sum(weights)
    assert layout.total(values) == pytest.approx([len(sums) * one for one in sums.values()], abs=1e-12)


def test_the_standard_error_is_that_of_statsmodels_with_clusters_and_weights() -> None:
    api = pytest.importorskip("statsmodels.api")
    random = np.random.default_rng(5)
    values, weights, clusters = random.random(200), random.gamma(2, size=200), random.integers(0, 30, 200)
    found = api.WLS(values, np.ones(200), weights).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    layout = whole(clustered([*map(int, clusters)], [*map(float, weights)]), 200)
    assert layout.average(values) == pytest.approx(found.params[0], rel=1e-12)
    assert math.sqrt(layout.find_variance(values)) == pytest.approx(found.bse[0], rel=1e-12)


def test_equal_clusters_have_as_many_degrees_of_freedom_as_a_t_test() -> None:
    assert whole(clustered([at // 4 for at in range(40)]), 40).degrees == 9
    assert whole(clustered([*range(12)]), 12).degrees == 11


def test_one_large_cluster_leaves_few_degrees_of_freedom() -> None:
    assert whole(clustered([0] * 30 + [*range(1, 11)]), 40).degrees == 1


def test_degrees_of_freedom_of_a_stratified_mean_are_those_of_welch() -> None:
    design = mix({0: 0.5, 1: 0.5}, [0] * 5 + [1] * 20)
    parts = {5: 0.25 / 5, 20: 0.25 / 20}
    # Welch and Satterthwaite's, with the further degree of freedom.
    welch = sum(parts.values()) ** 2 / sum(part**2 / count for count, part in parts.items())
    assert whole(design, 25).degrees == math.floor(welch)


def test_intervals_are_widened_by_student_t() -> None:
    layout = whole(clustered([at // 4 for at in range(40)]), 40)
    low, high = layout.widen(0.4, 0.7, 0.5, 0.95)
    factor = stats.t.ppf(0.975, 9) / stats.norm.ppf(0.975)
    assert (low, high) == pytest.approx((0.5 - 0.1 * factor, 0.5 + 0.2 * factor), rel=1e-5)


def test_more_clusters_widen_less() -> None:
    ends = [whole(clustered([*range(count)]), count).widen(0.4, 0.6, 0.5, 0.95)[0] for count in (3, 10, 50, 1000)]
    assert all(low < high for low, high in pairwise(ends))
