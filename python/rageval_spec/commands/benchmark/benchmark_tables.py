"""Evaluates systems on BEIR folders, with averages over the datasets and timings, and shows the results as tables.

There is a table for each metric, with a row per system and a column per dataset, then one of timings.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec import kernels, registry, runner
from rageval_spec.data import arithmetic
from rageval_spec.data.evaluation import Aggregate, Evaluation
from rageval_spec.data.outcomes import Cell, Interval, Note
from rageval_spec.data.results import dump_results
from rageval_spec.dataclass import asdict, dataclass, replace
from rageval_spec.diagnostics import dump_visible
from rageval_spec.drawing.sections import HIGHER, LOWER, SIGNIFICANCE, describe_unresolved, significance_mark
from rageval_spec.drawing.view import Block, Column, Grid, Heading, Items, Span, write_markdown, write_text
from rageval_spec.errors import UsageError
from rageval_spec.libraries import np, pl
from rageval_spec.pipeline.execution.runs import Timing
from rageval_spec.plugin import Context
from rageval_spec.plugin.block_names import names_in
from rageval_spec.runner import write_report
from rageval_spec.spec import Spec
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.mean_intervals import average_means
from rageval_spec.statistics.percentiles import Summarized
from rageval_spec.wording import count_noun, format_interval, format_mean, format_number, format_percent, protect_cell

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Average:
    """A system's mean on each dataset, averaged. Every dataset counts the same, however many queries it has.

    Attributes:
        interval: from the intervals of the datasets' means; None if one of them has none, as with only one query.
        difference: from the first system's average, over the queries that are scored for both; None for the first
            system, and if nothing can be compared.
        p_value: from a permutation test of that difference in which every query keeps the weight of its dataset.
        p_adjusted: the p-value after Holm's correction over the averages of all metrics and systems.
    """

    system: str
    metric: str
    mean: float
    interval: Interval | None = None
    difference: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None


@dataclass(frozen=True)
class Benchmark:
    """The results of a benchmark.

    Attributes:
        outcome: the outcome of the evaluation.
        averages: averages of metrics that are means, for systems with a mean on every dataset. Empty for one dataset.
        infos: the metrics by their names in tables.
        derived: the systems that rank what other systems retrieved.
    """

    outcome: runner.RunOutcome
    averages: tuple[Average, ...]
    infos: Mapping[str, Summarized]
    derived: frozenset[str]

    @property
    def evaluation(self) -> Evaluation:
        return self.outcome.evaluation

    def average(self, system: str, metric: str) -> Average | None:
        return next((one for one in self.averages if (one.system, one.metric) == (system, metric)), None)

    def timing(self, dataset: str, system: str) -> Timing | None:
        """How long one system took on one dataset, or None if it failed."""
        of = (dataset, system)
        return next((one for one in self.outcome.timings if (one.dataset, one.system) == of), None)

    def documents_per_second(self, timing: Timing) -> float | None:
        """Documents in the corpus per second of ranking, including the systems that the ranking is made from.

        None for a system that searches no corpus, for example one that reads a file.
        """
        return timing.documents / timing.total if timing.documents and timing.total > 0 else None

    def failure(self, dataset: str, system: str, metric: str) -> str | None:
        """Why there is no value, if something failed."""
        cells = ((f, f.dataset == dataset and f.system == system) for f in self.outcome.failures)
        return next((f.message for f, here in cells if here and f.metric in (None, metric)), None)

    def best(self, metric: str, means: Sequence[float | None]) -> float | None:
        """The best of several means; None if there are none, or if the metric has no direction."""
        known = [mean for mean in means if mean is not None]
        higher = self.infos[metric].higher_is_better
        return None if not known or higher is None else max(known) if higher else min(known)


def run(spec: Spec, options: runner.Options) -> Benchmark:
    """Evaluate the spec's systems. The results have no samples, so that no corpus is read for them.

    Raises:
        UsageError: questions belong together or are weighted, and there are several datasets to average.
    """
    if spec.designs and len(spec.datasets) > 1:
        raise UsageError(
            "the average over datasets counts every question on its own and the same; remove 'cluster', 'weight' and "
            "'weights', benchmark one dataset, or write a spec for `rageval-spec run`"
        )
    outcome = runner.run(replace(spec, samples="none"), options)
    infos: dict[str, Summarized] = {
        metric.name: registry.load("metrics", metric.node.use)(metric.node, Context(metric.name))
        for metric in spec.metrics
    }
    derived = frozenset(name for name, node in spec.systems.items() if names_in(node, "systems"))
    averages = average_datasets(outcome.evaluation, infos, spec.statistics, spec.limits.threads)
    return Benchmark(outcome, averages, infos, derived)


def average_datasets(
    evaluation: Evaluation, metrics: Mapping[str, Summarized], statistics: StatisticsNode, threads: int | None = None
) -> tuple[Average, ...]:
    """The averages over all datasets, ordered by metric and then by system."""
    if len(evaluation.datasets) < 2:
        return ()
    cells: dict[tuple[str, str], list[tuple[float, Interval | None]]] = {}
    for metric in evaluation.metrics:
        for system in evaluation.systems if metrics[metric].statistic == "mean" else ():
            found = (evaluation.aggregate(dataset, system, metric) for dataset in evaluation.datasets)
            means = [(one.mean, one.interval) for one in found if one is not None and one.mean is not None]
            if len(means) == len(evaluation.datasets):
                cells[system, metric] = means
    tests = _compare(evaluation, [*cells], metrics, statistics, threads)
    # The interval of an average is from those of the datasets' means: the queries of each are drawn on their own.
    return tuple(
        Average(*cell, arithmetic.average(mean for mean, _ in means), average_means(means), *tests.get(cell, ()))
        for cell, means in cells.items()
    )


def _compare(
    evaluation: Evaluation,
    cells: Sequence[tuple[str, str]],
    metrics: Mapping[str, Summarized],
    statistics: StatisticsNode,
    threads: int | None,
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """The difference from the first system, p-value and adjusted p-value of each average that can be compared.

    The difference between averages is a sum over queries: each query's difference, divided by the number of queries in
    its dataset and by the number of datasets. The paired permutation test flips the signs of these terms.
    """
    first = evaluation.systems[0]
    compared = [
        cell
        for cell in cells
        if cell[0] != first and (first, cell[1]) in cells and metrics[cell[1]].higher_is_better is not None
    ]
    weighted = {cell: _weigh(evaluation, *cell) for cell in compared}
    usable = {cell: differences for cell, differences in weighted.items() if differences is not None}
    tests = kernels.permutation_test_paired(
        list(usable.values()), permutations=statistics.permutations, seed=statistics.seed, threads=threads
    )
    p_values = [test.p_value for test in tests]
    rows = zip(usable.items(), p_values, kernels.holm(p_values), strict=True)
    return {cell: (float(differences.sum()), p, adjusted) for (cell, differences), p, adjusted in rows}


def _weigh(evaluation: Evaluation, system: str, metric: str) -> NDArray[np.float64] | None:
    """The weighted differences from the first system; None if a dataset has no query that is scored for both."""
    scored = evaluation.values.filter((pl.col("status") == "scored") & (pl.col("metric") == metric))
    base = scored.filter(pl.col("system") == evaluation.systems[0]).select("dataset", "query_id", base="value")
    own = scored.filter(pl.col("system") == system).join(base, on=["dataset", "query_id"]).sort("query_id")
    parts = own.select("dataset", difference=pl.col("value") - pl.col("base")).partition_by("dataset", as_dict=True)
    arrays = [parts[(dataset,)]["difference"].to_numpy() for dataset in evaluation.datasets if (dataset,) in parts]
    if len(arrays) < len(evaluation.datasets):
        return None
    return np.concatenate([array / (len(array) * len(arrays)) for array in arrays])


Format = Literal["text", "markdown", "json", "csv"]

FORMAT_VERSION = 1
DIGITS = 3
"""Digits after the decimal point. The intervals beside the means are too wide for more to matter."""
AVERAGE = "average"
ERROR, NOTHING = "error", "–"
STORED, REUSED = "*", "†"
_NOTES_SHOWN = 20


def render(benchmark: Benchmark, form: Format) -> bytes:
    if form == "text":
        return write_text(draw_benchmark(benchmark))
    if form == "markdown":
        return write_markdown(draw_benchmark(benchmark)).encode("utf-8", "backslashreplace")
    return _to_json(benchmark) if form == "json" else _to_csv(benchmark)


def save(benchmark: Benchmark, folder: Path) -> list[Path]:
    """Write the benchmark to a folder in every format except text. Returns the files."""
    forms: dict[str, Format] = {"benchmark.md": "markdown", "benchmark.json": "json", "benchmark.csv": "csv"}
    return [write_report(folder / name, render(benchmark, form)) for name, form in forms.items()]


def draw_benchmark(benchmark: Benchmark) -> Iterator[Block]:
    """A table for each metric, with a row per system and a column per dataset, one of timings, and what to know."""
    for metric in benchmark.evaluation.metrics:
        yield from _draw_board(benchmark, metric, _list_columns(benchmark, metric), _describe_marks(benchmark, metric))
    if benchmark.outcome.timings:
        systems = benchmark.evaluation.systems
        columns = [
            (dataset, [_draw_timing(benchmark, dataset, system) for system in systems])
            for dataset in benchmark.evaluation.datasets
        ]
        title = "seconds to retrieve, documents per second"
        yield from _draw_board(benchmark, title, columns, _describe_timings(benchmark))
    if remarks := [*_list_remarks(benchmark)]:
        yield Items(remarks)


def _draw_board(
    benchmark: Benchmark,
    title: str,
    columns: Iterable[tuple[str, Sequence[Sequence[Span]]]],
    legend: Iterable[tuple[str, str]],
) -> Iterator[Block]:
    yield Heading(title)
    systems = Column("system", list(benchmark.evaluation.systems), "name")
    yield Grid([systems, *(Column(name, cells, "number", is_fixed=False) for name, cells in columns)])
    if lines := [(sign, sentence, "dim") for sign, sentence in legend]:
        yield Items(lines)


def _list_columns(benchmark: Benchmark, metric: str) -> Iterator[tuple[str, list[list[Span]]]]:
    """The cells of each dataset and of the average, the best number of each column bold."""
    systems = benchmark.evaluation.systems
    columns = {
        dataset: [_draw_cell(benchmark, dataset, system, metric) for system in systems]
        for dataset in benchmark.evaluation.datasets
    }
    averages = [benchmark.average(system, metric) for system in systems]
    if any(averages):
        columns[AVERAGE] = [_draw_average(one) for one in averages]
    for name, cells in columns.items():
        best = benchmark.best(metric, [mean for _, mean in cells]) if len(cells) > 1 else None
        is_best = [mean is not None and mean == best for _, mean in cells]
        yield (
            name,
            [
                [cell[0]._replace(style="bold"), *cell[1:]] if is_bold else cell
                for (cell, _), is_bold in zip(cells, is_best, strict=True)
            ],
        )


def _list_spans(number: str, mark: str = "", *below: str) -> list[Span]:
    return [Span(number), Span(mark), *(Span(text, "dim", is_below=True) for text in below)]


def _draw_nothing(*, failed: bool) -> list[Span]:
    return [Span(ERROR, "bold red") if failed else Span(NOTHING)]


def _draw_cell(benchmark: Benchmark, dataset: str, system: str, metric: str) -> tuple[list[Span], float | None]:
    aggregate = benchmark.evaluation.aggregate(dataset, system, metric)
    if aggregate is None or aggregate.mean is None:
        return _draw_nothing(failed=benchmark.failure(dataset, system, metric) is not None), None
    mark = significance_mark(benchmark.evaluation.comparison(dataset, system, metric))
    count = "" if aggregate.scored == aggregate.total else f"{aggregate.scored}/{aggregate.total}"
    number, interval = format_mean(aggregate, DIGITS), format_interval(aggregate.interval, DIGITS)
    return _list_spans(number, mark, interval, count), aggregate.mean


def _draw_average(average: Average | None) -> tuple[list[Span], float | None]:
    if average is None:
        return _draw_nothing(failed=False), None
    mark = _mark(average.difference, average.p_adjusted)
    number, interval = format_number(average.mean, DIGITS), format_interval(average.interval, DIGITS)
    return _list_spans(number, mark, interval), average.mean


def _mark(difference: float | None, p_adjusted: float | None) -> str:
    if difference is None or p_adjusted is None or p_adjusted >= SIGNIFICANCE:
        return ""
    return HIGHER if difference > 0 else LOWER


def _describe_marks(benchmark: Benchmark, metric: str) -> Iterator[tuple[str, str]]:
    evaluation = benchmark.evaluation
    interval = next((a.interval for a in evaluation.aggregates if a.metric == metric and a.interval), None)
    if interval is not None:
        yield "[ ]", f"{format_percent(interval.confidence)} confidence interval"
    cells = [(c.difference, c.p_adjusted) for c in evaluation.comparisons if c.metric == metric]
    averages = [average for average in benchmark.averages if average.metric == metric]
    cells += [(a.difference, a.p_adjusted) for a in averages if a.difference is not None and a.p_adjusted is not None]
    if cells:
        test = f"(paired permutation test, Holm-adjusted p < {SIGNIFICANCE})"
        first = evaluation.systems[0]
        some = any(_mark(*cell) for cell in cells)
        significant = (
            f"significantly higher or lower than {first}" if some else f"none differs significantly from {first}"
        )
        yield f"{HIGHER} {LOWER}", f"{significant} {test}"
    yield from describe_unresolved([c for c in evaluation.comparisons if c.metric == metric])
    if averages:
        yield AVERAGE, "the mean of the datasets' means; every dataset has the same weight, also in intervals and tests"


def _draw_timing(benchmark: Benchmark, dataset: str, system: str) -> list[Span]:
    timing = benchmark.timing(dataset, system)
    if timing is None:
        metrics = benchmark.evaluation.metrics
        return _draw_nothing(failed=any(benchmark.failure(dataset, system, metric) for metric in metrics))
    mark = (STORED if timing.stored and not _all_stored(benchmark) else "") + (REUSED if timing.reused else "")
    rate = benchmark.documents_per_second(timing)
    return _list_spans(f"{_format_amount(timing.total)} s", mark, "" if rate is None else f"{_format_amount(rate)}/s")


def _all_stored(benchmark: Benchmark) -> bool:
    return all(timing.stored for timing in benchmark.outcome.timings)


def _format_amount(amount: float) -> str:
    """An amount with three significant digits, or with all digits before the decimal point."""
    if amount <= 0:
        return "0"
    rounded = float(f"{amount:.3g}")
    digits = max(0, min(4, 2 - math.floor(math.log10(rounded))))
    return f"{amount:,.{digits}f}"


def _describe_timings(benchmark: Benchmark) -> Iterator[tuple[str, str]]:
    timings = benchmark.outcome.timings
    if _all_stored(benchmark):
        yield "seconds", "all results are from the store; the seconds were measured when they were retrieved"
    elif any(timing.stored for timing in timings):
        yield STORED, "from the store; the seconds were measured when it was retrieved"
    if any(timing.reused for timing in timings):
        yield REUSED, "some texts had been embedded or scored before, so the seconds are too low to compare"
    timed = dict.fromkeys(timing.system for timing in timings)
    if derived := [system for system in timed if system in benchmark.derived]:
        yield "seconds", f"of {', '.join(derived)}: including the systems whose rankings are read"


def _list_remarks(benchmark: Benchmark) -> Iterator[tuple[str, str, str]]:
    """Failures, then notes, as (label, sentence, style).

    A failure that is the same on several datasets appears once, and so does a note on several systems of a dataset.
    Notes on failures are left out.
    """
    datasets: dict[tuple[str, str], list[str]] = {}
    for failure in benchmark.outcome.failures:
        place = f"{failure.metric} of {failure.system}" if failure.metric else failure.system
        datasets.setdefault((place, failure.message), []).append(failure.dataset)
    for (place, message), names in datasets.items():
        yield ERROR, f"{place} on {', '.join(names)}: {message}", "bold red"
    failed = {(failure.dataset, failure.system) for failure in benchmark.outcome.failures}
    systems: dict[Note, list[str]] = {}
    for note in benchmark.evaluation.notes:
        if note.code not in ("failed", "too_few_pairs") or (note.dataset, note.system) not in failed:
            systems.setdefault(replace(note, system=None), []).extend([note.system] if note.system else [])
    for note, names in [*systems.items()][:_NOTES_SHOWN]:
        place = ", ".join(part for part in (note.dataset, ", ".join(names)) if part)
        yield "note", f"{place}: {note.message}" if place else note.message, "cyan"
    if (more := len(systems) - _NOTES_SHOWN) > 0:
        yield "note", f"{count_noun(more, 'more note')}; see --format json", "cyan"


def _to_json(benchmark: Benchmark) -> bytes:
    """The evaluation's JSON report with the averages and the timings. Numbers keep all their digits."""
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "evaluation": json.loads(dump_results(benchmark.evaluation)),
        "averages": [asdict(average) for average in benchmark.averages],
        "timings": [
            {**asdict(timing), "documents_per_second": benchmark.documents_per_second(timing)}
            for timing in benchmark.outcome.timings
        ],
    }
    return dump_visible(content).encode("utf-8", "backslashreplace")


