"""The averages over datasets, their intervals and tests."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.commands.benchmark import benchmark_tables as benchmark
from rageval_spec.commands.benchmark.benchmark_tables import Average, Benchmark, average_datasets
from rageval_spec.commands.benchmark.system_arguments import build_tree, load_spec
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.execution.runs import Timing
from rageval_spec.plugin import MetricInfo
from rageval_spec.runner import Options
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.aggregation import aggregate
from tests.tiny import Counting, Install, install, write_collection

__all__ = ["install"]

Numbers = Mapping[str, Mapping[str, Sequence[float | None]]]
STATISTICS = StatisticsNode(resamples=4000, permutations=5000, seed=3)
MEAN = MetricInfo("", "", (), "")


def evaluate(numbers: Numbers, info: MetricInfo = MEAN, settings: StatisticsNode = STATISTICS) -> Evaluation:
    """An evaluation of one metric, from system -> dataset -> one value per query (None: not scored)."""
    rows = [
        (dataset, system, "m", f"q{query}", value, "unscorable" if value is None else "scored", None)
        for system, datasets in numbers.items()
        for dataset, values in datasets.items()
        for query, value in enumerate(values)
    ]
    columns = ["dataset", "system", "metric", "query_id", "value", "status", "reason"]
    types = [pl.Float64 if column == "value" else pl.String for column in columns]
    values = pl.DataFrame(rows, schema=dict(zip(columns, types, strict=True)), orient="row")
    aggregates = aggregate(values, {"m": info}, settings)
    datasets = tuple(next(iter(numbers.values())))
    return Evaluation("made", datasets, tuple(numbers), ("m",), aggregates, values=values)


def averages_of(numbers: Numbers, info: MetricInfo = MEAN, settings: StatisticsNode = STATISTICS) -> dict[str, Average]:
    averages = average_datasets(evaluate(numbers, info, settings), {"m": info}, settings)
    return {average.system: average for average in averages}


def draw(count: int, seed: int) -> list[float]:
    source = random.Random(seed)
    return [source.choice([0.0, 0.0, source.random(), 1.0]) for _ in range(count)]


# The average


def test_every_dataset_counts_the_same() -> None:
    found = averages_of({"a": {"small": [1.0, 0.0], "large": [0.2, 0.3, 0.4, 0.3]}})
    assert found["a"].mean == pytest.approx((0.5 + 0.3) / 2)
    assert (found["a"].difference, found["a"].p_adjusted) == (None, None)


def test_one_dataset_has_no_average() -> None:
    assert averages_of({"a": {"only": [1.0, 0.0]}}) == {}


def test_a_system_without_a_mean_on_some_dataset_has_no_average() -> None:
    found = averages_of({"a": {"x": [1.0, 0.5], "y": [0.5, 0.0]}, "b": {"x": [1.0, 0.5], "y": [None, None]}})
    assert list(found) == ["a"]


def test_nothing_is_compared_if_the_first_system_has_no_average() -> None:
    found = averages_of({"a": {"x": [1.0, 0.5], "y": [None, None]}, "b": {"x": [1.0, 0.5], "y": [0.5, 0.0]}})
    assert list(found) == ["b"]
    assert found["b"].p_adjusted is None


@pytest.mark.parametrize("statistic", ["sum", "geometric mean", "p95"])
def test_only_means_are_averaged(statistic: Any) -> None:
    assert averages_of({"a": {"x": [1.0, 0.5], "y": [0.5, 0.1]}}, replace(MEAN, statistic=statistic)) == {}


def test_queries_without_a_value_are_excluded() -> None:
    found = averages_of({"a": {"x": [1.0, None, 0.0], "y": [0.5, 0.0]}, "b": {"x": [0.5, 0.5, 0.5], "y": [1.0, None]}})
    assert found["a"].mean == pytest.approx((0.5 + 0.25) / 2)
    assert found["b"].mean == pytest.approx((0.5 + 1.0) / 2)
    # both have a value for q0 and q2 of x and for q0 of y
    assert found["b"].difference == pytest.approx(((0.5 - 1.0 + 0.5 - 0.0) / 2 + (1.0 - 0.5)) / 2)


# Its interval


def test_the_interval_comes_from_those_of_the_datasets() -> None:
    """By hand: distances from independent means add up as squares, and their average divides by their number."""
    datasets = {"x": draw(30, 1), "y": draw(90, 2), "z": [0.9, 0.8, 0.9, 0.7, 1.0]}
    found = averages_of({"a": datasets})["a"]
    own = [averages_of({"a": {"one": values, "two": values}})["a"] for values in datasets.values()]
    below = [(one.mean - one.interval.low) * math.sqrt(2) for one in own if one.interval is not None]
    above = [(one.interval.high - one.mean) * math.sqrt(2) for one in own if one.interval is not None]
    assert found.interval is not None
    assert found.interval.low == pytest.approx(found.mean - math.hypot(*below) / 3)
    assert found.interval.high == pytest.approx(found.mean + math.hypot(*above) / 3)
    assert found.interval.confidence == 0.95


def test_datasets_that_are_all_right_are_not_certain() -> None:
    found = averages_of({"a": {"x": [1.0] * 5, "y": [1.0] * 5}})["a"]
    assert found.interval is not None
    assert found.interval.low == pytest.approx(1 - (1 - 0.025**0.2) / math.sqrt(2))
    assert found.interval.high == 1.0


def test_the_interval_is_as_wide_as_the_variance_of_a_stratified_mean() -> None:
    datasets = [draw(400, 5), draw(700, 6)]
    interval = averages_of({"a": dict(zip("xy", datasets, strict=True))}, settings=replace_resamples(40_000))[
        "a"
    ].interval
    assert interval is not None
    variance = sum(statistics.pvariance(values) / len(values) for values in datasets) / 4
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=0.03)


def replace_resamples(resamples: int) -> StatisticsNode:
    return STATISTICS.model_copy(update={"resamples": resamples})


def test_an_interval_does_not_depend_on_other_systems() -> None:
    first: dict[str, Sequence[float | None]] = {"x": draw(20, 1), "y": draw(30, 2)}
    others: dict[str, dict[str, Sequence[float | None]]] = {
        "b": {"x": draw(20, 3), "y": draw(30, 4)},
        "c": {"x": [*draw(19, 5), None], "y": draw(30, 6)},
    }
    alone = averages_of({"a": first})["a"]
    assert averages_of({"a": first, **others})["a"].interval == alone.interval
    assert averages_of({**others, "a": first})["a"].interval == alone.interval


def test_a_dataset_with_one_query_gives_no_interval() -> None:
    assert averages_of({"a": {"x": [0.5], "y": [0.5, 0.1]}})["a"].interval is None


# Its test


def exact_p_value(differences: Sequence[Sequence[float]]) -> float:
    """The share of sign patterns whose average is at least as far from 0."""
    weighted = [d / len(part) for part in differences for d in part]
    observed = abs(sum(weighted))
    patterns = list(itertools.product((1, -1), repeat=len(weighted)))
    far = sum(abs(sum(s * d for s, d in zip(signs, weighted, strict=True))) >= observed - 1e-12 for signs in patterns)
    return far / len(patterns)


def test_the_difference_is_tested_with_the_weights_of_the_datasets() -> None:
    base = {"x": [0.1, 0.4, 0.3], "y": [0.2, 0.5, 0.6, 0.9, 0.3, 0.1, 0.4]}
    other = {"x": [0.6, 0.7, 0.6], "y": [0.1, 0.7, 0.5, 0.9, 0.5, 0.4, 0.1]}
    found = averages_of({"a": base, "b": other})["b"]
    differences = [[o - b for o, b in zip(other[key], base[key], strict=True)] for key in base]
    assert found.difference == pytest.approx(sum(map(statistics.fmean, differences)) / 2)
    assert found.p_value == pytest.approx(exact_p_value(differences))


def test_p_values_are_adjusted_over_all_averages() -> None:
    base = {"x": draw(12, 1), "y": draw(15, 2)}
    better = {key: [min(1.0, value + 0.2) for value in values] for key, values in base.items()}
    found = averages_of({"a": base, "b": better, "c": base})
    assert found["b"].p_value is not None and found["b"].p_value < 0.01
    assert found["b"].p_adjusted == pytest.approx(2 * found["b"].p_value)
    assert (found["c"].difference, found["c"].p_adjusted) == (0.0, 1.0)


def test_a_metric_without_a_direction_is_not_tested() -> None:
    numbers = {"a": {"x": [1.0, 0.0], "y": [0.0, 0.0]}, "b": {"x": [1.0, 1.0], "y": [1.0, 1.0]}}
    assert averages_of(numbers, replace(MEAN, higher_is_better=None))["b"].p_value is None


# Through the runner


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which contains the BEIR folders `fruit` and `salad`."""
    for name in ("fruit", "salad"):
        write_collection(tmp_path / "written").rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, *systems: str, **more: Any) -> Benchmark:
    datasets, overrides = more.pop("datasets", ("fruit", "salad")), more.pop("overrides", ())
    spec = load_spec(build_tree(datasets, systems, ("rr", "num_ret")), overrides)
    return benchmark.run(spec, Options(output=folder / "out", one_at_a_time=True, **more))


