"""Aggregates, comparisons and gaps of questions that belong together or count differently."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import stats

from rageval_spec.data.design import Design, DesignSummary
from rageval_spec.data.evaluation import Aggregate, Comparison
from rageval_spec.spec.nodes import StatisticsNode
from rageval_spec.statistics.aggregate import aggregate, compare_systems
from rageval_spec.statistics.designed import contrast
from rageval_spec.statistics.gaps import find_gaps
from rageval_spec.statistics.layout import lay_out
from tests.statistics.test_aggregate import METRICS, STATISTICS, name_queries, one, pair, table


def clustered(clusters: Sequence[int]) -> Design:
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
        summarize(values, clustered([at // 5 for at in range(30)])),
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
    found = summarize([*values], clustered([*members])).interval
    assert found is not None
    assert found.method == "design-bootstrap-bca"
    # Student's t, and the factor n / (n - 1) in the variance, widen it by less than two hundredths.
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.06 * (high - low))
    assert found.high - found.low > high - low


def test_a_single_cluster_has_no_interval() -> None:
    found = summarize([0.1, 0.5, 0.9], clustered([0, 0, 0]))
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
    found = summarize(values, clustered([at // 4 for at in range(400)]), "latency@p50")
    plain = aggregate(one(values, "latency@p50"), METRICS, STATISTICS)[0]
    assert found.mean == plain.mean
    assert found.interval is not None and found.interval.method == "woodruff"
    heavy = summarize(values, traffic([1.0 + 9.0 * (value > 1) for value in values]), "latency@p50")
    assert heavy.mean is not None and plain.mean is not None and heavy.mean > plain.mean


def test_the_permutation_test_flips_whole_clusters() -> None:
    found = compare([0.5] * 9, [0.4] * 9, clustered([0, 0, 0, 1, 1, 1, 2, 2, 2]))
    # All three clusters are better: 2 of the 8 sign patterns are as far from 0.
    assert found.p_value == 0.25
    assert found.difference == pytest.approx(0.1)
    assert found.design is not None and found.design.clusters == 3
    assert compare([0.5] * 9, [0.4] * 9, clustered([*range(9)])).p_value == pytest.approx(2 / 2**9)


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
        compare([*values], [*base], clustered(of), "latency@p50")
        for of in ([*range(200)], [at // 10 for at in range(200)])
    )
    assert together.p_value > alone.p_value
    assert together.interval is not None and together.interval.method == "cluster-bootstrap-percentile"


def test_numbers_do_not_depend_on_threads_or_on_other_cells() -> None:
    random = np.random.default_rng(2)
    values = {("golden", "bm25", name): [*random.random(60)] for name in ("map", "ndcg@10")}
    designs = {"golden": clustered([at // 3 for at in range(60)])}
    together = aggregate(table(values), METRICS, STATISTICS, 1, designs)
    assert together == aggregate(table(values), METRICS, STATISTICS, 2, designs)
    first = aggregate(table({key: values[key] for key in [*values][:1]}), METRICS, STATISTICS, 2, designs)
    assert first[0] == together[0]


def test_a_dataset_without_a_design_has_the_numbers_it_had() -> None:
    values = one([*np.random.default_rng(2).random(30)])
    assert aggregate(values, METRICS, STATISTICS, designs={"other": clustered([0])}) == aggregate(
        values, METRICS, STATISTICS
    )


def test_no_interval_of_a_mean_passes_the_bounds_of_its_metric() -> None:
    class Bounded:
        statistic = "mean"
        higher_is_better = True
        bounds = (0.0, 1.0)

    values = [*np.repeat([1.0, 1.0, 1.0, 0.0], 5)]
    design = {"golden": clustered([at // 5 for at in range(20)])}
    [free] = aggregate(one(values), METRICS, STATISTICS, designs=design)
    [bounded] = aggregate(one(values), {"map": Bounded()}, STATISTICS, designs=design)
    assert free.interval is not None and free.interval.high > 1
    assert bounded.interval is not None and bounded.interval.high == 1


def test_the_contrast_of_a_slice_worked_by_hand() -> None:
    every = [*name_queries([0.0] * 4)]
    layout = lay_out(clustered([0, 0, 1, 1]), every, every)
    found = contrast(np.array([0.0, 1.0, 0.0, 1.0]), np.array([True, False, True, False]), layout)
    # Inside both values are 0, outside both are 1; each cluster contributes a half of the difference.
    assert found == pytest.approx([-1.0, -1.0])


def test_a_slice_of_few_clusters_is_not_tested() -> None:
    statistics = StatisticsNode(resamples=200, permutations=2000, seed=7)
    values = [0.1] * 20 + [*np.random.default_rng(1).uniform(0.6, 1, 180)]
    members = [("golden", "source=a", [f"q{at:04}" for at in range(20)])]
    found = [
        find_gaps(one(values), members, METRICS, statistics, designs=designs)
        for designs in (None, {"golden": clustered([at // 20 for at in range(200)])})
    ]
    assert [len(gaps) for gaps in found] == [1, 0]


def test_a_slice_that_is_worse_in_every_cluster_is_found() -> None:
    statistics = StatisticsNode(resamples=200, permutations=2000, seed=7)
    random = np.random.default_rng(1)
    hard = np.arange(200) % 4 == 0
    values = [*np.where(hard, random.uniform(0.1, 0.4, 200), random.uniform(0.6, 1, 200))]
    members = [("golden", "hard", [f"q{at:04}" for at in np.flatnonzero(hard)])]
    designs = {"golden": clustered([at // 8 for at in range(200)])}
    [gap] = find_gaps(one(values), members, METRICS, statistics, designs=designs)
    assert gap.difference == pytest.approx(np.mean(np.array(values)[hard]) - np.mean(np.array(values)[~hard]))
    assert gap.interval is not None and gap.interval.method == "mover of design-bootstrap-bca"
    assert gap.interval.low < gap.difference < gap.interval.high < 0
