"""An evaluation of systems on BEIR folders, with averages over the datasets and timings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rageval_spec import kernels, registry, runner
from rageval_spec.data import arithmetic
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Interval
from rageval_spec.errors import UsageError
from rageval_spec.libraries import np, pl
from rageval_spec.pipeline.execution.runs import Timing
from rageval_spec.plugin import Context
from rageval_spec.plugin.block_names import names_in
from rageval_spec.spec import Spec
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.mean_intervals import average_means
from rageval_spec.statistics.percentiles import Summarized

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
        """The average of one system, or None."""
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