_COLUMNS = (
    "metric", "system", "dataset", "mean", "low", "high", "scored", "total", "difference", "p_adjusted", "error",
    "seconds", "documents_per_second", "stored", "reused",
)  # fmt: skip


def _to_csv(benchmark: Benchmark) -> bytes:
    """A row for each metric, system and dataset, and for each average a row without a dataset."""
    text = StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    evaluation = benchmark.evaluation
    for metric in evaluation.metrics:
        for system in evaluation.systems:
            key = {"metric": metric, "system": system}
            for dataset in evaluation.datasets:
                cell = Cell(dataset, system, metric)
                row = {**key, "dataset": dataset, **_quality(benchmark, cell)}
                writer.writerow(row | {"error": protect_cell(str(row["error"])) if row["error"] else None})
            if average := benchmark.average(system, metric):
                writer.writerow({**key, **_measured(average)})
    return text.getvalue().encode("utf-8", "backslashreplace")


def _quality(benchmark: Benchmark, cell: Cell) -> dict[str, object]:
    place = (cell.dataset, cell.system, cell.metric)
    fields: dict[str, object] = {"error": benchmark.failure(*place)}
    if aggregate := benchmark.evaluation.aggregate(*place):
        fields |= {"scored": aggregate.scored, "total": aggregate.total, **_measured(aggregate)}
    if comparison := benchmark.evaluation.comparison(*place):
        fields |= {"difference": comparison.difference, "p_adjusted": comparison.p_adjusted}
    if timing := benchmark.timing(cell.dataset, cell.system):
        rate = benchmark.documents_per_second(timing)
        fields |= {"seconds": timing.total, "documents_per_second": rate}
        fields |= {"stored": str(timing.stored).lower(), "reused": timing.reused}
    return fields


def _measured(summary: Aggregate | Average) -> dict[str, object]:
    fields: dict[str, object] = {"mean": summary.mean}
    if summary.interval:
        fields |= {"low": summary.interval.low, "high": summary.interval.high}
    if isinstance(summary, Average):
        fields |= {"difference": summary.difference, "p_adjusted": summary.p_adjusted}
    return fields
