from __future__ import annotations

import csv
import itertools
import json
import math
import random
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.commands.benchmark import benchmark_tables as benchmark
from rageval_spec.commands.benchmark.benchmark_tables import Average, Benchmark, Format, average_datasets, render
from rageval_spec.commands.benchmark.system_arguments import build_tree, load_spec
from rageval_spec.data.evaluation import Aggregate, Evaluation
from rageval_spec.data.outcomes import Interval, Note
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.execution.runs import Timing
from rageval_spec.pipeline.planning.plan import SystemFailure
from rageval_spec.plugin import MetricInfo
from rageval_spec.runner import Options, RunOutcome
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.aggregation import aggregate
from tests.reports.golden import assert_golden
from tests.sample_evaluation import HOSTILE, make_evaluation
from tests.tiny import Counting, Install, install, write_collection

DATASETS = ("arguana", "climate-fever", "dbpedia-entity", "fiqa", "nfcorpus", "quora", "scidocs", "scifact")
METRICS = {"ndcg@10": (0.41234, 0.48765, 0.51239), "recall@100": (0.78125, 0.86250, 0.90625)}
INFOS = {name: MetricInfo("", "", (), "") for name in METRICS}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)


def make_benchmark(datasets: tuple[str, ...] = ("scifact", "nfcorpus"), **changes: Any) -> Benchmark:
    """A benchmark of three systems. The last is a hybrid of the others."""
    evaluation = replace(make_evaluation(datasets, metrics=METRICS), **{"notes": (), **changes})
    averages = tuple(
        Average(system, metric, mean, Interval(mean * 0.95, mean * 1.05), mean - means[0], 0.01, 0.02 + 0.02 * index)
        if index
        else Average(system, metric, mean, Interval(mean * 0.95, mean * 1.05))
        for metric, means in METRICS.items()
        for index, (system, mean) in enumerate(zip(evaluation.systems, means, strict=True))
    )
    timings = tuple(
        timing
        for number, dataset in enumerate(datasets)
        for timing in (
            Timing(dataset, "bm25", 1.234, 1.234, 5183, 300, number == 0, 0),
            Timing(dataset, "dense", 61.5, 61.5, 5183, 300, False, 5000 if number == 0 else 0),
            Timing(dataset, "hybrid", 0.06, 62.794, 5183, 0, False, 0),
        )
    )
    outcome = RunOutcome(evaluation, (), (), (), timings=timings)
    return Benchmark(outcome, averages if len(datasets) > 1 else (), INFOS, frozenset({"hybrid"}))


def make_broken() -> Benchmark:
    """The same benchmark, but `dense` failed on nfcorpus."""
    whole = make_benchmark()
    lost = ("nfcorpus", "dense")
    aggregates = tuple(
        Aggregate(*lost, a.metric, None, None, 0, a.total) if (a.dataset, a.system) == lost else a
        for a in whole.evaluation.aggregates
    )
    comparisons = tuple(c for c in whole.evaluation.comparisons if (c.dataset, c.system) != lost)
    failure = SystemFailure(*lost, "the model is no encoder", ValueError("the model is no encoder"))
    notes = (Note("failed", failure.message, *lost),)
    evaluation = replace(whole.evaluation, aggregates=aggregates, comparisons=comparisons, notes=notes)
    timings = tuple(t for t in whole.outcome.timings if (t.dataset, t.system) != lost)
    outcome = replace(whole.outcome, evaluation=evaluation, failures=(failure,), timings=timings)
    return replace(whole, outcome=outcome, averages=tuple(a for a in whole.averages if a.system != "dense"))


