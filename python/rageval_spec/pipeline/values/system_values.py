"""Computes all values of one system on one dataset, from its ranking and from its answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import only_queries
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import DataError, no_exit
from rageval_spec.libraries import pl
from rageval_spec.pipeline.planning.plan import QuestionPart, StepTask, SystemFailure, TaskResult, explain
from rageval_spec.pipeline.planning.question_selection import has_judgements, sorted_ids
from rageval_spec.pipeline.values import answer_values as measuring
from rageval_spec.pipeline.values import ranking_values as values
from rageval_spec.pipeline.values.answer_values import context_notes, leak_notes, metric_notes, ranking_notes
from rageval_spec.pipeline.values.passage_judgements import judge_contexts, judge_run
from rageval_spec.pipeline.values.ranking_values import drops_self, may_drop_self, self_retrieval_notes
from rageval_spec.pipeline.values.sample_tables import Answered, build_samples, describe_answers
from rageval_spec.pipeline.values.step_inputs import Materials, OpenedDataset
from rageval_spec.plugin import AnswerMetric, RankingMetric, System, TableMetric
from rageval_spec.store.stored_tables import AnyTable
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.tables import Collection

_GIVEN = ("query_id", "contexts", "context_ids", "steps", "error")
_NOTHING_KNOWN: Mapping[str, pl.DataFrame] = MappingProxyType({})


def compute_values(materials: Materials, task: StepTask) -> TaskResult:
    """Compute every metric of a system that only retrieves: columns `values.COLUMNS`, metrics in the spec's order.

    Of a system that answers, measure only the task's part of the answers; `conclude` makes the values of all parts. A
    metric of answers has no values for a system that only retrieves. If the system fails as a whole, every query gets
    an error, and `error` of the result says why.
    """
    if task.part is not None:
        return measure_answers(materials, task.part, str(task.step.system), task.inputs[str(task.step.system)])
    dataset, system = str(task.step.dataset), str(task.step.system)
    opened = materials.open(dataset)
    try:
        run = task.inputs.get(system)
        cells = _Cells(materials, judge_run(opened.collection, run), system)
        return cells.tabulate(
            dict(_measure_run(cells, find_run_file(materials, opened, system) if run is None else run))
        )
    except Exception as error:
        return give_up(materials, opened, system, error)


def list_answer_metrics(materials: Materials, system: str) -> dict[str, AnswerMetric[Any]]:
    """The metrics of answers that a system can have."""
    has_texts = materials.parts.systems[system].writes_answers
    return {name: one for name, one in materials.parts.answer_metrics.items() if has_texts or "answer" not in one.needs}


def measure_answers(materials: Materials, part: QuestionPart, system: str, answers: AnyTable) -> TaskResult:
    """Measure a part of a system's answers with the metrics of answers.

    If the part has no answer at all, only those metrics get it that count failures: if that holds for all parts, the
    system is broken, and no call is made for it.
    """
    metrics = list_answer_metrics(materials, system)
    wanted = {name: one for name, one in metrics.items() if part.metrics is None or name in part.metrics}
    read = {"contexts": any(metric.reads_contexts for metric in wanted.values())}
    read["steps"] = any("steps" in metric.needs for metric in wanted.values())
    queries, answers = judge_contexts(part.queries, answers)
    unread = [name for name, is_read in read.items() if not is_read and name in answers.columns]
    samples = build_samples(queries, answers.drop(unread))
    return TaskResult(measured=measuring.measure_all(wanted, samples))


def conclude(materials: Materials, task: StepTask, parts: Sequence[TaskResult]) -> TaskResult:
    """All values of a system that answers, from its answers and from what its parts measured.

    Columns `values.COLUMNS`, metrics in the spec's order. A ranking metric has no values for a system whose answers do
    not name their documents. If the system fails as a whole, every query gets an error, and `error` of the result says
    why.
    """
    dataset, system = str(task.step.dataset), str(task.step.system)
    opened = materials.open(dataset)
    try:
        lost = next((part.error for part in parts if part.error is not None), None)
        if lost is not None:
            raise lost
        judged, answers = judge_contexts(opened.collection, task.inputs[system])
        return _evaluate_answers(_Cells(materials, judged, system), opened, answers, parts)
    except Exception as error:
        return give_up(materials, opened, system, error)


def give_up(
    materials: Materials,
    opened: OpenedDataset,
    system: str,
    error: Exception,
    known: Mapping[str, pl.DataFrame] = _NOTHING_KNOWN,
) -> TaskResult:
    """An error for every query and metric, except for the metrics whose values are `known`."""
    dataset = opened.collection.name
    failure = SystemFailure(dataset, system, explain(error), error)
    ids = sorted_ids(opened.asked.queries if system in opened.answering else opened.collection.qrels)
    table = values.error_values(ids, failure.message)
    frames = [values.label(known.get(name, table), dataset, system, name) for name in materials.parts.metrics]
    return TaskResult(values.concatenate(frames), (failure.note(),), (failure,), error)


def find_run_file(materials: Materials, opened: OpenedDataset, system: str) -> Path | None:
    """The file of a system's run, if there is one and only the kernels need its rows; else None.

    Reading a run directly from its file takes a fifth of the time, and none of the memory, that its table takes.
    """
    in_python = any(isinstance(metric, TableMetric) for metric in materials.parts.metrics.values())
    has_fewer = materials.limit is not None or opened.is_drawn
    if (
        in_python
        or has_fewer
        or opened.collection.passages is not None
        or may_drop_self(materials.spec.ranking, opened.collection)
    ):
        return None
    return materials.parts.systems[system].run_file(opened.collection.name)


@dataclass
class _Cells:
    """One system on one dataset, with the notes and failures that its values cause."""

    materials: Materials
    collection: Collection
    system: str
    notes: list[Note] = field(default_factory=list)
    failures: list[SystemFailure] = field(default_factory=list)

    def remark(self, notes: Sequence[Note]) -> None:
        """Add notes, completed with the dataset and the system."""
        self.notes.extend(replace(note, dataset=self.collection.name, system=self.system) for note in notes)

    def fail(self, error: Exception, metric: str | None = None, *, remark: bool = True) -> str:
        """Add a failure, with a note if `remark`, and return the reason."""
        failure = SystemFailure(self.collection.name, self.system, explain(error), error, metric)
        self.failures.append(failure)
        if remark:
            self.notes.append(failure.note())
        return failure.message

    def tabulate(self, tables: Mapping[str, pl.DataFrame]) -> TaskResult:
        wanted = [name for name in self.materials.parts.metrics if name in tables]
        frames = [values.label(tables[name], self.collection.name, self.system, name) for name in wanted]
        return TaskResult(values.concatenate(frames), tuple(self.notes), tuple(self.failures))


def _evaluate_answers(
    cells: _Cells, opened: OpenedDataset, answers: AnyTable, parts: Sequence[TaskResult]
) -> TaskResult:
    """The values of the metrics of answers, and of ranking metrics if the answers name their documents."""
    metrics, budget = list_answer_metrics(cells.materials, cells.system), cells.materials.budget
    answered = describe_answers(answers, opened.asked)
    computed = [_join(name, metric, parts, answered) for name, metric in metrics.items()]
    no_answers = _explain_no_answers(answered)
    if no_answers is not None:
        known = {one.metric: one.values for one in computed if metrics[one.metric].counts_failures}
        return give_up(cells.materials, opened, cells.system, no_answers, known)
    cells.remark([*answered.remark(), *_remark_on_contexts(metrics, answers, answered)])
    if any("nuggets" in metric.needs for metric in metrics.values()) and opened.asked.columns is not None:
        cells.remark(_remark_on_leaks(cells.materials.parts.systems[cells.system], opened.asked, answers))
    tables = _rank_answers(cells, answered)
    for one in computed:
        tables[one.metric] = one.values
        cells.remark(one.notes)
        if one.error is not None:
            cells.fail(one.error, one.metric)
        elif one.is_broken and budget.stopped is None:
            (failed,) = (note.message for note in one.notes if note.code == "failed_queries")
            cells.fail(DataError(failed.removeprefix(f"{one.metric}: ")), one.metric, remark=False)
    if budget.stopped is not None:
        told = any(note.code == "stopped" for note in cells.notes)
        cells.fail(budget.stopped, remark=not told)
    return cells.tabulate(tables)


def _join(name: str, metric: AnswerMetric[Any], parts: Sequence[TaskResult], answered: Answered) -> measuring.Computed:
    measured = [part.measured.pop(name) for part in parts if name in part.measured]  # so that it is held only once
    return measuring.join(name, metric, measured, answered.table)


def _remark_on_contexts(metrics: Mapping[str, AnswerMetric[Any]], answers: AnyTable, answered: Answered) -> list[Note]:
    if not any(metric.reads_contexts for metric in metrics.values()):
        return []
    whole = answered.table.filter(pl.col("error").is_null())
    kept = only_queries(answers.drop(name for name in answers.columns if name not in ("query_id", "contexts")), whole)
    return context_notes(metrics.values(), (block["contexts"] for block in kept.iter_slices()))


def _remark_on_leaks(system: System[Any], asked: Collection, answers: AnyTable) -> list[Note]:
    prompt = json.dumps(getattr(system.node, "templates", ""), ensure_ascii=False)
    kept = answers.drop(name for name in answers.columns if name not in _GIVEN)
    samples = build_samples(replace(asked, load_qrels=None, load_references=None), kept)
    is_told = "nuggets" in getattr(system, "variables", ())
    return leak_notes(samples, None if is_told else prompt.replace("\\n", " ").replace('\\"', '"'))


def _explain_no_answers(answered: Answered) -> DataError | None:
    """The error of a system that answered no query at all: it is broken, which is not the same as answering badly."""
    table = answered.table
    if table.is_empty() or table["error"].null_count():
        return None
    asked = count_noun(table.height, "query", "queries")
    failed = table.filter(~pl.col("is_unfinished"))
    if failed.is_empty():
        return DataError(f"none of {asked} was asked: {table['error'][0]}")
    return DataError(f"none of {asked} got an answer; the first: {failed['error'][0]}")


def _rank_answers(cells: _Cells, answered: Answered) -> dict[str, pl.DataFrame]:
    """The values of ranking and table metrics, by name; if there are none, a note says why."""
    metrics = cells.materials.parts.metrics
    wanted = [name for name, metric in metrics.items() if not isinstance(metric, AnswerMetric)]
    if not wanted:
        return {}
    if answered.run is None:
        lacking = "the answers do not name the documents they were made from (context_ids)"
    elif not has_judgements(cells.collection):
        lacking = "the dataset has no relevance judgements"
    else:
        cells.remark(_note_unknown_documents(cells.collection, answered.run))
        return dict(_measure_run(cells, answered.run))
    cells.remark([Note("no_ranking", f"no {', '.join(wanted)}: {lacking}")])
    return {}


def _note_unknown_documents(collection: Collection, run: pl.DataFrame) -> list[Note]:
    """A warning if no document that a system names has a judgement: mostly, its ids are not the dataset's."""
    judged = collection.qrels
    if judged is None or run.is_empty() or run.join(judged, on="doc_id", how="semi").height:
        return []
    count = run["doc_id"].n_unique()
    message = (
        f"none of the {count_noun(count, 'document')} that it found is judged, so none counts as relevant; its ids are "
        f"such as {run['doc_id'][0][:60]!r}, those of the judgements such as {judged['doc_id'][0][:60]!r}"
    )
    return [Note("unknown_documents", message, count=count, level="warning")]


