"""Gaps are found where a slice really is worse, at a rate that Holm's correction promises elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from rageval_spec import kernels
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.weak_slices import LEAST_QUERIES, Members, find_gaps

STATISTICS = StatisticsNode(resamples=1000, permutations=2000)


@dataclass(frozen=True)
class Metric:
    statistic: str = "mean"
    higher_is_better: bool | None = True


def table(values: np.ndarray, metric: str = "f1", system: str = "s", dataset: str = "d") -> pl.DataFrame:
    ids = [f"q{number:04}" for number in range(len(values))]
    return pl.DataFrame({"query_id": ids, "value": values}).select(
        pl.lit(dataset).alias("dataset"),
        pl.lit(system).alias("system"),
        pl.lit(metric).alias("metric"),
        "query_id",
        "value",
        pl.lit("scored").alias("status"),
        pl.lit(None, dtype=pl.String).alias("reason"),
    )


def members(name: str, numbers: range, dataset: str = "d") -> Members:
    return dataset, name, [f"q{number:04}" for number in numbers]


def noise(count: int = 200, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.4, 0.8, count)


def test_a_worse_slice_is_found_with_its_numbers() -> None:
    values = noise()
    values[:40] -= 0.2
    slices = [members("hard", range(40)), members("easy", range(40, 200)), members("any", range(100, 150))]
    (gap,) = find_gaps(table(values), slices, {"f1": Metric()}, STATISTICS)
    assert (gap.dataset, gap.system, gap.metric, gap.slice, gap.queries) == ("d", "s", "f1", "hard", 40)
    assert gap.mean == pytest.approx(values[:40].mean())
    assert gap.rest == pytest.approx(values[40:].mean())
    assert gap.difference == pytest.approx(gap.mean - gap.rest)
    assert gap.interval is not None
    assert gap.interval.low < gap.difference < gap.interval.high < 0
    (test,) = kernels.permutation_test_unpaired([(values[:40], values[40:])], permutations=2000, seed=STATISTICS.seed)
    assert gap.p_value == test.p_value
    assert gap.p_adjusted == pytest.approx(3 * gap.p_value)


@pytest.mark.parametrize(("higher_is_better", "found"), [(True, []), (False, ["slow"]), (None, [])])
def test_worse_means_in_the_direction_of_the_metric(higher_is_better: bool | None, found: list[str]) -> None:
    values = noise()
    values[:40] += 0.3
    slices = [members("slow", range(40))]
    gaps = find_gaps(table(values), slices, {"f1": Metric(higher_is_better=higher_is_better)}, STATISTICS)
    assert [gap.slice for gap in gaps] == found


def test_percentiles_and_sums_are_not_tested() -> None:
    values = noise()
    values[:40] -= 0.3
    for statistic in ("p95", "sum"):
        assert find_gaps(table(values), [members("a", range(40))], {"f1": Metric(statistic)}, STATISTICS) == ()


def test_slices_with_few_queries_are_not_tested_and_do_not_weaken_the_others() -> None:
    values = noise()
    values[:40] -= 0.2
    tiny = [members(f"tiny{at}", range(at, at + LEAST_QUERIES - 1)) for at in range(0, 100, 5)]
    (gap,) = find_gaps(table(values), [members("hard", range(40)), *tiny], {"f1": Metric()}, STATISTICS)
    assert gap.p_adjusted == gap.p_value


def test_a_large_family_still_finds_a_clear_gap() -> None:
    """With 100 permutations no p-value is below 0.0099, which Holm's correction would raise above 0.05 here."""
    values = noise(400)
    values[:40] -= 0.3
    slices = [members(f"s{at}", range(at, at + 40)) for at in range(0, 360, 10)]
    gaps = find_gaps(table(values), slices, {"f1": Metric()}, StatisticsNode(resamples=100, permutations=100))
    assert gaps[0].slice == "s0"
    assert gaps[0].p_value < 0.05 / len(slices)


def test_chance_is_seldom_taken_for_a_gap() -> None:
    """Holm's correction keeps the rate of any false gap below 5 % over all slices and metrics."""
    hits = 0
    for seed in range(60):
        values = pl.concat([table(noise(100, 3 * seed + at), metric) for at, metric in enumerate(("f1", "em"))])
        slices = [members(f"s{at}", range(at, at + 20)) for at in range(0, 80, 10)]
        hits += bool(find_gaps(values, slices, {"f1": Metric(), "em": Metric()}, STATISTICS))
    assert hits <= 8


def test_each_dataset_is_a_family() -> None:
    values = noise()
    values[:40] -= 0.2
    both = pl.concat([table(values), table(values, dataset="e")])
    slices = [members("hard", range(40)), members("hard", range(40), "e")]
    gaps = find_gaps(both, slices, {"f1": Metric()}, STATISTICS)
    assert [(gap.dataset, gap.p_adjusted == gap.p_value) for gap in gaps] == [("d", True), ("e", True)]


def test_the_largest_effect_comes_first_on_any_scale() -> None:
    small, large = noise(), noise(seed=1)
    small[:40] -= 0.15
    large[:40] -= 0.3
    values = pl.concat([table(small * 1000, "millis"), table(large)])
    gaps = find_gaps(values, [members("hard", range(40))], {"millis": Metric(), "f1": Metric()}, STATISTICS)
    assert [gap.metric for gap in gaps] == ["f1", "millis"]


def test_threads_change_nothing() -> None:
    values = noise()
    values[:40] -= 0.2
    one, two = (
        find_gaps(table(values), [members("a", range(40))], {"f1": Metric()}, STATISTICS, threads) for threads in (1, 2)
    )
    assert one == two
