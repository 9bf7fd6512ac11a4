"""Aggregates and comparisons, checked against numbers worked by hand and slow references.

Paired values: differences, wins, and what weights change.

Families of comparisons, checked against a slow reference of Holm's correction.

The power of paired tests, against the noncentral t distribution and against simulated tests.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rageval_spec import kernels
from rageval_spec.data.datasets import Design
from rageval_spec.data.evaluation import Comparison
from rageval_spec.data.outcomes import Cell, Interval
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.aggregation import (
    ValuePairs,
    adjust,
    adjust_table,
    aggregate,
    compare_systems,
    compute_limit,
    compute_smallest_drop,
    count_queries,
    share_highest,
)
from rageval_spec.statistics.percentiles import Statistic
from rageval_spec.statistics.weighted_clusters import lay_out

Values = Mapping[str, float | None]

STATISTICS = StatisticsNode(resamples=2000, permutations=2000, seed=7)
ROUGH = StatisticsNode(resamples=100, permutations=100)


@dataclass(frozen=True)
class Traits:
    statistic: Statistic = "mean"
    higher_is_better: bool | None = True


@dataclass(frozen=True)
class Bounded(Traits):
    bounds: tuple[float, float | None] = (0.0, 1.0)


class Settings(NamedTuple):
    confidence: float = STATISTICS.confidence
    resamples: int = STATISTICS.resamples
    permutations: int = STATISTICS.permutations
    seed: int = STATISTICS.seed


METRICS = {
    "map": Traits(),
    "ndcg@10": Traits(),
    "gm_map": Traits("geometric mean"),
    "num_ret": Traits("sum", None),
    "latency": Traits(higher_is_better=False),
    "latency@p95": Traits("p95", higher_is_better=False),
    "latency@p50": Traits("p50", higher_is_better=False),
}


def table(cells: Mapping[tuple[str, str, str], Values | Sequence[float]]) -> pl.DataFrame:
    """A values table. A sequence gets the query ids q0, q1, ...; None is unscorable."""
    schema = dict.fromkeys(("dataset", "system", "metric", "query_id"), pl.String)
    rows = [
        (*key, query, value, "scored" if value is not None else "unscorable", None if value is not None else "why")
        for key, values in cells.items()
        for query, value in (values if isinstance(values, Mapping) else name_queries(values)).items()
    ]
    return pl.DataFrame(
        rows, schema=schema | {"value": pl.Float64, "status": pl.String, "reason": pl.String}, orient="row"
    )


def name_queries(values: Sequence[float]) -> dict[str, float]:
    return {f"q{number:04}": value for number, value in enumerate(values)}


def one(values: Values | Sequence[float], metric: str = "map") -> pl.DataFrame:
    return table({("golden", "bm25", metric): values})


def pair(values: Values | Sequence[float], base: Values | Sequence[float], metric: str = "map") -> pl.DataFrame:
    return table({("golden", "bm25", metric): base, ("golden", "dense", metric): values})


def compare_one(values: Values | Sequence[float], base: Values | Sequence[float], metric: str = "map") -> Comparison:
    [comparison] = compare_systems(pair(values, base, metric), "bm25", METRICS, STATISTICS).comparisons
    return comparison


def random_values(seed: int, count: int = 50) -> list[float]:
    return list(np.random.default_rng(seed).beta(0.6, 0.9, count))


def test_a_mean_is_over_only_the_scored_queries() -> None:
    [cell] = aggregate(one({"a": 0.5, "b": None, "c": 0.25}), METRICS, STATISTICS)
    assert (cell.dataset, cell.system, cell.metric) == ("golden", "bm25", "map")
    assert (cell.mean, cell.scored, cell.total, cell.statistic) == (0.375, 2, 3, "mean")


def test_nothing_scored_gives_no_mean() -> None:
    [cell] = aggregate(one({"a": None, "b": None}), METRICS, STATISTICS)
    assert (cell.mean, cell.interval, cell.scored, cell.total, cell.ties) == (None, None, 0, 2, None)


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1), min_size=1, max_size=30))
def test_a_mean_is_added_up_in_the_order_of_query_ids(values: dict[str, float]) -> None:
    [cell] = aggregate(one(values), METRICS, ROUGH)
    total = 0.0
    for query in sorted(values, key=str.encode):
        total += values[query]
    assert cell.mean == total / len(values)


def test_one_query_has_no_interval() -> None:
    [cell] = aggregate(one([0.5]), METRICS, STATISTICS)
    assert (cell.mean, cell.interval) == (0.5, None)


def test_equal_values_are_not_certain() -> None:
    """By hand: one more value, at the end of the range, has a weight of at most 1 - 0.025**(1/5)."""
    [cell] = aggregate(one([0.25] * 5), {"map": Bounded()}, STATISTICS)
    weight = 1 - 0.025**0.2
    assert cell.interval is not None
    assert (cell.interval.low, cell.interval.high) == pytest.approx((0.25 * (1 - weight), 0.25 + 0.75 * weight))


def test_equal_values_without_a_highest_one_have_no_interval() -> None:
    [cell] = aggregate(one([0.25] * 5), METRICS, STATISTICS)
    assert cell.interval is None


def test_identical_pairs_are_not_certain() -> None:
    same = [1.0, 0.5, 0.0]
    [found] = compare_systems(pair(same, same), "bm25", {"map": Bounded()}, STATISTICS).comparisons
    reach = 1 - 0.025 ** (1 / 3)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((-reach, reach))


def test_an_interval_of_values_without_bounds_agrees_with_scipy_up_to_the_draws() -> None:
    values = np.array(random_values(3, 200))
    [cell] = aggregate(one(list(values)), METRICS, StatisticsNode(resamples=20_000, confidence=0.9))
    expected = stats.bootstrap((values,), np.mean, n_resamples=20_000, confidence_level=0.9, rng=1).confidence_interval
    assert cell.interval is not None
    assert cell.interval.confidence == 0.9
    assert cell.interval.method == "bootstrap-bca-t"
    factor = stats.t.ppf(0.95, 199) / stats.norm.ppf(0.95) * math.sqrt(200 / 199)
    wider = [values.mean() + factor * (end - values.mean()) for end in expected]
    assert (cell.interval.low, cell.interval.high) == pytest.approx(wider, abs=1.5e-3)


def test_a_geometric_mean_is_of_logarithms() -> None:
    logarithms = [math.log(value) for value in (0.1, 0.4, 1e-5, 0.9)]
    geometric, plain = aggregate(pl.concat([one(logarithms, "gm_map"), one(logarithms, "map")]), METRICS, STATISTICS)
    assert geometric.statistic == "geometric mean"
    assert geometric.mean == pytest.approx((0.1 * 0.4 * 1e-5 * 0.9) ** 0.25)
    assert geometric.interval is not None
    assert plain.interval is not None
    assert geometric.interval.low == math.exp(plain.interval.low)
    assert geometric.interval.high == math.exp(plain.interval.high)


def test_a_sum_has_no_interval() -> None:
    [cell] = aggregate(one([3.0, 4.0, 1000.0], "num_ret"), METRICS, STATISTICS)
    assert (cell.mean, cell.interval, cell.statistic) == (1007.0, None, "sum")


def test_a_percentile_has_an_interval_of_order_statistics() -> None:
    values = {**name_queries([float(number) for number in range(100, 0, -1)]), "failed": None}
    median, far = aggregate(pl.concat([one(values, "latency@p50"), one(values, "latency@p95")]), METRICS, STATISTICS)
    assert (median.mean, median.statistic, median.scored, median.total) == (50.5, "p50", 100, 101)
    assert median.interval == Interval(40.0, 61.0, 0.95, "order-statistics")
    assert far.mean == pytest.approx(np.percentile(range(1, 101), 95))
    assert far.interval == Interval(90.0, 100.0, 0.95, "order-statistics")


def test_the_interval_of_a_percentile_has_the_confidence_that_the_spec_asks_for() -> None:
    [cell] = aggregate(one([float(n) for n in range(20)], "latency@p50"), METRICS, StatisticsNode(confidence=0.5))
    assert cell.interval == Interval(7.0, 12.0, 0.5, "order-statistics")


def test_too_few_values_leave_a_percentile_without_interval() -> None:
    [cell] = aggregate(one([1.0, 2.0, 3.0], "latency@p95"), METRICS, STATISTICS)
    assert cell.mean == pytest.approx(2.9)
    assert cell.interval is None
    [cell] = aggregate(one({"a": None}, "latency@p95"), METRICS, STATISTICS)
    assert (cell.mean, cell.interval, cell.scored) == (None, None, 0)


def test_percentiles_change_no_interval_of_a_mean_and_are_not_compared() -> None:
    base, other = random_values(1, 100), random_values(2, 100)
    means = pair(base, other, "latency")
    both = pl.concat([pair(base, other, "latency@p95"), means, pair(base, other, "latency@p50")])
    alone = aggregate(means, METRICS, STATISTICS)
    assert [cell for cell in aggregate(both, METRICS, STATISTICS) if cell.metric == "latency"] == list(alone)
    found = compare_systems(both, "bm25", METRICS, STATISTICS)
    assert [comparison.metric for comparison in found.comparisons] == ["latency"]
    assert found.notes == ()


def test_ties_give_a_range_of_means() -> None:
    values = one({"a": 0.5, "b": 0.25, "c": None}).with_columns(
        tie_low=pl.Series([0.5, 0.125, None]), tie_high=pl.Series([0.75, 0.25, None])
    )
    [cell] = aggregate(values, METRICS, STATISTICS)
    assert cell.ties is not None
    assert (cell.ties.low, cell.ties.high, cell.ties.queries) == (0.3125, 0.5, 2)


def test_ties_that_decide_whether_there_is_a_value_are_counted() -> None:
    """For example, the rank of a target is 4 or, in another order, beyond the cutoff."""
    values = one({"a": 4.0, "b": 2.0}).with_columns(tie_low=pl.Series([3.0, 2.0]), tie_high=pl.Series([None, 2.0]))
    [cell] = aggregate(values, METRICS, STATISTICS)
    assert cell.ties is not None
    assert (cell.ties.low, cell.ties.high, cell.ties.queries) == (2.5, 3.0, 1)


def test_ties_that_decide_nothing_and_ties_that_were_not_computed() -> None:
    values = one({"a": 0.5, "b": 0.25})
    [checked] = aggregate(values.with_columns(tie_low="value", tie_high="value"), METRICS, STATISTICS)
    assert checked.ties is not None
    assert (checked.ties.low, checked.ties.high, checked.ties.queries) == (0.375, 0.375, 0)
    nothing = pl.lit(None, dtype=pl.Float64)
    [unchecked] = aggregate(values.with_columns(tie_low=nothing, tie_high=nothing), METRICS, STATISTICS)
    assert unchecked.ties is None
    [absent] = aggregate(values, METRICS, STATISTICS)
    assert absent.ties is None


def test_cells_keep_their_order() -> None:
    cells = {(d, s, m): [0.1, 0.2] for d in ("z", "a") for s in ("y", "b") for m in ("ndcg@10", "map")}
    found = [(a.dataset, a.system, a.metric) for a in aggregate(table(cells), METRICS, ROUGH)]
    assert found == list(cells)


def test_other_cells_and_threads_change_no_number() -> None:
    cells = {
        (dataset, system, metric): random_values(seed, 40 if metric == "map" else 33)
        for seed, (dataset, system, metric) in enumerate(
            [(d, s, m) for d in ("golden", "scifact") for s in ("bm25", "dense") for m in ("map", "ndcg@10")]
        )
    }
    whole = aggregate(table(cells), METRICS, STATISTICS, threads=1)
    assert aggregate(table(cells), METRICS, STATISTICS, threads=2) == whole
    for cell in whole:
        key = (cell.dataset, cell.system, cell.metric)
        assert aggregate(table({key: cells[key]}), METRICS, STATISTICS) == (cell,)
    assert aggregate(table(cells), METRICS, StatisticsNode(resamples=2000, seed=8)) != whole


def test_settings_need_not_come_from_a_spec() -> None:
    cells = {("golden", system, "map"): random_values(seed) for seed, system in enumerate(("bm25", "dense"))}
    values = table(cells)
    assert aggregate(values, METRICS, Settings()) == aggregate(values, METRICS, STATISTICS)
    comparing = (values, "bm25", METRICS)
    assert compare_systems(*comparing, Settings()) == compare_systems(*comparing, STATISTICS)


def test_the_order_of_the_rows_changes_no_number() -> None:
    values = one(random_values(1))
    assert aggregate(values.reverse(), METRICS, STATISTICS) == aggregate(values, METRICS, STATISTICS)


def test_a_comparison_by_hand() -> None:
    comparison = compare_one([0.5, 0.75, 0.25, 1.0], [0.25, 0.5, 0.5, 0.5])
    assert (comparison.dataset, comparison.system, comparison.baseline) == ("golden", "dense", "bm25")
    assert (comparison.difference, comparison.queries) == (0.1875, 4)
    assert (comparison.wins, comparison.losses) == (3, 1)
    # Of the 16 sign patterns of 1/4, 1/4, 1/4, 1/2, those with |sum| >= 3/4: the sign of 1/2 with at most one other.
    assert comparison.p_value == 8 / 16
    assert comparison.p_adjusted == comparison.p_value
    assert comparison.interval is not None
    assert comparison.interval.low < 0.1875 < comparison.interval.high


def test_a_p_value_agrees_with_scipy_up_to_the_draws() -> None:
    values, base = np.array(random_values(1, 60)), np.array(random_values(2, 60))
    comparison = compare_one(list(values), list(base))
    expected = stats.permutation_test(
        (values - base,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
    ).pvalue
    assert comparison.p_value == pytest.approx(expected, abs=0.03)


def test_the_interval_of_a_difference_is_that_of_the_mean_of_differences() -> None:
    values, base = random_values(1), random_values(2)
    differences = [a - b for a, b in zip(values, base, strict=True)]
    [mean_difference] = aggregate(one(differences), METRICS, STATISTICS)
    assert compare_one(values, base).interval == mean_difference.interval


def test_only_queries_that_both_are_scored_for_are_paired() -> None:
    comparison = compare_one(
        {"a": 0.5, "b": None, "c": 1.0, "only here": 1.0}, {"c": 0.25, "b": 0.9, "a": 0.25, "d": 0.0}
    )
    assert (comparison.queries, comparison.difference, comparison.wins) == (2, 0.5, 2)


@pytest.mark.parametrize(
    ("values", "base", "message"),
    [
        ({"a": 0.5, "b": None}, {"a": 0.1, "b": 0.2}, "only one query has a value in both"),
        ({"a": 0.5}, {"b": 0.1}, "no query has a value in both"),
        ({"a": 0.5}, {"a": None}, "no query has a value in both"),
    ],
)
def test_fewer_than_two_pairs_give_a_note(values: Values, base: Values, message: str) -> None:
    compared = compare_systems(pair(values, base), "bm25", METRICS, STATISTICS)
    assert compared.comparisons == ()
    [note] = compared.notes
    assert (note.dataset, note.system) == ("golden", "dense")
    assert note.message == f"map was not compared with bm25: {message}"


def test_a_system_without_values_needs_no_note_because_the_table_shows_it() -> None:
    assert compare_systems(pair({"a": None}, {"a": 0.5}), "bm25", METRICS, STATISTICS).notes == ()


def test_if_lower_is_better_a_lower_value_wins() -> None:
    comparison = compare_one([1.0, 2.0, 3.0], [2.0, 3.0, 2.0], "latency")
    assert (comparison.wins, comparison.losses) == (2, 1)
    assert comparison.difference == pytest.approx(-1 / 3)


def test_sums_are_not_compared() -> None:
    compared = compare_systems(pair([1.0, 2.0], [3.0, 4.0], "num_ret"), "bm25", METRICS, STATISTICS)
    assert (compared.comparisons, compared.notes) == ((), ())


def test_the_difference_of_geometric_means_is_theirs_not_that_of_logarithms() -> None:
    comparison = compare_one([math.log(0.4), math.log(0.9)], [math.log(0.1), math.log(0.1)], "gm_map")
    assert comparison.difference == pytest.approx(0.6 - 0.1)
    assert comparison.interval is None
    assert comparison.wins == 2


def test_holm_is_over_all_comparisons_of_a_dataset() -> None:
    cells: dict[tuple[str, str, str], list[float]] = {
        (dataset, system, metric): list(np.array(random_values(number, 12)) + (0.5 if system == "dense" else 0))
        for number, (dataset, system, metric) in enumerate(
            [(d, s, m) for d in ("golden", "scifact") for s in ("bm25", "dense", "hybrid") for m in ("map", "ndcg@10")]
        )
    }
    compared = compare_systems(table(cells), "bm25", METRICS, STATISTICS).comparisons
    assert len(compared) == 8
    for dataset in ("golden", "scifact"):
        family = sorted((c for c in compared if c.dataset == dataset), key=lambda c: c.p_value)
        running = 0.0
        for place, comparison in enumerate(family):
            running = max(running, min(1.0, comparison.p_value * (len(family) - place)))
            assert comparison.p_adjusted == pytest.approx(running)


def test_another_metric_changes_no_p_value_and_no_interval() -> None:
    small = {("golden", s, "map"): random_values(n) for n, s in enumerate(("bm25", "dense"))}
    large = small | {("golden", s, "ndcg@10"): random_values(n + 5, 30) for n, s in enumerate(("bm25", "dense"))}
    [alone] = compare_systems(table(small), "bm25", METRICS, STATISTICS).comparisons
    beside = compare_systems(table(large), "bm25", METRICS, STATISTICS).comparisons[0]
    assert replace(beside, p_adjusted=alone.p_adjusted, limit=alone.limit) == alone


def test_only_the_metrics_given_are_compared() -> None:
    cells = {("golden", s, m): random_values(1) for s in ("bm25", "dense") for m in ("map", "ndcg@10")}
    compared = compare_systems(table(cells), "bm25", {"map": Traits()}, STATISTICS).comparisons
    assert [comparison.metric for comparison in compared] == ["map"]


def test_an_evaluation_is_compared_with_an_earlier_one_system_by_system() -> None:
    now = table({("golden", "bm25", "map"): [0.5, 0.5, 0.5], ("golden", "dense", "map"): [0.9, 0.9, 0.9]})
    before = table({("golden", "dense", "map"): [0.8, 0.7, 0.6], ("golden", "bm25", "map"): [0.5, 0.5, 0.75]})
    bm25, dense = compare_systems(now, "main", METRICS, STATISTICS, earlier=before).comparisons
    assert (bm25.system, bm25.baseline) == ("bm25", "main")
    assert bm25.difference == pytest.approx(-0.25 / 3)
    assert (dense.system, dense.wins) == ("dense", 3)
    assert dense.difference == pytest.approx(0.2)


def test_a_system_missing_from_the_earlier_evaluation_gives_a_note() -> None:
    compared = compare_systems(one([0.5, 0.6]), "main", METRICS, STATISTICS, earlier=pair([0.1], [0.2]))
    assert compared.comparisons == ()
    assert [note.message for note in compared.notes] == [
        "map was not compared with main: only one query has a value in both"
    ]


def test_a_difference_is_summed_without_rounding_error() -> None:
    comparison = compare_one([0.5] * 10, [0.6] * 10)
    assert comparison.difference == 0.5 - 0.6


CELL = Cell("golden", "bot", "map")
VALUES, BASE = array("d", [1.0, 0.5, 0.0]), array("d", [0.5, 0.5, 0.5])


def test_pairs_that_all_count_the_same() -> None:
    pairs = ValuePairs(CELL, METRICS["map"], VALUES, BASE)
    assert pairs.difference() == pairs.plain_difference() == 0.0
    assert pairs.wins_and_losses() == (1, 1)
    assert pairs.summarize(BASE) == 0.5
    assert pairs.placed is None


def test_wins_of_a_metric_whose_low_values_are_good() -> None:
    values, base = array("d", [1.0, 1.0]), array("d", [2.0, 3.0])
    assert ValuePairs(CELL, METRICS["latency"], values, base).wins_and_losses() == (2, 0)


def test_weighted_pairs() -> None:
    design = Design({}, {"a": 3.0, "b": 1.0, "c": 0.0})
    pairs = ValuePairs(CELL, METRICS["map"], VALUES, BASE, lay_out(design, ["a", "b", "c"], ["a", "b", "c"]))
    assert pairs.difference() == pytest.approx(0.375)
    assert pairs.plain_difference() == 0.0
    assert pairs.summarize(VALUES) == pytest.approx(0.875)


def test_a_difference_of_percentiles() -> None:
    pairs = ValuePairs(CELL, METRICS["latency@p50"], VALUES, BASE)
    assert (pairs.percent, pairs.difference()) == (50, 0.0)


def comparison(metric: str, p_value: float, **changes: Any) -> Comparison:
    fields: dict[str, Any] = {
        "dataset": "golden",
        "system": "new",
        "baseline": "old",
        "difference": -0.1,
        "interval": None,
        "p_adjusted": p_value,
        "queries": 10,
        "wins": 1,
        "losses": 5,
    }
    return Comparison(metric=metric, p_value=p_value, **fields | changes)


def slow_holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value times the number of p-values that are not smaller; never less than the result of a smaller one."""
    return [
        min(1.0, max(sum(1 for q in p_values if q >= other) * other for other in p_values if other <= p))
        for p in p_values
    ]