def show(benchmark: Benchmark, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return render(benchmark, "text").decode()


def row(text: str, system: str, number: int = 0) -> str:
    """A system's row, with single spaces."""
    lines = [line for line in text.splitlines() if line.startswith(f"{system} ")]
    return " ".join(lines[number].removeprefix(system).split())


# Text


@pytest.mark.parametrize(
    ("name", "width", "datasets"), [("benchmark.txt", 100, DATASETS[-2:]), ("benchmark_wide.txt", 80, DATASETS)]
)
def test_golden(name: str, width: int, datasets: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert_golden(name, show(make_benchmark(datasets), width, monkeypatch).encode())


def test_golden_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_golden("benchmark_broken.txt", show(make_broken(), 100, monkeypatch).encode())


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200, 300])
def test_no_number_is_cut_off(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = make_benchmark(DATASETS)
    text = show(benchmark, width, monkeypatch)
    assert max(map(len, text.splitlines())) <= width
    for cell in benchmark.evaluation.aggregates:
        assert cell.mean is not None and cell.interval is not None
        assert text.count(f"{cell.mean:.3f}") >= len(DATASETS) + 1
        assert text.count(f"[{cell.interval.low:.3f}, {cell.interval.high:.3f}]") >= len(DATASETS)
    assert all(dataset in text for dataset in DATASETS)
    assert "…" not in text


def test_a_failed_system_shows_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    text = show(make_broken(), 120, monkeypatch)
    assert row(text, "dense") == "0.488 [0.439, 0.536] error –"
    assert row(text, "hybrid").endswith(" 0.512 [0.487, 0.538]")
    assert row(text, "dense", 2) == "61.5 s † 84.3/s error"
    assert text.count("dense on nfcorpus: the model is no encoder") == 1


def test_marks_compare_with_the_first_system(monkeypatch: pytest.MonkeyPatch) -> None:
    text = show(make_benchmark(), 120, monkeypatch)
    assert row(text, "bm25").endswith(" 0.412 [0.392, 0.433]")
    assert row(text, "dense").endswith(" 0.488 ▲ [0.463, 0.512]")
    assert row(text, "hybrid") == "0.512 ▲ [0.461, 0.564] 0.512 ▲ [0.461, 0.564] 0.512 [0.487, 0.538]"  # p = 0.06
    assert "significantly higher or lower than bm25 (paired permutation test, Holm-adjusted p < 0.05)" in text
    indifferent = make_benchmark(comparisons=())
    quiet = replace(
        indifferent, averages=tuple(replace(a, p_adjusted=a.p_adjusted and 0.5) for a in indifferent.averages)
    )
    assert "none differs significantly from bm25" in show(quiet, 120, monkeypatch)


def test_a_single_dataset_has_no_average(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "average" not in show(make_benchmark(("scifact",)), 100, monkeypatch)


def test_the_legend_explains_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = make_benchmark()
    text = show(benchmark, 120, monkeypatch)
    assert row(text, "bm25", 2) == "1.23 s * 4,200/s 1.23 s 4,200/s"
    assert row(text, "hybrid", 2) == "62.8 s 82.5/s 62.8 s 82.5/s"
    text = " ".join(text.split())
    assert "* from the store; the seconds were measured when it was retrieved" in text
    assert "seconds of hybrid: including the systems whose rankings are read" in text
    stored = tuple(replace(timing, stored=True) for timing in benchmark.outcome.timings)
    text = show(replace(benchmark, outcome=replace(benchmark.outcome, timings=stored)), 120, monkeypatch)
    assert "*" not in text
    assert "all results are from the store; the seconds were measured when they were retrieved" in text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0 s"),
        (0.00001, "0.0000 s"),
        (0.01234, "0.0123 s"),
        (9.996, "10.0 s"),
        (99.97, "100 s"),
        (12345.6, "12,346 s"),
    ],
)
def test_seconds_have_three_digits(seconds: float, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = make_benchmark(("scifact",))
    timing = Timing("scifact", "bm25", seconds, seconds, 0, 0, False, 0)
    text = show(replace(benchmark, outcome=replace(benchmark.outcome, timings=(timing,))), 100, monkeypatch)
    assert row(text, "bm25", 2) == shown


def test_a_note_on_several_systems_appears_once(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tuple(Note("self_retrieval", "3 documents were dropped", "scifact", system) for system in ("bm25", "dense"))
    text = show(make_benchmark(notes=(*notes, Note("limited", "the first 9 queries"))), 100, monkeypatch)
    assert "note scifact, bm25, dense: 3 documents were dropped\n" in text
    assert "note the first 9 queries\n" in text


def test_only_terminals_get_bold_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in show(make_benchmark(), 100, monkeypatch)
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = show(make_benchmark(), 120, monkeypatch)
    assert "\x1b[1m0.512\x1b[0m" in text
    assert "\x1b[1m0.412" not in text
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in show(make_benchmark(), 100, monkeypatch)


@pytest.mark.parametrize("form", ["text", "markdown", "json", "csv"])
def test_hostile_names_break_nothing(form: Format) -> None:
    evaluation = make_evaluation((HOSTILE,), (HOSTILE,), {HOSTILE: (0.5,)})
    timings = (Timing(HOSTILE, HOSTILE, 1.0, 1.0, 5, 5, False, 0),)
    failure = SystemFailure(HOSTILE, HOSTILE, HOSTILE, ValueError())
    outcome = RunOutcome(evaluation, (), (), (failure,), timings=timings)
    text = render(Benchmark(outcome, (), {HOSTILE: MetricInfo("", "", (), "")}, frozenset()), form).decode()
    if form in ("text", "markdown"):
        assert "\x1b" not in text and "\x00" not in text
    if form == "markdown":
        assert "<script>" not in re.sub(r"``.*?``", "", text)
        tables = [line for line in text.splitlines() if line.startswith("|")]
        assert {len(re.split(r"(?<!\\)\|", line)) for line in tables} == {4}


# Markdown, JSON, CSV


def test_markdown_golden() -> None:
    assert_golden("benchmark.md", render(make_broken(), "markdown"))


def test_json_contains_averages_and_timings() -> None:
    report = json.loads(render(make_broken(), "json"))
    assert report["evaluation"]["systems"] == ["bm25", "dense", "hybrid"]
    assert [average["system"] for average in report["averages"]] == ["bm25", "hybrid"] * 2
    timing = next(t for t in report["timings"] if t["system"] == "hybrid")
    assert timing["documents_per_second"] == pytest.approx(5183 / 62.794)


def test_csv_has_a_row_for_each_cell_and_each_average() -> None:
    rows = list(csv.DictReader(render(make_broken(), "csv").decode().splitlines()))
    assert len(rows) == 2 * (3 * 2 + 2)
    cells: dict[tuple[str, str], Mapping[str, str]] = {
        (row["system"], row["dataset"]): row for row in rows if row["metric"] == "ndcg@10"
    }
    lost = cells["dense", "nfcorpus"]
    assert (lost["mean"], lost["scored"], lost["error"]) == ("", "0", "the model is no encoder")
    assert (lost["seconds"], lost["stored"]) == ("", "")
    first = cells["bm25", "scifact"]
    assert (first["mean"], first["seconds"], first["stored"], first["error"]) == ("0.41234", "1.234", "true", "")
    assert (cells["bm25", ""]["mean"], cells["hybrid", ""]["p_adjusted"]) == ("0.41234", "0.06")


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
