"""Walks the plan: takes a table from the store or computes it, and gives every query of every system its values.

A system that fails does not stop the others: its values get the status "error" with the reason, and the failure is
reported. A dataset that cannot be read stops the evaluation, because nothing says which queries there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rageval_spec import kernels
from rageval_spec.data.evaluation import Note
from rageval_spec.data.fingerprints import Evaluated
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError, no_exit
from rageval_spec.pipeline import answer_values as measuring
from rageval_spec.pipeline import ranking_values as values
from rageval_spec.pipeline.answers import Answered, take_answers
from rageval_spec.pipeline.notes import context_notes, limit_notes, metric_notes, ranking_notes
from rageval_spec.pipeline.plan import Parts, Plan
from rageval_spec.pipeline.queries import asked_ids, has_judgements, judged_ids, judged_queries, queries_to_ask
from rageval_spec.pipeline.retrieval import Runs, Timing, explain
from rageval_spec.pipeline.samples import SampleParts
from rageval_spec.pipeline.self_retrieval import drops_self, may_drop_self, self_retrieval_notes
from rageval_spec.plugin import AnswerMetric, Engine, Metric, RankingMetric, TableMetric
from rageval_spec.plugin.budget import Budget
from rageval_spec.spec.nodes import Spec
from rageval_spec.store.tables import Store
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.sample import Sample


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
    """What came out.

    Attributes:
        values: columns `values.COLUMNS`; dataset, system and metric in the order of the spec.
        samples: what the table of samples is made of, in the same order.
        evaluated: which queries of each dataset the values are of.
    """

    values: pl.DataFrame
    notes: tuple[Note, ...]
    failures: tuple[Failure, ...]
    timings: tuple[Timing, ...] = ()
    samples: tuple[SampleParts, ...] = ()
    evaluated: tuple[Evaluated, ...] = ()


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
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class _Outcome:
    """One system on one dataset."""

    values: list[pl.DataFrame]
    notes: list[Note]
    failures: list[Failure]
    timings: list[Timing] = field(default_factory=list)
    samples: list[SampleParts] = field(default_factory=list)
    evaluated: list[Evaluated] = field(default_factory=list)


def execute(work: Work) -> Execution:
    """The values of every metric of every system on every dataset.

    A metric of answers has no values for a system that only retrieves, and a ranking metric none for one whose answers
    do not say which documents they were made from.

    Raises:
        RagevalError: a dataset cannot be read, or the store cannot be written.
    """
    measuring.brief_judges(work.parts.answer_metrics)
    outcomes = [outcome for dataset in work.parts.datasets for outcome in _execute_dataset(work, dataset)]
    frames = [frame for outcome in outcomes for frame in outcome.values]
    outcomes += _find_unmeasured(work, frames)
    return Execution(
        values.concatenate(frames),
        tuple(dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
        tuple(failure for outcome in outcomes for failure in outcome.failures),
        tuple(timing for outcome in outcomes for timing in outcome.timings),
        tuple(part for outcome in outcomes for part in outcome.samples),
        tuple(one for outcome in outcomes for one in outcome.evaluated),
    )


def _execute_dataset(work: Work, dataset: str) -> Iterator[_Outcome]:
    work.announce(f"read {dataset}")
    whole = work.parts.datasets[dataset].open()
    answering = {name for name, system in work.parts.systems.items() if system.answers_on(dataset)}
    collection = whole if _asks_alone(work, whole, answering) else judged_queries(whole, work.limit)
    asked = queries_to_ask(whole, work.limit) if answering else collection
    evaluated = [_list_evaluated(work, collection, asked if answering else None)]
    yield _Outcome([], limit_notes(whole, asked if answering else collection), [], evaluated=evaluated)
    runs = Runs(work.parts, work.plan, work.store, collection, cut=work.limit is not None, answering=answering)
    runs.retrieve_missing(work.engine, work.announce)
    yield _Outcome([], list(runs.remark_on_sources()), [])
    for system in work.parts.systems:
        try:
            if system in answering:
                yield _evaluate_answers(work, collection, asked, system)
            else:
                work.announce(f"evaluate {system} on {dataset}")
                yield _evaluate(work, collection, system, runs)
        except Exception as error:
            ids = asked_ids(asked) if system in answering else judged_ids(collection)
            yield _give_up(work, collection.name, ids, system, error)


def _list_evaluated(work: Work, collection: Collection, asked: Collection | None) -> Evaluated:
    """Which queries are evaluated; `asked` has those that systems answer. No corpus is kept for it."""
    import polars as pl

    qrels = collection.qrels
    ids = [table["query_id"] for table in (qrels, None if asked is None else asked.queries) if table is not None]
    reads_questions = asked is not None or any("queries" in system.needs for system in work.parts.systems.values())
    kept = replace(asked or collection, load_corpus=None, load_qrels=lambda: qrels)
    every = pl.concat(ids) if ids else pl.Series([], dtype=pl.String)
    return Evaluated(kept, every, reads_questions, reads_references=asked is not None)


def _asks_alone(work: Work, whole: Collection, answering: AbstractSet[str]) -> bool:
    """Whether the dataset has no judgements and no system needs any."""
    return len(answering) == len(work.parts.systems) and not has_judgements(whole)


def _evaluate_answers(work: Work, collection: Collection, asked: Collection, system: str) -> _Outcome:
    """A system that answers: its metrics of answers, and its ranking metrics where the answers name documents."""
    work.announce(f"ask {system} on {asked.name}")
    answered = take_answers(work.parts.systems[system], asked)
    samples = [SampleParts.of(asked, system, answered.table)]
    silence = _explain_silence(answered)
    if silence is not None:
        known = _count_failures(work, answered.samples)
        return replace(_give_up(work, asked.name, asked_ids(asked), system, silence, known), samples=samples)
    # With a limit, answers to the queries beyond it are no news.
    told = [note for note in answered.notes if work.limit is None or note.code != "unknown_queries"]
    outcome = _Outcome([], [replace(note, dataset=asked.name, system=system) for note in told], [], samples=samples)
    empty = context_notes(work.parts.answer_metrics.values(), answered.samples)
    outcome.notes.extend(replace(note, dataset=asked.name, system=system) for note in empty)
    tables = _rank_answers(work, collection, answered, system, outcome)
    work.announce(f"judge {system} on {asked.name}")
    for computed in measuring.compute_all(work.parts.answer_metrics, answered.samples):
        tables[computed.metric] = computed.values
        outcome.notes.extend(replace(note, dataset=asked.name, system=system) for note in computed.notes)
        if computed.error is not None:
            outcome.failures.append(_fail(outcome, asked, system, computed.error, computed.metric))
        elif computed.is_broken and work.budget.stopped is None:
            error = DataError("more than half of the queries that it was asked of failed")
            outcome.failures.append(Failure(asked.name, system, str(error), error, computed.metric))
    if work.budget.stopped is not None:
        outcome.failures.append(_fail(outcome, asked, system, work.budget.stopped))
    outcome.values.extend(
        values.label(tables[name], asked.name, system, name) for name in work.parts.metrics if name in tables
    )
    return outcome


def _explain_silence(answered: Answered) -> DataError | None:
    """A system that answers nothing at all is broken, and not one that answers badly."""
    errors = [sample.error for sample in answered.samples]
    if not errors or None in errors:
        return None
    asked = count_noun(len(errors), "query", "queries")
    return DataError(f"none of {asked} got an answer; the first: {errors[0]}")


def _count_failures(work: Work, samples: Sequence[Sample]) -> dict[str, pl.DataFrame]:
    """The values of the metrics that failures are a value for."""
    counting = {name: metric for name, metric in work.parts.answer_metrics.items() if metric.counts_failures}
    return {computed.metric: computed.values for computed in measuring.compute_all(counting, samples)}


def _rank_answers(
    work: Work, collection: Collection, answered: Answered, system: str, outcome: _Outcome
) -> dict[str, pl.DataFrame]:
    """The values of ranking and table metrics by name; a note says why there are none."""
    wanted = [name for name, metric in work.parts.metrics.items() if not isinstance(metric, AnswerMetric)]
    if not wanted:
        return {}
    lacking = None
    if answered.run is None:
        lacking = "the answers do not say which documents they were made from (context_ids)"
    elif not has_judgements(collection):
        lacking = "the dataset has no relevance judgements"
    if lacking is not None:
        message = f"no {', '.join(wanted)}: {lacking}"
        outcome.notes.append(Note("no_ranking", message, collection.name, system))
        return {}
    return dict(_measure_run(work, collection, system, answered.run, outcome))


def _find_unmeasured(work: Work, frames: list[pl.DataFrame]) -> list[_Outcome]:
    """Metrics that no system on any dataset has a value or an error for: a spec that asks for them is wrong."""
    found = {name for frame in frames for name in frame["metric"].unique()}
    outcomes = []
    for name in work.parts.metrics:
        if name not in found:
            reason = _explain_unmeasured(work.parts.metrics[name])
            error = DataError(f"no system can have a value for it: {reason}")
            dataset, system = next(iter(work.parts.datasets)), next(iter(work.parts.systems))
            outcomes.append(_Outcome([], [], [Failure(dataset, system, str(error), error, name)]))
    return outcomes


def _explain_unmeasured(metric: Metric[Any]) -> str:
    if isinstance(metric, AnswerMetric):
        return "it is a metric of answers, and these systems retrieve; use http, python, command, or a file of answers"
    return "it is a metric of rankings, and these systems answer without saying from which documents"


def _evaluate(work: Work, collection: Collection, system: str, runs: Runs) -> _Outcome:
    outcome = _Outcome([], [], [])
    path = _run_file(work, collection, system)
    run = None
    if path is None:
        retrieved = runs.take(system)
        run = retrieved.run
        outcome.notes.extend(retrieved.notes)
        outcome.timings.append(retrieved.timing)
    measured = dict(_measure_run(work, collection, system, path if run is None else run, outcome))
    outcome.values.extend(
        values.label(measured[name], collection.name, system, name) for name in work.parts.metrics if name in measured
    )
    return outcome


def _measure_run(
    work: Work, collection: Collection, system: str, source: pl.DataFrame | Path | None, outcome: _Outcome
) -> Iterator[tuple[str, pl.DataFrame]]:
    """The values of ranking and table metrics by name; `source` is the run, or the file that has it."""
    ranking = work.spec.ranking
    run = None if source is None or isinstance(source, Path) else source
    drop_self = run is not None and drops_self(ranking, collection, run)
    ranked = _evaluate_ranking(work, collection, source, drop_self=drop_self)
    if run is not None and may_drop_self(ranking, collection):
        others = run["query_id"] != run["doc_id"]
        outcome.notes.extend(self_retrieval_notes(ranking, collection, system, run.height - int(others.sum())))
        run = run.filter(others) if drop_self else run
    if ranked is not None:
        _check_shared(ranked)
        outcome.notes.extend(ranking_notes(ranking, ranked, collection.name, system))
    for name, metric in work.parts.metrics.items():
        if isinstance(metric, AnswerMetric):
            continue
        if isinstance(metric, RankingMetric) and ranked is not None:
            table = values.ranking_values(ranking, ranked, metric)
            outcome.notes.extend(metric_notes(metric, name, table, collection.name, system))
        else:
            table = _compute(collection, system, run, name, metric, outcome)
        yield name, table


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
    in_python = any(isinstance(metric, TableMetric) for metric in work.parts.metrics.values())
    if in_python or work.limit is not None or may_drop_self(work.spec.ranking, collection):
        return None
    return work.parts.systems[system].run_file(collection.name)


def _evaluate_ranking(
    work: Work, collection: Collection, run: pl.DataFrame | Path | None, *, drop_self: bool
) -> kernels.RankingValues | None:
    """All ranking metrics in one pass; missing queries get trec_eval -c's values, whatever becomes of them later."""
    metrics = [metric for metric in work.parts.metrics.values() if isinstance(metric, RankingMetric)]
    if not metrics:
        return None
    ranking = work.spec.ranking
    assert collection.qrels is not None, "judged_queries refuses a collection without qrels"
    evaluator = kernels.prepare_evaluator(
        list(dict.fromkeys(name for metric in metrics for name in (metric.measure(), *metric.companions()))),
        ties=ranking.ties,
        depth=ranking.depth,
        judged_only=ranking.judged_only,
        drop_self=drop_self,
        relevance_level=ranking.relevance_level,
        missing="zero",
        duplicates=ranking.duplicates,
        tie_range=ranking.tie_range,
        threads=work.spec.limits.threads,
    )
    return kernels.ranking_values(evaluator, evaluator.evaluate(collection.qrels, run))