def adjusted(comparisons: Sequence[Comparison]) -> list[float]:
    return [one.p_adjusted for one in comparisons]


def test_a_family_worked_by_hand() -> None:
    family = [comparison("a", 0.01), comparison("b", 0.04), comparison("c", 0.03)]
    assert adjusted(adjust(family)) == pytest.approx([0.03, 0.06, 0.06])


@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=12, unique=True))
def test_a_family_is_corrected_by_holms_procedure(p_values: list[float]) -> None:
    found = adjust([comparison(f"m{index}", p) for index, p in enumerate(p_values)])
    assert adjusted(found) == pytest.approx(slow_holm(p_values))
    assert [one.p_value for one in found] == p_values


def test_each_dataset_is_a_family() -> None:
    found = adjust([comparison("a", 0.01), comparison("a", 0.02, dataset="other"), comparison("b", 0.5)])
    assert adjusted(found) == pytest.approx([0.02, 0.02, 0.5])


def test_nothing_to_adjust() -> None:
    assert adjust([]) == ()
    assert adjust_table([], [comparison("a", 0.5)]) == ()


def test_a_comparison_that_a_gate_requests_has_the_gates_p_value_in_the_table() -> None:
    gated = adjust([comparison("a", 0.25)])
    table = [comparison("a", 0.25), *(comparison(f"m{index}", 0.02 + index / 1000) for index in range(4))]
    found = adjust_table(table, gated)
    assert [one.metric for one in found] == [one.metric for one in table]
    assert found[0].p_adjusted == 0.25
    assert adjusted(found[1:]) == adjusted(adjust(table[1:]))