def test_a_benchmark_is_an_evaluation_with_averages_and_timings(folder: Path) -> None:
    done = run(folder, "bm25", "file", overrides=("systems.file.path=fruit/tied.run",))
    assert (done.evaluation.systems, done.outcome.exit_code) == (("bm25", "file"), 0)
    means = [done.evaluation.aggregate(dataset, "file", "rr") for dataset in ("fruit", "salad")]
    average = done.average("file", "rr")
    assert average is not None
    assert [mean and mean.mean for mean in means] == [0.625, 0.625]
    assert average.mean == 0.625
    assert done.average("file", "num_ret") is None
    timing = done.timing("salad", "bm25")
    assert timing is not None
    assert (timing.documents, timing.queries, timing.stored) == (6, 4, False)
    assert timing.seconds > 0


def test_a_second_run_computes_nothing_and_reports_the_seconds_of_the_first(folder: Path) -> None:
    first, second = run(folder, "bm25"), run(folder, "bm25")
    assert (folder / ".rageval" / "store").is_dir()
    assert [t.seconds for t in second.outcome.timings] == [t.seconds for t in first.outcome.timings]
    assert all(timing.stored for timing in second.outcome.timings)
    assert second.averages == first.averages


SETTING = ("systems.counting.answer=d1",)


def test_the_systems_that_a_hybrid_reads_run_once(folder: Path, install: Install) -> None:
    install("systems", "counting", Counting)
    Counting.asked.clear()
    done = run(folder, "counting", "bm25", "hybrid", datasets=("fruit",), overrides=SETTING, no_store=True)
    assert Counting.asked == ["counting"]
    assert done.evaluation.systems == ("counting", "bm25", "hybrid")


