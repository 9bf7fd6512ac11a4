"""Walks the plan: takes a table from the store or computes it, and gives every query of every system its values.

A system that fails does not stop the others: its values get the status "error" with the reason, and the failure is
reported. A dataset that cannot be read stops the evaluation, because nothing says which queries there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec import kernels, values
from rageval_spec.errors import DataError
from rageval_spec.notes import limit_notes, metric_notes, ranking_notes, self_retrieval_notes
from rageval_spec.plan import Parts, Plan
from rageval_spec.plugin import Engine, RankingMetric, TableMetric
from rageval_spec.result import Note
from rageval_spec.runs import Runs, Timing, explain
from rageval_spec.spec.nodes import RankingNode, Spec
from rageval_spec.store import Store
from rageval_spec.tables import Collection, only_queries
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Failure:
    """A system, or one metric of it, that gave no values. `error` is what it raised."""

    dataset: str
    system: str
    message: str
    error: Exception
    metric: str | None = None

    def __str__(self) -> str:
        """`bm25 on golden: the reason`."""
        what = f"{self.metric} of {self.system}" if self.metric else self.system
        return f"{what} on {self.dataset}: {self.message}"


@dataclass(frozen=True)
class Execution:
    """What came out: the values (columns `values.COLUMNS`; dataset, system and metric in the order of the spec)."""

    values: pl.DataFrame
    notes: tuple[Note, ...]
    failures: tuple[Failure, ...]
    timings: tuple[Timing, ...] = ()


def _say_nothing(text: str) -> None:
    pass


@dataclass(frozen=True)
class Work:
    """What an execution needs; `announce` is told what is being done."""

    spec: Spec
    parts: Parts
    plan: Plan
    store: Store
    engine: Engine[Any]
    limit: int | None = None
    announce: Callable[[str], None] = _say_nothing


@dataclass(frozen=True)
class _Outcome:
    """One system on one dataset."""

    values: list[pl.DataFrame]
    notes: list[Note]
    failures: list[Failure]
    timings: list[Timing] = field(default_factory=list)


def execute(work: Work) -> Execution:
    """The values of every metric of every system on every dataset.

    Raises:
        RagevalError: a dataset cannot be read, or the store cannot be written.
    """
    outcomes = [outcome for dataset in work.parts.datasets for outcome in _execute_dataset(work, dataset)]
    frames = [frame for outcome in outcomes for frame in outcome.values]
    return Execution(
        values.concatenate(frames),
        tuple(dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
        tuple(failure for outcome in outcomes for failure in outcome.failures),
        tuple(timing for outcome in outcomes for timing in outcome.timings),
    )


def _execute_dataset(work: Work, dataset: str) -> Iterator[_Outcome]:
    work.announce(f"read {dataset}")
    whole = work.parts.datasets[dataset].open()
    collection = judged_queries(whole, work.limit)
    yield _Outcome([], limit_notes(whole, collection), [])
    runs = Runs(work.parts, work.plan, work.store, collection, cut=work.limit is not None)
    runs.retrieve_missing(work.engine, work.announce)
    yield _Outcome([], list(runs.remark_on_sources()), [])
    for system in work.parts.systems:
        work.announce(f"evaluate {system} on {dataset}")
        try:
            yield _evaluate(work, collection, system, runs)
        except Exception as error:
            yield _give_up(work, collection, system, error)


def judged_queries(collection: Collection, limit: int | None = None) -> Collection:
    """The same collection with the queries of its qrels alone: the first `limit` of them, in the order of the qrels.

    Raises:
        DataError: the dataset has no judgements.
    """
    qrels = collection.qrels
    if qrels is None:
        raise DataError(f"dataset '{collection.name}' has no relevance judgements; name a file with qrels")
    if limit is not None:
        qrels = only_queries(qrels, qrels.select("query_id").unique(maintain_order=True).head(limit))
    load_queries = collection.load_queries
    return replace(
        collection,
        load_qrels=lambda: qrels,
        load_queries=load_queries and (lambda: only_queries(load_queries(), qrels)),
    )


def _evaluate(work: Work, collection: Collection, system: str, runs: Runs) -> _Outcome:
    ranking, outcome = work.spec.ranking, _Outcome([], [], [])
    path = _run_file(work, collection, system)
    run = None
    if path is None:
        retrieved = runs.take(system)
        run = retrieved.run
        outcome.notes.extend(retrieved.notes)
        outcome.timings.append(retrieved.timing)
    ranked = _evaluate_ranking(work, collection, path if run is None else run)
    if run is not None and _drops_self(ranking, collection):
        whole, run = run.height, run.filter(run["query_id"] != run["doc_id"])
        outcome.notes.extend(self_retrieval_notes(collection.name, system, whole - run.height))
    if ranked is not None:
        _check_shared(ranked)
        outcome.notes.extend(ranking_notes(ranking, ranked, collection.name, system))
    for name, metric in work.parts.metrics.items():
        if isinstance(metric, RankingMetric) and ranked is not None:
            table = values.ranking_values(ranking, ranked, metric)
            outcome.notes.extend(metric_notes(metric, name, table, collection.name, system))
        else:
            table = _compute(collection, system, run, name, metric, outcome)
        outcome.values.append(values.label(table, collection.name, system, name))
    return outcome


def _check_shared(ranked: kernels.RankingValues) -> None:
    """A run whose queries are all others than the dataset's is a mistake, and not a system that finds nothing."""
    if ranked.unjudged_queries and ranked.missing.all():
        raise DataError(
            f"none of the run's {count_noun(ranked.unjudged_queries, 'query', 'queries')} is among the dataset's "
            f"{len(ranked.query_ids)}; are their ids those of this dataset?"
        )