def test_the_direction_of_a_comparison_does_not_matter() -> None:
    gated = [comparison("a", 0.2, p_adjusted=0.4, system="old", baseline="new")]
    assert adjusted(adjust_table([comparison("a", 0.2), comparison("b", 0.2)], gated)) == [0.4, 0.2]


def test_gates_on_several_baselines_keep_the_highest_p_value() -> None:
    gated = [comparison("a", 0.2, p_adjusted=0.4), comparison("a", 0.2, p_adjusted=0.2, system="old", baseline="new")]
    assert adjusted(adjust_table([comparison("a", 0.2)], gated)) == [0.4]


def test_another_dataset_or_metric_is_another_comparison() -> None:
    gated = [comparison("a", 0.2, p_adjusted=0.9, dataset="other"), comparison("b", 0.2, p_adjusted=0.9)]
    assert adjusted(adjust_table([comparison("a", 0.2)], gated)) == [0.2]


def test_a_pair_that_two_families_have_takes_the_highest_p_value_in_both() -> None:
    there = comparison("a", 0.01, system="x", baseline="y", p_adjusted=0.02)
    back = comparison("a", 0.01, system="y", baseline="x", p_adjusted=0.05)
    alone = comparison("b", 0.01, system="x", baseline="y", p_adjusted=0.03)
    found = share_highest({"y": [there, alone], "x": [back]})
    assert {name: adjusted(of) for name, of in found.items()} == {"y": [0.05, 0.03], "x": [0.05]}