# Speed


def test_documents_per_second() -> None:
    timings = (
        Timing("d", "bm25", 2.0, 2.0, 100, 5, False, 0),
        Timing("d", "hybrid", 0.5, 2.5, 100, 0, False, 0),
        Timing("d", "file", 0.5, 0.5, 0, 0, False, 0),
        Timing("d", "swift", 0.0, 0.0, 100, 5, False, 0),
    )
    outcome: Any = type("Outcome", (), {"timings": timings})
    done = Benchmark(outcome, (), {}, frozenset({"hybrid"}))
    assert [done.documents_per_second(timing) for timing in timings] == [50.0, 40.0, None, None]


def test_the_lowest_mean_is_best_if_lower_is_better() -> None:
    outcome: Any = None
    infos = {"up": MEAN, "down": replace(MEAN, higher_is_better=False), "none": replace(MEAN, higher_is_better=None)}
    done = Benchmark(outcome, (), infos, frozenset())
    assert [done.best(metric, [0.1, None, 0.3]) for metric in infos] == [0.3, 0.1, None]
    assert done.best("up", [None, None]) is None


def test_the_average_of_datasets_with_clusters_is_refused(tmp_path: Path) -> None:
    folders = [f"{name}={write_collection(tmp_path / name)}" for name in ("one", "two")]
    spec = load_spec(build_tree(folders), ("cluster=source",))
    with pytest.raises(UsageError, match="counts every question on its own and the same; remove 'cluster'"):
        benchmark.run(spec, Options())