def _compute(
    collection: Collection, system: str, run: pl.DataFrame | None, name: str, metric: object, outcome: _Outcome
) -> pl.DataFrame:
    try:
        if not isinstance(metric, TableMetric) or run is None:
            raise TypeError(f"{type(metric).__name__} is neither a RankingMetric nor a TableMetric")
        with no_exit():
            computed = metric.compute(collection, run)
        return values.check_values(computed, judged_ids(collection))
    except Exception as error:
        failure = _fail(outcome, collection, system, error, name)
        outcome.failures.append(failure)
        return values.error_values(judged_ids(collection), failure.message)


def _fail(
    outcome: _Outcome, collection: Collection, system: str, error: Exception, metric: str | None = None
) -> Failure:
    failure = Failure(collection.name, system, explain(error), error, metric)
    outcome.notes.append(_failure_note(failure))
    return failure


def _give_up(
    work: Work,
    dataset: str,
    ids: pl.DataFrame,
    system: str,
    error: Exception,
    known: Mapping[str, pl.DataFrame] = MappingProxyType({}),
) -> _Outcome:
    """Errors for every query and metric, but for those whose values are known all the same."""
    failure = Failure(dataset, system, explain(error), error)
    table = values.error_values(ids, failure.message)
    frames = [values.label(known.get(metric, table), dataset, system, metric) for metric in work.parts.metrics]
    return _Outcome(frames, [_failure_note(failure)], [failure])


def _failure_note(failure: Failure) -> Note:
    message = f"{failure.metric}: {failure.message}" if failure.metric else failure.message
    return Note("failed", message, failure.dataset, failure.system)