def exact_power(sd: float, queries: int, drop: float, alpha: float) -> float:
    """The power of the two-sided paired t-test."""
    shift, edge = drop * math.sqrt(queries) / sd, stats.t.ppf(1 - alpha / 2, queries - 1)
    return float(stats.nct.sf(edge, queries - 1, shift) + stats.nct.cdf(-edge, queries - 1, shift))


def compute_power(sd: float, queries: int, drop: float, alpha: float = 0.05) -> float:
    """The probability that a paired test finds a true difference, in the normal form with Guenther's correction."""
    normal = NormalDist()
    limit = normal.inv_cdf(1 - alpha / 2)
    used = queries - limit**2 / 2
    return normal.cdf(drop * math.sqrt(used) / sd - limit)


def test_a_worked_example() -> None:
    # ((1.95996 + 0.84162) * 0.25 / 0.05)² = 196.22, and 1.92 for the correction
    assert count_queries(0.25, 0.05) == 199
    assert compute_smallest_drop(0.25, 199) == pytest.approx(0.25 * 2.80159 / math.sqrt(199 - 1.92073), rel=1e-4)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("queries", [20, 50, 400, 5000])
def test_the_smallest_drop_has_the_stated_power(queries: int, alpha: float) -> None:
    drop = compute_smallest_drop(0.3, queries, alpha)
    assert drop is not None
    assert exact_power(0.3, queries, drop, alpha) == pytest.approx(0.8, abs=0.005)
    assert compute_power(0.3, queries, drop, alpha) == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize("drop", [0.01, 0.05, 0.2])
