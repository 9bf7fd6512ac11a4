"""Measure the history: listing and drawing many records, and recording a large evaluation.

    python benches/history.py [--records 10000] [--questions 10000] [--metrics 20] [--times 5]

Makes a SQLite file with this many records, each with the number and the interval of every metric, and times the
commands as processes of their own, so that Python's start is part of them. Then it records one evaluation with this
many questions. Each time is the median; a target beside it is missed if the last column says so.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl

from rageval_spec.data.datasets import Fingerprint, Fingerprints
from rageval_spec.data.evaluation import Aggregate, Evaluation, Provenance
from rageval_spec.data.outcomes import Interval
from rageval_spec.history.database import StoredRecord, open_history
from rageval_spec.history.evaluation_records import build_record
from rageval_spec.plugin.budget import Cost
from rageval_spec.store.checkout import Checkout

BATCH = 500
START = datetime(2025, 1, 1, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        fill(path, options.records, options.metrics)
        print(f"{options.records:,} records, {options.metrics} metrics, {path.stat().st_size / 1e6:.0f} MB")
        print(f"{'':<32}  seconds  target")
        measure_commands(path, options.records, options.times)
        measure_writing(Path(folder), options.questions, options.metrics, options.times)


def fill(path: Path, records: int, metrics: int) -> None:
    """Write records, one every hour, whose level drops in the middle, in batches."""
    dice = random.Random(1)
    with open_history(path) as history:
        for first in range(0, records, BATCH):
            numbers = range(first, min(first + BATCH, records))
            history.add([make_record(number, number >= records // 2, metrics, dice) for number in numbers])


def make_record(number: int, is_late: bool, metrics: int, dice: random.Random) -> StoredRecord:
    names = [f"metric_{index}" for index in range(metrics)]
    level = 0.7 - 0.05 * is_late
    evaluation = Evaluation(
        name="support-bot",
        provenance=Provenance(spec_digest="0" * 64),
        datasets=("golden",),
        systems=("app",),
        metrics=tuple(names),
        aggregates=tuple(aggregate(name, level + dice.gauss(0, 0.02)) for name in names),
        values=make_values(1, names[:1]),
    )
    return record_evaluation(evaluation, number)


def record_evaluation(evaluation: Evaluation, number: int) -> StoredRecord:
    checkout = Checkout(f"{number:040x}", "main", is_dirty=False)
    ci = {"system": "github", "run": str(number)}
    time, cost = START + timedelta(hours=number), Cost(0.4, "known")
    return build_record(evaluation, f"{number:032x}", time, checkout=checkout, ci=ci, cost=cost, seconds=60.0)


def aggregate(metric: str, mean: float) -> Aggregate:
    return Aggregate("golden", "app", metric, mean, Interval(mean - 0.03, mean + 0.03), 100, 100)


def make_values(questions: int, metrics: list[str]) -> pl.DataFrame:
    dice = random.Random(2)
    rows: Iterator[tuple[str, str]] = ((metric, f"q{number}") for metric in metrics for number in range(questions))
    found = [(metric, query_id, dice.random()) for metric, query_id in rows]
    frame = pl.DataFrame(found, schema=["metric", "query_id", "value"], orient="row")
    return frame.select(
        pl.lit("golden").alias("dataset"),
        pl.lit("app").alias("system"),
        "metric",
        "query_id",
        "value",
        pl.lit("scored").alias("status"),
        pl.lit(None, dtype=pl.String).alias("reason"),
    )


def measure_commands(path: Path, records: int, times: int) -> None:
    page = path.with_name("trend.html")
    commands = {
        "list --limit ALL": (["list", "--limit", str(records)], 0.3),
        "list": (["list"], 0.3),
        "trend METRIC": (["trend", "metric_0"], 2.0),
        "trend METRIC --html": (["trend", "metric_0", "--html", str(page)], 2.0),
        "trend": (["trend"], None),
        "export": (["export"], None),
    }
    for name, (arguments, target) in commands.items():
        command = [sys.executable, "-m", "rageval_spec", "history", *arguments, "--history", str(path)]
        show(f"history {name}", measure(partial(run, command), times), target)


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure_writing(folder: Path, questions: int, metrics: int, times: int) -> None:
    """The time from a finished evaluation to its record in a file that has none yet."""
    names = [f"metric_{index}" for index in range(metrics)]
    ids = [f"q{number}" for number in range(questions)]
    marks = Fingerprints({"golden": {query_id: Fingerprint("a" * 16, "b" * 16, None) for query_id in ids}})
    evaluation = Evaluation(
        name="support-bot",
        provenance=Provenance(spec_digest="0" * 64),
        datasets=("golden",),
        systems=("app",),
        metrics=tuple(names),
        aggregates=tuple(aggregate(name, 0.5) for name in names),
        values=make_values(questions, names),
        load_fingerprints=lambda: marks,
    )
    numbers = iter(range(times))

    def write() -> None:
        number = next(numbers)
        with open_history(folder / f"{number}.db") as history:
            history.add([record_evaluation(evaluation, number)])

    show(f"record {questions:,} x {metrics} values", measure(write, times), 1.0)


def measure(work: Callable[[], None], times: int) -> float:
    """The median time."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def show(name: str, seconds: float, target: float | None) -> None:
    wanted = "" if target is None else f"{target:6.1f}{'  missed' if seconds > target else ''}"
    print(f"{name:<32}  {seconds:7.3f}  {wanted}", flush=True)


if __name__ == "__main__":
    main()
