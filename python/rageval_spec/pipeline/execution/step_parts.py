"""Splits a step into parts of the questions, and makes one result of what the parts give.

The result is the same, byte for byte, for any number of parts with any questions in them, as long as questions that are
compared with one another stay together. So the parts of a step can be computed a few at a time on this machine, by the
workers of a cluster, or by several machines that each do a share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from rageval_spec.data import tables
from rageval_spec.data.outcomes import TakenOver, join_notes
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.pipeline.planning.plan import QuestionPart, RunShare, StepTask, TaskResult
from rageval_spec.pipeline.planning.question_selection import list_ids, restrict
from rageval_spec.pipeline.values.answer_values import join_measured
from rageval_spec.pipeline.values.step_inputs import Materials
from rageval_spec.pipeline.values.system_values import conclude, list_answer_metrics
from rageval_spec.plugin.budget import Shard

Deal: TypeAlias = Callable[[Sequence[Sequence[str]], int], Sequence[Sequence[str]]]
"""Deals units, ids of questions that must stay together, into so many parts: the ids of each. One can be empty."""


def deal_evenly(units: Sequence[Sequence[str]], count: int) -> Sequence[Sequence[str]]:
    """Deal units in order into at most `count` parts with about as many questions each."""
    total, dealt = sum(map(len, units)), 0
    parts: list[list[str]] = [[] for _ in range(count)]
    for unit in units:
        parts[dealt * count // total] += unit
        dealt += len(unit)
    return [part for part in parts if part]


def split(materials: Materials, task: StepTask, count_parts: Callable[[int], int], deal: Deal) -> list[StepTask]:
    """The parts of a task, or of a shard's part of one, in the order of the parts; the task if it cannot be split.

    `count_parts` says how many parts so many questions are worth.
    A metric that compares all answers with one another gets them all at once, as a part of its own.
    """
    shard = task.part
    queries = find_queries(materials, task) if shard is None else shard.queries
    if queries is None:
        return [task]
    ids = queries.questions
    count = count_parts(0 if ids is None else ids["query_id"].n_unique())
    parts = [queries]
    if count > 1:
        dealt = deal(list_units(queries), count)
        parts = [restrict(queries, part) for part in dealt] if len(dealt) > 1 else parts
    if shard is not None or task.step.kind != "evaluate":
        metrics = None if shard is None else shard.metrics
        taken = [_take(task, len(parts), place, one, metrics) for place, one in enumerate(parts)]
        return [task] if len(parts) == 1 else taken
    separable, whole = list_metrics(materials, task)
    if not whole or len(parts) == 1:
        return [_take(task, len(parts), place, one) for place, one in enumerate(parts)]
    count = len(parts) + 1
    taken = [_take(task, count, place, one, separable) for place, one in enumerate(parts)]
    return [*taken, take_whole(task, count, queries, whole)]


def list_metrics(materials: Materials, task: StepTask) -> tuple[frozenset[str], frozenset[str]]:
    """The metrics of answers that can work on a part of them, and those that need all at once."""
    metrics = list_answer_metrics(materials, str(task.step.system))
    whole = frozenset(name for name, metric in metrics.items() if not metric.is_separable)
    return frozenset(metrics) - whole, whole


def take_whole(task: StepTask, count: int, queries: tables.Collection, metrics: frozenset[str]) -> StepTask:
    """The last of `count` parts of a task: the metrics that need all answers at once."""
    return replace(task, part=QuestionPart(count - 1, count, queries, metrics))


def take_shard(materials: Materials, task: StepTask, shard: Shard, ids: Collection[str]) -> StepTask:
    """A shard's part of a task, without metrics that need all answers at once; the task itself if it has no parts."""
    queries = find_queries(materials, task)
    if queries is None:
        return task
    metrics = list_metrics(materials, task)[0] if task.step.kind == "evaluate" else None
    return _take(task, shard.total + 1, shard.number - 1, restrict(queries, ids), metrics)


def restore(materials: Materials, task: StepTask) -> StepTask:
    """The task; if it was pickled, with what belongs to the questions of its part."""
    if task.part is None or task.part.ids is None:
        return task
    queries = find_queries(materials, task)
    if queries is None:
        raise DataError(f"{task.step.title}: another process made parts of a step that has none here")
    return replace(task, part=replace(task.part, queries=restrict(queries, task.part.ids), ids=None))


def combine(
    materials: Materials, task: StepTask, parts: Sequence[StepTask], results: Sequence[TaskResult]
) -> TaskResult:
    """What a whole task gives, from the results of its parts, as `split` made them. The notes are written."""
    if task.step.kind == "evaluate" and parts[0].part is not None:
        return conclude(materials, task, results)
    joined = join_results(materials, task, parts, results)
    return replace(joined, notes=joined.written_notes)