def test_the_number_of_queries_is_the_smallest_that_suffices(drop: float) -> None:
    needed = count_queries(0.3, drop)
    assert needed is not None
    near = range(max(3, needed - 20), needed + 20)
    exact = next(queries for queries in near if exact_power(0.3, queries, drop, 0.05) >= 0.8)
    assert abs(needed - exact) <= 1
    smallest = compute_smallest_drop(0.3, needed)
    assert smallest is not None and smallest <= drop


def test_simulated_tests_find_the_drop_as_often_as_promised() -> None:
    generator = np.random.default_rng(3)
    drop = compute_smallest_drop(0.25, 80)
    assert drop is not None
    drawn = generator.normal(drop, 0.25, (4000, 80))
    found = np.asarray(stats.ttest_1samp(drawn, 0, axis=1).pvalue) < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)


def test_too_few_queries_show_nothing() -> None:
    assert compute_smallest_drop(0.2, 2) is None
    assert compute_smallest_drop(0.2, 3) is not None


def test_no_spread_and_no_drop() -> None:
    assert compute_smallest_drop(0.0, 40) == 0.0
    assert count_queries(0.2, 0.0) is None
    assert count_queries(0.0, 0.1) == 3


@dataclass(frozen=True)
class AnswerTraits(Traits):
    group: str = "answers"