def _measure_run(cells: _Cells, source: pl.DataFrame | Path | None) -> Iterator[tuple[str, pl.DataFrame]]:
    """The values of ranking and table metrics, by name; `source` is the run, or its file."""
    ranking, collection, system = cells.materials.spec.ranking, cells.collection, cells.system
    run = None if source is None or isinstance(source, Path) else source
    drop_self = run is not None and drops_self(ranking, collection, run)
    ranked = _evaluate_ranking(cells, source, drop_self=drop_self)
    if run is not None and may_drop_self(ranking, collection):
        others = run["query_id"] != run["doc_id"]
        cells.notes.extend(self_retrieval_notes(ranking, collection, system, run.height - int(others.sum())))
        run = run.filter(others) if drop_self else run
    if ranked is not None:
        if ranked.unjudged_queries and len(ranked.query_ids) and ranked.missing.all():
            raise DataError(  # a mistake, not a system that finds nothing
                f"none of the run's {count_noun(ranked.unjudged_queries, 'query', 'queries')} is among the dataset's "
                f"{len(ranked.query_ids)}; check that the run belongs to this dataset"
            )
        cells.notes.extend(ranking_notes(ranking, ranked, collection.name, system))
    for name, metric in cells.materials.parts.metrics.items():
        if isinstance(metric, AnswerMetric):
            continue
        if isinstance(metric, RankingMetric) and ranked is not None:
            table = values.ranking_values(ranking, ranked, metric)
            cells.notes.extend(metric_notes(metric, name, table, collection.name, system))
        else:
            table = _compute(cells, run, name, metric)
        yield name, table