def _run_file(work: Work, collection: Collection, system: str) -> Path | None:
    """The run's file, where there is one and kernels alone look at its rows: nothing counts, cuts or reads them here.

    In place, a run costs a fifth of the time and none of the memory that its table takes.
    """
    in_python = any(not isinstance(metric, RankingMetric) for metric in work.parts.metrics.values())
    if in_python or work.limit is not None or _drops_self(work.spec.ranking, collection):
        return None
    return work.parts.systems[system].run_file(collection.name)


def _drops_self(ranking: RankingNode, collection: Collection) -> bool:
    auto = ranking.self_retrieval == "auto" and collection.drops_self_retrieval
    return auto or ranking.self_retrieval == "drop"


def _evaluate_ranking(
    work: Work, collection: Collection, run: pl.DataFrame | Path | None
) -> kernels.RankingValues | None:
    """All ranking metrics in one pass; missing queries get trec_eval -c's values, whatever becomes of them later."""
    metrics = [metric for metric in work.parts.metrics.values() if isinstance(metric, RankingMetric)]
    if not metrics:
        return None
    ranking, qrels = work.spec.ranking, _qrels(collection)
    evaluator = kernels.prepare_evaluator(
        list(dict.fromkeys(name for metric in metrics for name in (metric.measure(), *metric.companions()))),
        ties=ranking.ties,
        depth=ranking.depth,
        judged_only=ranking.judged_only,
        drop_self=_drops_self(ranking, collection),
        relevance_level=ranking.relevance_level,
        missing="zero",
        duplicates=ranking.duplicates,
        tie_range=ranking.tie_range,
        threads=work.spec.limits.threads,
    )
    return kernels.ranking_values(evaluator, evaluator.evaluate(qrels, run))


def _compute(
    collection: Collection, system: str, run: pl.DataFrame | None, name: str, metric: object, outcome: _Outcome
) -> pl.DataFrame:
    try:
        if not isinstance(metric, TableMetric) or run is None:
            raise TypeError(f"{type(metric).__name__} is neither a RankingMetric nor a TableMetric")
        return values.check_values(metric.compute(collection, run), _query_ids(collection))
    except Exception as error:
        failure = Failure(collection.name, system, explain(error), error, name)
        outcome.failures.append(failure)
        outcome.notes.append(_failure_note(failure))
        return values.error_values(_query_ids(collection), failure.message)


def _give_up(work: Work, collection: Collection, system: str, error: Exception) -> _Outcome:
    failure = Failure(collection.name, system, explain(error), error)
    table = values.error_values(_query_ids(collection), failure.message)
    frames = [values.label(table, collection.name, system, metric) for metric in work.parts.metrics]
    return _Outcome(frames, [_failure_note(failure)], [failure])


def _qrels(collection: Collection) -> pl.DataFrame:
    assert collection.qrels is not None, "judged_queries refuses a collection without qrels"
    return collection.qrels


def _query_ids(collection: Collection) -> pl.DataFrame:
    return _qrels(collection).select("query_id").unique().sort("query_id")


def _failure_note(failure: Failure) -> Note:
    message = f"{failure.metric}: {failure.message}" if failure.metric else failure.message
    return Note("failed", message, failure.dataset, failure.system)