def test_means_of_answers_are_rounded_once_and_those_of_rankings_are_added_in_order() -> None:
    values = table({("d", "s", "token_f1"): [0.1] * 3, ("d", "s", "map"): [0.1] * 3})
    answers, ranking = aggregate(values, {**METRICS, "token_f1": AnswerTraits()}, ROUGH)
    assert (answers.mean, ranking.mean) == (0.1, (0.1 + 0.1 + 0.1) / 3)


@pytest.mark.parametrize(
    ("pairs", "permutations", "least"),
    [(1, 100, 1.0), (4, 100, 0.125), (6, 64, 2 / 64), (7, 100, 1 / 101), (9999, 10_000, 1 / 10_001)],
)
def test_the_least_p_value_worked_by_hand(pairs: int, permutations: int, least: float) -> None:
    """Two of the 2**n exchanges are as extreme as possible; of random ones, at least the one seen is counted."""
    assert compute_limit(pairs, permutations).p_value == pytest.approx(least)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=10))
def test_no_test_is_below_its_limit(differences: list[float]) -> None:
    """All pairs differ in one direction: no p-value of so many pairs is smaller."""
    found = compare_one(differences, [0.0] * len(differences))
    assert found.limit is not None
    assert found.p_value == pytest.approx(found.limit.p_value)
    assert found.limit.p_adjusted == pytest.approx(found.p_adjusted)


