from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.commands.benchmark.benchmark_tables import Average, Benchmark, Format, render
from rageval_spec.data.evaluation import Aggregate
from rageval_spec.data.outcomes import Interval, Note
from rageval_spec.pipeline.execution.runs import Timing
from rageval_spec.pipeline.planning.plan import SystemFailure
from rageval_spec.plugin import MetricInfo
from rageval_spec.runner import RunOutcome
from tests.reports.golden import assert_golden
from tests.sample_evaluation import HOSTILE, make_evaluation

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
    for aggregate in benchmark.evaluation.aggregates:
        assert aggregate.mean is not None and aggregate.interval is not None
        assert text.count(f"{aggregate.mean:.3f}") >= len(DATASETS) + 1
        assert text.count(f"[{aggregate.interval.low:.3f}, {aggregate.interval.high:.3f}]") >= len(DATASETS)
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
    best = re.search(r"\x1b\[1m0\.512\S*(.*?)\[0\.", text)
    assert best and "\x1b[1;2m" in best[1], "the interval beside the best number is bold, too"
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
