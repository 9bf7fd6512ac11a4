"""Layouts of questions that belong together or count differently: hand-worked numbers, slow references, statsmodels.

Aggregates, comparisons and gaps of questions that belong together or count differently.

Weighted percentiles: numpy's with equal weights, a slow reference, and coverage with clusters.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rageval_spec.data.datasets import Design, DesignSummary
from rageval_spec.data.evaluation import Aggregate, Comparison
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.aggregation import aggregate, compare_systems
from rageval_spec.statistics.weak_slices import find_gaps
from rageval_spec.statistics.weighted_clusters import (
    Layout,
    bootstrap_difference,
    compute_percentile,
    compute_woodruff_interval,
    contrast,
    find_spread,
    lay_out,
    permute_difference,
    split_variance,
)
from tests.statistics.test_aggregation import METRICS, STATISTICS, name_queries, one, pair, table


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
    assert layout.estimate_variance([1.0, 0.5, 0.5, 0.0]) == pytest.approx(2 * 0.125**2 * 2)
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
    assert layout.estimate_variance(values) == pytest.approx(by_hand)


def test_a_large_mix_has_the_textbook_variance_of_a_stratified_mean() -> None:
    random, strata = np.random.default_rng(3), [0] * 3000 + [1] * 5000
    values = np.concatenate([random.random(3000), random.random(5000) ** 3])
    by_hand = 0.3**2 * values[:3000].var(ddof=1) / 3000 + 0.7**2 * values[3000:].var(ddof=1) / 5000
    found = whole(mix({0: 0.3, 1: 0.7}, strata), 8000).estimate_variance(values)
    assert found == pytest.approx(by_hand, rel=1e-3)


def test_a_small_stratum_whose_values_are_equal_is_not_known_exactly() -> None:
    layout = whole(mix({0: 0.5, 1: 0.5}, [0] * 4 + [1] * 400), 404)
    values = [1.0] * 4 + [0.0, 1.0] * 200
    large = 0.5**2 * 0.25 / 400
    assert layout.estimate_variance(values) > 10 * large


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
    assert layout.estimate_variance(values) == pytest.approx(lonely + others)


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
    assert layout.estimate_variance(values) == pytest.approx(
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
    assert layout.estimate_variance(values) == pytest.approx(
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
    assert math.sqrt(layout.estimate_variance(values)) == pytest.approx(found.bse[0], rel=1e-12)


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


def clustered_design(clusters: Sequence[int]) -> Design:
    return Design(by_query(clusters), summary=DesignSummary(len(clusters), cluster="source"))


def by_query(numbers: Sequence[int]) -> dict[str, int]:
    return {query: int(of) for query, of in name_queries([float(of) for of in numbers]).items()}


def mixed(strata: Sequence[int], shares: Mapping[int, float]) -> Design:
    weights = name_queries([shares[of] / list(strata).count(of) for of in strata])
    return Design({}, weights, by_query(strata), DesignSummary(len(strata), weights="production.csv"))


def traffic(weights: Sequence[float]) -> Design:
    return Design({}, name_queries(weights), {}, DesignSummary(len(weights), weight="traffic"))


def summarize(values: Sequence[float], design: Design, metric: str = "map") -> Aggregate:
    [cell] = aggregate(one(values, metric), METRICS, STATISTICS, designs={"golden": design})
    return cell


def compare(values: Sequence[float], base: Sequence[float], design: Design, metric: str = "map") -> Comparison:
    designs = {"golden": design}
    [found] = compare_systems(
        pair(values, base, metric), "bm25", METRICS, STATISTICS, has_percentiles=True, designs=designs
    ).comparisons
    return found


def test_clusters_change_the_interval_and_not_the_mean() -> None:
    values = [*np.repeat([0.2, 0.9, 0.4, 0.7, 0.1, 0.8], 5)]
    plain, found = (
        aggregate(one(values), METRICS, STATISTICS)[0],
        summarize(values, clustered_design([at // 5 for at in range(30)])),
    )
    assert found.mean == plain.mean
    assert found.interval is not None and plain.interval is not None
    assert found.interval.high - found.interval.low > 2 * (plain.interval.high - plain.interval.low)
    assert found.design is not None
    assert (found.design.clusters, found.design.plain) == (6, None)
    assert plain.design is None


def test_an_interval_of_clusters_is_that_of_drawing_whole_clusters() -> None:
    random = np.random.default_rng(8)
    sizes = random.integers(1, 7, 150)
    members = np.repeat(np.arange(150), sizes)
    values = np.clip(random.beta(2, 1, 150)[members] + random.normal(0, 0.1, len(members)), 0, 1)
    sums = np.bincount(members, values)
    draws = random.integers(0, 150, (20_000, 150))
    low, high = np.quantile(sums[draws].sum(axis=1) / sizes[draws].sum(axis=1), (0.025, 0.975))
    found = summarize([*values], clustered_design([*members])).interval
    assert found is not None
    assert found.method == "bootstrap-bca-t of clusters"
    # Student's t, and the factor n / (n - 1) in the variance, widen it by less than two hundredths.
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.06 * (high - low))
    assert found.high - found.low > high - low


def test_a_single_cluster_has_no_interval() -> None:
    found = summarize([0.1, 0.5, 0.9], clustered_design([0, 0, 0]))
    assert (found.mean, found.interval) == (0.5, None)


def test_a_weighted_mean_is_the_headline_and_the_plain_one_is_kept() -> None:
    found = summarize([1.0, 1.0, 1.0, 0.0, 0.0], mixed([0, 0, 0, 1, 1], {0: 0.25, 1: 0.75}))
    assert found.mean == pytest.approx(0.25)
    assert found.design is not None
    assert found.design.plain == pytest.approx(0.6)
    assert found.design.effective == pytest.approx(1 / (3 * (0.25 / 3) ** 2 + 2 * (0.75 / 2) ** 2))
    assert found.design.clusters is None


def test_equal_weights_give_the_plain_mean() -> None:
    values = [*np.random.default_rng(1).random(40)]
    found = summarize(values, traffic([2.0] * 40))
    assert found.interval == aggregate(one(values), METRICS, STATISTICS)[0].interval
    assert found.mean == pytest.approx(math.fsum(values) / 40, rel=1e-14)
    assert found.design is not None and found.design.effective == pytest.approx(40)


def test_the_interval_of_a_large_weighted_mean_is_the_textbook_one() -> None:
    random = np.random.default_rng(6)
    values, weights = random.random(4000), random.gamma(3, size=4000)
    mean = np.average(values, weights=weights)
    error = math.sqrt(weights**2 @ (values - mean) ** 2) / weights.sum()
    found = summarize([*values], traffic([*weights])).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx(stats.norm.interval(0.95, mean, error), abs=0.1 * error)


def test_a_weighted_geometric_mean_is_of_the_logarithms() -> None:
    logs = [math.log(0.5), math.log(0.1), math.log(0.9)]
    found = summarize(logs, traffic([1.0, 2.0, 1.0]), "gm_map")
    assert found.mean == pytest.approx(math.exp((logs[0] + 2 * logs[1] + logs[2]) / 4))
    assert found.interval is not None and found.mean is not None
    assert found.interval.low < found.mean < found.interval.high


def test_a_sum_is_not_weighted() -> None:
    found = summarize([3.0, 4.0], traffic([1.0, 5.0]), "num_ret")
    assert (found.mean, found.design) == (7.0, None)


def test_a_weighted_percentile_has_an_interval_of_its_own() -> None:
    values = [*np.random.default_rng(3).exponential(size=400)]
    found = summarize(values, clustered_design([at // 4 for at in range(400)]), "latency@p50")
    plain = aggregate(one(values, "latency@p50"), METRICS, STATISTICS)[0]
    assert found.mean == plain.mean
    assert found.interval is not None and found.interval.method == "woodruff"
    heavy = summarize(values, traffic([1.0 + 9.0 * (value > 1) for value in values]), "latency@p50")
    assert heavy.mean is not None and plain.mean is not None and heavy.mean > plain.mean


def test_the_permutation_test_flips_whole_clusters() -> None:
    found = compare([0.5] * 9, [0.4] * 9, clustered_design([0, 0, 0, 1, 1, 1, 2, 2, 2]))
    # All three clusters are better: 2 of the 8 sign patterns are as far from 0.
    assert found.p_value == 0.25
    assert found.difference == pytest.approx(0.1)
    assert found.design is not None and found.design.clusters == 3
    assert compare([0.5] * 9, [0.4] * 9, clustered_design([*range(9)])).p_value == pytest.approx(2 / 2**9)


def test_a_weighted_difference_and_its_baseline() -> None:
    design = mixed([0, 0, 1, 1], {0: 0.9, 1: 0.1})
    found = compare([1.0, 1.0, 0.0, 0.0], [0.5, 0.5, 1.0, 1.0], design)
    assert found.difference == pytest.approx(0.9 * 0.5 - 0.1 * 1.0)
    assert found.baseline_mean == pytest.approx(0.9 * 0.5 + 0.1 * 1.0)
    assert found.design is not None and found.design.plain == pytest.approx(-0.25)
    assert (found.wins, found.losses) == (2, 2)


def test_a_difference_of_percentiles_respects_clusters() -> None:
    random = np.random.default_rng(4)
    base = random.exponential(size=200)
    values = base + np.repeat(random.normal(0.3, 1, 20), 10)
    alone, together = (
        compare([*values], [*base], clustered_design(of), "latency@p50")
        for of in ([*range(200)], [at // 10 for at in range(200)])
    )
    assert together.p_value > alone.p_value
    assert together.interval is not None and together.interval.method == "cluster-bootstrap-percentile"


def test_numbers_do_not_depend_on_threads_or_on_other_cells() -> None:
    random = np.random.default_rng(2)
    values = {("golden", "bm25", name): [*random.random(60)] for name in ("map", "ndcg@10")}
    designs = {"golden": clustered_design([at // 3 for at in range(60)])}
    together = aggregate(table(values), METRICS, STATISTICS, 1, designs)
    assert together == aggregate(table(values), METRICS, STATISTICS, 2, designs)
    first = aggregate(table({key: values[key] for key in [*values][:1]}), METRICS, STATISTICS, 2, designs)
    assert first[0] == together[0]


def test_a_dataset_without_a_design_has_the_numbers_it_had() -> None:
    values = one([*np.random.default_rng(2).random(30)])
    assert aggregate(values, METRICS, STATISTICS, designs={"other": clustered_design([0])}) == aggregate(
        values, METRICS, STATISTICS
    )


def test_no_interval_of_a_mean_passes_the_bounds_of_its_metric() -> None:
    class Bounded:
        statistic = "mean"
        higher_is_better = True
        bounds = (0.0, 1.0)

    values = [*np.repeat([1.0, 1.0, 1.0, 0.0], 5)]
    design = {"golden": clustered_design([at // 5 for at in range(20)])}
    [free] = aggregate(one(values), METRICS, STATISTICS, designs=design)
    [bounded] = aggregate(one(values), {"map": Bounded()}, STATISTICS, designs=design)
    assert free.interval is not None
    assert bounded.interval is not None and bounded.interval.high == 1


def test_the_contrast_of_a_slice_worked_by_hand() -> None:
    every = [*name_queries([0.0] * 4)]
    layout = lay_out(clustered_design([0, 0, 1, 1]), every, every)
    found = contrast(np.array([0.0, 1.0, 0.0, 1.0]), np.array([True, False, True, False]), layout)
    # Inside both values are 0, outside both are 1; each cluster contributes a half of the difference.
    assert found == pytest.approx([-1.0, -1.0])


def test_a_slice_of_few_clusters_is_not_tested() -> None:
    statistics = StatisticsNode(resamples=200, permutations=2000, seed=7)
    values = [0.1] * 20 + [*np.random.default_rng(1).uniform(0.6, 1, 180)]
    members = [("golden", "source=a", [f"q{at:04}" for at in range(20)])]
    found = [
        find_gaps(one(values), members, METRICS, statistics, designs=designs)
        for designs in (None, {"golden": clustered_design([at // 20 for at in range(200)])})
    ]
    assert [len(gaps) for gaps in found] == [1, 0]


def test_a_slice_that_is_worse_in_every_cluster_is_found() -> None:
    statistics = StatisticsNode(resamples=200, permutations=2000, seed=7)
    random = np.random.default_rng(1)
    hard = np.arange(200) % 4 == 0
    values = [*np.where(hard, random.uniform(0.1, 0.4, 200), random.uniform(0.6, 1, 200))]
    members = [("golden", "hard", [f"q{at:04}" for at in np.flatnonzero(hard)])]
    designs = {"golden": clustered_design([at // 8 for at in range(200)])}
    [gap] = find_gaps(one(values), members, METRICS, statistics, designs=designs)
    assert gap.difference == pytest.approx(np.mean(np.array(values)[hard]) - np.mean(np.array(values)[~hard]))
    assert gap.interval is not None and gap.interval.method == "mover of bootstrap-bca-t of clusters"
    assert gap.interval.low < gap.difference < gap.interval.high < 0


def lay(clusters: list[int]) -> Layout:
    every = [f"q{at:05}" for at in range(len(clusters))]
    design = Design(dict(zip(every, clusters, strict=True)), summary=DesignSummary(len(every), cluster="source"))
    return lay_out(design, every, every)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.integers(1, 99))
def test_equal_weights_give_numpys_percentile(numbers: list[float], percent: int) -> None:
    own = np.array(numbers)
    weights = np.full(len(own), 1 / len(own))
    assert compute_percentile(own, percent, weights) == pytest.approx(float(np.percentile(own, percent)), abs=1e-9)


def test_a_weighted_median_worked_by_hand() -> None:
    # The weights up to each number are 1, 4, 6 of 6; a half of the way from 1 to 6 is 3.5: 5/6 from 10 to 20.
    assert compute_percentile(np.array([30.0, 10.0, 20.0]), 50, np.array([2, 1, 3]) / 6) == pytest.approx(
        10 + 10 * 5 / 6
    )


def reference(numbers: list[float], percent: float, weights: list[float]) -> float:
    pairs = sorted(zip(numbers, weights, strict=True))
    wanted = pairs[0][1] + (sum(weights) - pairs[0][1]) * percent / 100
    upto = pairs[0][1]
    for (low, _), (high, weight) in pairwise(pairs):
        if upto + weight >= wanted:
            return low + (wanted - upto) / weight * (high - low)
        upto += weight
    return pairs[-1][0]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 5)), min_size=2, max_size=30, unique_by=lambda one: one[0]),
    st.integers(1, 99),
)
def test_a_weighted_percentile_equals_a_slow_reference(drawn: list[tuple[float, float]], percent: int) -> None:
    numbers, weights = ([one[place] for one in drawn] for place in range(2))
    found = compute_percentile(np.array(numbers), percent, np.array(weights))
    assert found == pytest.approx(reference(numbers, percent, weights), abs=1e-9)


def test_the_interval_of_independent_values_is_near_that_of_the_binomial() -> None:
    from rageval_spec.statistics.percentiles import compute_percentile_interval as find_order_statistics

    numbers = np.random.default_rng(2).exponential(size=2000)
    ends, others = (
        compute_woodruff_interval(numbers, 90, lay([*range(2000)]), 0.95),
        find_order_statistics(numbers, 90, 0.95),
    )
    assert ends is not None
    assert ends == pytest.approx(others, abs=0.03)


def test_clusters_widen_the_interval_of_a_percentile() -> None:
    shared = np.repeat(np.random.default_rng(2).exponential(size=60), 5)
    alone, together = (
        compute_woodruff_interval(shared, 50, lay(of), 0.95) for of in ([*range(300)], [at // 5 for at in range(300)])
    )
    assert alone is not None and together is not None
    assert together[1] - together[0] > 1.5 * (alone[1] - alone[0])


def test_a_percentile_of_few_clusters_has_no_interval() -> None:
    assert compute_woodruff_interval(np.arange(40.0), 95, lay([at // 10 for at in range(40)]), 0.95) is None
    assert compute_woodruff_interval(np.arange(40.0), 50, lay([0] * 40), 0.95) is None


def test_exchanging_whole_clusters_makes_a_difference_less_certain() -> None:
    random = np.random.default_rng(4)
    base = random.exponential(size=120)
    values = base + np.repeat(random.choice([-0.5, 1.0], 12), 10)
    alone, together = (
        permute_difference(values, base, 50, lay(of), permutations=2000, seed=1)
        for of in ([*range(120)], [at // 10 for at in range(120)])
    )
    assert alone < together
    assert permute_difference(base, base, 50, lay([*range(120)]), permutations=200, seed=1) == 1


def test_the_interval_of_a_difference_of_clusters_is_wider_and_the_same_each_time() -> None:
    random = np.random.default_rng(4)
    base = random.exponential(size=300)
    values = base + np.repeat(random.normal(0.3, 1, 60), 5)
    alone, together, again = (
        bootstrap_difference(values, base, 50, lay(of), resamples=500, confidence=0.95, seed=9)
        for of in ([*range(300)], [at // 5 for at in range(300)], [at // 5 for at in range(300)])
    )
    assert alone is not None and together is not None
    assert together == again
    assert together[1] - together[0] > alone[1] - alone[0]


DYESTUFF = [
    [1545, 1440, 1440, 1520, 1580], [1540, 1555, 1490, 1560, 1495], [1595, 1550, 1605, 1510, 1560],
    [1445, 1440, 1595, 1465, 1545], [1595, 1630, 1515, 1635, 1625], [1520, 1455, 1450, 1480, 1445],
]  # fmt: skip
"""The yield of five samples of six batches of a dye (Davies, 1947)."""


def test_variance_components_of_the_dyestuff_data() -> None:
    # Bates, lme4: mixed-effects modeling with R, 2010, section 1.3: 42.001 and 49.510 are the standard deviations.
    found = split_variance(DYESTUFF)
    assert found is not None
    assert [one**0.5 for one in found] == pytest.approx([49.510, 42.001], abs=5e-4)


def test_variance_components_by_hand() -> None:
    # The means are 1 and 5, the mean of all is 7 / 3: spread = 2 (4/3)^2 + (8/3)^2, size = 3 - 5 / 3.
    within, between = 2.0, ((2 * (4 / 3) ** 2 + (8 / 3) ** 2) - 2) / (4 / 3)
    assert split_variance([[0.0, 2.0], [5.0]]) == pytest.approx((within, between))
    assert split_variance([[0.0, 1.0], [0.0, 1.0]]) == (0.5, 0.0)
    assert split_variance([[1.0], [2.0]]) is None
    assert split_variance([[1.0, 2.0]]) is None
    assert split_variance([]) is None


@given(st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=4), min_size=2, max_size=6))
def test_variance_components_agree_with_the_identity_of_all_pairs(groups: list[list[int]]) -> None:
    # By its definition: the mean square of a model with a mean for each group, and of one with a mean for all.
    found = split_variance(groups)
    values = [one for group in groups for one in group]
    if len(values) == len(groups):
        assert found is None
        return
    assert found is not None
    pairs = sum((a - b) ** 2 / (2 * len(group)) for group in groups for a in group for b in group)
    every = sum((a - b) ** 2 for a in values for b in values) / (2 * len(values))
    within = pairs / (len(values) - len(groups))
    size = (len(values) - sum(len(group) ** 2 for group in groups) / len(values)) / (len(groups) - 1)
    between = ((every - pairs) / (len(groups) - 1) - within) / size
    assert found == pytest.approx((within, max(0.0, between)), abs=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=30))
def test_the_spread_of_independent_questions_is_their_standard_deviation(values: list[float]) -> None:
    sd, mean = find_spread({f"q{at}": value for at, value in enumerate(values)})
    assert sd == pytest.approx(statistics.stdev(values), abs=1e-9) and mean == pytest.approx(np.mean(values), abs=1e-9)


def test_the_spread_of_too_few_clusters_is_not_a_number() -> None:
    assert math.isnan(find_spread({"q": 0.5})[0])