@given(st.lists(st.tuples(st.integers(1, 12), st.floats(0, 1)), min_size=1, max_size=8))
def test_the_least_adjusted_p_value_is_holms_with_that_p_value(family: list[tuple[int, float]]) -> None:
    """The slow reference: replace one p-value, correct again."""
    one_pair = compare_one([1.0, 0.0], [0.0, 0.0])
    limits = [compute_limit(pairs, 2000) for pairs, _ in family]
    comparisons = [
        replace(one_pair, system=f"s{at}", p_value=max(p, limit.p_value), limit=limit)
        for at, (limit, (_, p)) in enumerate(zip(limits, family, strict=True))
    ]
    raw = [one.p_value for one in comparisons]
    for at, one in enumerate(adjust(comparisons)):
        assert one.limit is not None
        least = kernels.holm([one.limit.p_value if of == at else p for of, p in enumerate(raw)])[at]
        assert one.limit.p_adjusted == pytest.approx(least)
        assert one.limit.family == len(family)
        assert one.limit.p_adjusted <= one.p_adjusted + 1e-12


@pytest.mark.parametrize(("pairs", "family", "needed"), [(3, 1, 6), (5, 1, 6), (8, 20, 10), (2, 2, 7)])
def test_the_pairs_needed_are_enough_and_one_fewer_is_not(pairs: int, family: int, needed: int) -> None:
    limit = replace(compute_limit(pairs, 100_000), family=family)
    assert limit.count_pairs(0.05) == needed
    assert family * compute_limit(needed, 100_000).p_value < 0.05 <= family * compute_limit(needed - 1, 100_000).p_value


def test_three_identical_pairs_are_unresolvable_and_two_hundred_are_not() -> None:
    few, many = compare_one([0.5] * 3, [0.5] * 3), compare_one([0.5] * 200, [0.5] * 200)
    assert not few.is_resolvable(0.05)
    assert many.is_resolvable(0.05)
    assert many.p_value == 1.0