def _evaluate_ranking(
    cells: _Cells, run: pl.DataFrame | Path | None, *, drop_self: bool
) -> kernels.RankingValues | None:
    """Compute all ranking metrics in one pass. Missing queries get the values of trec_eval's -c, also if the spec
    excludes them later.
    """
    metrics = [metric for metric in cells.materials.parts.metrics.values() if isinstance(metric, RankingMetric)]
    if not metrics:
        return None
    ranking, qrels = cells.materials.spec.ranking, cells.collection.qrels
    assert qrels is not None, "judged_queries refuses a collection without qrels"
    names = dict.fromkeys(name for metric in metrics for name in (metric.measure(), *metric.companions()))
    options = ranking.options(drop_self=drop_self, missing="zero")
    return kernels.evaluate_ranking(qrels, run, list(names), options, threads=cells.materials.spec.limits.threads)


def _compute(cells: _Cells, run: pl.DataFrame | None, name: str, metric: object) -> pl.DataFrame:
    try:
        if not isinstance(metric, TableMetric) or run is None:
            raise TypeError(f"{type(metric).__name__} is neither a RankingMetric nor a TableMetric")
        with no_exit():
            computed = metric.compute(cells.collection, run)
        table = values.check_values(computed, sorted_ids(cells.collection.qrels))
    except Exception as error:
        return values.error_values(sorted_ids(cells.collection.qrels), cells.fail(error, name))
    failed = table.filter(status="error")["reason"]
    if len(failed):
        note = measuring.failure_note(len(failed), table.height, failed[0])
        cells.remark([measuring.label(note, name)])
        if 2 * len(failed) > table.height:
            cells.fail(DataError(note.message), name, remark=False)
    return table