def join_results(
    materials: Materials, task: StepTask, parts: Sequence[StepTask], results: Sequence[TaskResult]
) -> TaskResult:
    """One result of those of parts, from which nothing is concluded yet, so that it can be a part itself."""
    if len(parts) == 1:
        return results[0]
    error = next((part.error for part in results if part.error is not None), None)
    if error is not None:
        return TaskResult(error=error)
    if task.step.kind == "evaluate":
        names = results[0].measured
        return TaskResult(measured={name: join_measured([one.measured[name] for one in results]) for name in names})
    found = [part.table for part in results if part.table is not None]
    by_documents = parts[0].documents is not None
    joins = materials.parts.system(str(task.step.system)).join_parts if by_documents else _concatenate
    return TaskResult(
        _order(joins(found), find_queries(materials, task)),
        join_notes([part.notes for part in results]),
        share=_add_shares([part.share for part in results if part.share is not None]),
        queries=results[0].queries if by_documents else sum(part.queries for part in results),
        taken_over=_add_taken_over([part.taken_over for part in results if part.taken_over is not None]),
    )


def _concatenate(found: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(found, how="vertical_relaxed")


def list_units(queries: tables.Collection) -> list[list[str]]:
    """The ids of the questions, in order: each by itself, except for those of a group, whose answers are compared."""
    ids = list_ids(queries.questions)
    references = queries.references
    if references is None or "group" not in references.columns or references["group"].null_count() == len(references):
        return [[query_id] for query_id in ids]
    groups = dict(references.select("query_id", "group").drop_nulls().iter_rows())
    units: dict[object, list[str]] = {}
    for query_id in ids:
        units.setdefault(("group", groups[query_id]) if query_id in groups else query_id, []).append(query_id)
    return [*units.values()]


def find_queries(materials: Materials, task: StepTask) -> tables.Collection | None:
    """The dataset with the questions that a task is about; None if its parts would not be worth it, or wrong.

    Answers that are only read, and values of rankings, come from the whole at once.
    """
    dataset, system = str(task.step.dataset), str(task.step.system)
    try:
        opened = materials.open(dataset)
    except DataError:
        return None  # whoever computes the task gets the same error, and says so
    is_answering = system in opened.answering
    if task.step.kind == "evaluate":
        return opened.asked if is_answering else None
    if task.step.kind == "answer":
        return opened.asked if materials.parts.systems[system].can_be_asked else None
    whole = materials.open_whole(dataset).collection
    return whole if materials.parts.system(system).is_separable else None


def _take(
    task: StepTask, count: int, place: int, queries: tables.Collection, metrics: frozenset[str] | None = None
) -> StepTask:
    """A part of a task, with what it reads of the tables of the steps before."""
    part = QuestionPart(place, count, queries, metrics)
    wanted = queries.questions
    if count == 1 or wanted is None:
        return replace(task, part=part)
    inputs = {name: tables.only_queries(table, wanted) for name, table in task.inputs.items()}
    return replace(task, inputs=inputs, part=part)


def _order(table: pl.DataFrame, queries: tables.Collection | None) -> pl.DataFrame:
    """The rows in the order of the dataset's queries; those of a query stay in their order."""
    wanted = None if queries is None else queries.questions
    if wanted is None:
        raise DataError("a step without queries has no parts")
    order = wanted.select("query_id").unique(maintain_order=True)
    return order.join(table, on="query_id", how="inner", maintain_order="left_right").select(table.columns)


def _add_shares(shares: Sequence[RunShare]) -> RunShare | None:
    """The seconds of all parts; each of them searched all documents."""
    if not shares:
        return None
    return RunShare(
        sum(one.seconds for one in shares), sum(one.reused for one in shares), max(one.documents for one in shares)
    )


def _add_taken_over(parts: Sequence[TakenOver]) -> TakenOver | None:
    if not parts:
        return None
    firsts = [one.first for one in parts if one.first is not None]
    lasts = [one.last for one in parts if one.last is not None]
    commits: dict[str, int] = {}
    for one in parts:
        for commit, count in one.commits.items():
            commits[commit] = commits.get(commit, 0) + count
    return replace(
        parts[0],
        answers=sum(one.answers for one in parts),
        questions=sum(one.questions for one in parts),
        sources=tuple(dict.fromkeys(source for one in parts for source in one.sources)),
        first=min(firsts, default=None),
        last=max(lasts, default=None),
        undated=sum(one.undated for one in parts),
        commits=commits,
    )
