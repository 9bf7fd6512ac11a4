"""Computes one shard of an evaluation, or takes the results of all shards in place of computing.

A shard computes its part of the steps that ask, retrieve and measure. What reads everything at once is left to whoever
puts the shards together: rankings' values, runs in files, and systems and metrics that cannot work on a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import DataError
from rageval_spec.pipeline.execution.execution import list_evaluated
from rageval_spec.pipeline.execution.question_clusters import list_units
from rageval_spec.pipeline.execution.runs import RunTables, Work, compute, compute_parts, map_parts
from rageval_spec.pipeline.execution.step_parts import (
    combine,
    find_queries,
    join_results,
    list_metrics,
    take_shard,
    take_whole,
)
from rageval_spec.pipeline.planning.plan import PlanStep, StepKind, StepTask, TaskResult, explain
from rageval_spec.pipeline.planning.question_selection import list_ids, narrow_datasets
from rageval_spec.pipeline.planning.question_shards import deal
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.values.answer_values import brief_judges
from rageval_spec.plugin.block_names import names_in
from rageval_spec.plugin.budget import Shard
from rageval_spec.wording import count_noun

StepName: TypeAlias = "tuple[StepKind, str, str]"
"""The kind of a step, its dataset and its system."""


def name_step(step: PlanStep) -> StepName:
    return step.kind, str(step.dataset), str(step.system)


@dataclass(frozen=True)
class Dealing:
    """Deals the questions of each dataset to `total` shards, when they are first needed."""

    total: int
    _dealt: dict[str, list[frozenset[str]]] = field(default_factory=dict)

    def list_shards(self, work: Work, dataset: str) -> list[frozenset[str]]:
        """The ids of the questions of each shard. Raises `RagevalError` if the dataset cannot be read."""
        if dataset not in self._dealt:
            evaluated = list_evaluated(work, work.materials.open_whole(dataset))
            self._dealt[dataset] = deal(list_units(work.spec, evaluated), self.total)
        return self._dealt[dataset]


@dataclass
class ShardResults:
    """What a shard computed, for each step; and how many questions it has of how many, over all datasets."""

    results: dict[StepName, TaskResult] = field(default_factory=dict)
    questions: int = 0
    total: int = 0

    def list_failures(self) -> Iterator[str]:
        """The steps and metrics that failed as a whole."""
        for (_, dataset, system), one in self.results.items():
            if one.error is not None:
                yield f"{system} on {dataset}: {explain(one.error)}"
            for metric, measured in one.measured.items():
                if measured.error is not None:
                    yield f"{metric} of {system} on {dataset}: {explain(measured.error)}"

    def describe(self) -> Iterator[str]:
        """What was computed for each system: answers, documents and values, in a sentence."""
        for (kind, dataset, system), one in self.results.items():
            if kind == "answer" and one.table is not None:
                answered = one.table["error"].null_count()
                yield f"{system} on {dataset}: answered {answered:,} of {count_noun(one.table.height, 'question')}"
            elif kind == "retrieve" and one.table is not None:
                yield f"{system} on {dataset}: retrieved for {count_noun(one.queries, 'query', 'queries')}"
            for metric, measured in one.measured.items():
                scored = measured.table.filter(status="scored").height
                yield f"{metric} of {system} on {dataset}: scored {scored:,} of {measured.table.height:,}"


def compute_shard(work: Work, shard: Shard) -> ShardResults:
    """Compute a shard's part of every step that has parts. A step that fails is in the results with its error."""
    dealing, found = Dealing(shard.total), ShardResults()
    brief_judges(work.parts.answer_metrics)
    for dataset in work.parts.datasets:
        work.announce(f"read {dataset}")
        shards = dealing.list_shards(work, dataset)
        ids = shards[shard.number - 1]
        found.questions += len(ids)
        found.total += sum(map(len, shards))
        if ids:
            part = replace(work, mapping=partial(_map_part, shard, ids, found.results), _materials=work.materials)
            _compute_dataset(part, dataset)
    return found


def narrow_to_shard(work: Work, shard: Shard) -> tuple[SpecPlugins, tuple[int, int]]:
    """The plugins with only a shard's questions of each dataset, and how many those are of how many.

    A dataset that a model has yet to write keeps all its questions, and they are not counted.
    """
    known = [name for name, dataset in work.parts.datasets.items() if not names_in(dataset.node, "models")]
    dealing = Dealing(shard.total)
    shares = {name: dealing.list_shards(work, name)[shard.number - 1] for name in known}
    narrowed = narrow_datasets(work.parts, {name: ids for name, ids in shares.items() if ids})
    kept = {name: one for name, one in narrowed.datasets.items() if name not in shares or shares[name]}
    total = sum(len(ids) for name in known for ids in dealing.list_shards(work, name))
    return replace(narrowed, datasets=kept), (sum(map(len, shares.values())), total)


def count_questions(shard: Shard, questions: int, total: int) -> str:
    """`2 of 4 questions`; for none, also why."""
    told = f"{questions:,} of {count_noun(total, 'question')}"
    return told if questions else f"{told}, because they are dealt to {count_noun(shard.total, 'shard')}"


def _compute_dataset(work: Work, dataset: str) -> None:
    opened = work.materials.open_whole(dataset)
    RunTables(work, opened).retrieve_missing()
    asked = [system for system in work.parts.systems if system in opened.answering]
    for group in [[system] for system in asked] if work.engine.shares_cores else [asked] if asked else []:
        work.announce(f"ask {', '.join(group)} on {dataset}")
        answers = dict(
            zip(group, work.map([StepTask(work.plan.retrieval(dataset, one)) for one in group]), strict=True)
        )
        tables = {system: made.answers for system, made in answers.items() if made.answers is not None}
        if tables:
            work.announce(f"judge {', '.join(tables)} on {dataset}")
        tasks = (StepTask(work.plan.evaluation(dataset, one), {one: table}) for one, table in tables.items())
        list(work.map([*tasks]))


def _map_part(
    shard: Shard, ids: frozenset[str], results: dict[StepName, TaskResult], work: Work, tasks: Sequence[StepTask]
) -> Iterator[TaskResult]:
    """Compute a shard's part of each task, and keep the results. Answers that are only read have no parts."""
    parts = [take_shard(work.materials, task, shard, ids) for task in tasks]
    wanted = [part for part in parts if part.part is not None or part.step.kind == "answer"]
    made = compute_parts(work, wanted)
    for part in parts:
        if part.part is None and part.step.kind != "answer":
            yield TaskResult(error=DataError("it is left to whoever puts the shards together"))
            continue
        result = join_results(work.materials, *next(made))
        if part.part is not None:
            results[name_step(part.step)] = result
        yield replace(result, notes=result.written_notes)


@dataclass(frozen=True)
class LoadedShard:
    """The results of a shard that was computed elsewhere. Messages name its `place`, and end with the `remedy`."""

    place: str
    results: Mapping[StepName, TaskResult]
    remedy: str


def map_shards(shards: Sequence[LoadedShard]) -> Callable[[Work, Sequence[StepTask]], Iterator[TaskResult]]:
    """Let tasks take the results of all shards, in the shards' order. What no shard computed is computed."""
    dealing = Dealing(len(shards))

    def map_all(work: Work, tasks: Sequence[StepTask]) -> Iterator[TaskResult]:
        for task in tasks:
            queries = find_queries(work.materials, task)
            name = name_step(task.step)
            if queries is None or (task.step.kind == "retrieve" and not any(name in one.results for one in shards)):
                yield from map_parts(work, [task])
                continue
            parts, results = [], []
            for place, ids in enumerate(dealing.list_shards(work, name[1])):
                if ids:
                    parts.append(take_shard(work.materials, task, Shard(place + 1, len(shards)), ids))
                    results.append(_take_result(work, parts[-1], shards[place]))
            if task.step.kind == "evaluate" and (whole := list_metrics(work.materials, task)[1]):
                parts.append(take_whole(task, len(shards) + 1, queries, whole))
                results.append(compute(work.materials, parts[-1]))
            yield combine(work.materials, task, parts, results)

    return map_all


def _take_result(work: Work, task: StepTask, shard: LoadedShard) -> TaskResult:
    """A shard's result of its part of a task. Raises `DataError` if it is not about the questions of the part."""
    assert task.part is not None, "only tasks with parts have results of shards"
    name = name_step(task.step)
    found = shard.results.get(name)
    if found is None:
        raise _complain(shard, f"it has no result of the step '{task.step.title}'")
    if found.error is not None:
        return found
    queries = task.part.queries
    wanted = set(list_ids(queries.questions))
    if task.step.kind != "evaluate":
        rows = None if found.table is None else found.table["query_id"]
        is_whole = rows is not None and (task.step.kind != "answer" or not rows.is_duplicated().any())
        if rows is None or not is_whole or not wanted.issuperset(rows):
            raise _complain(shard, f"the result of the step '{task.step.title}' is of other questions")
        return found
    for metric in list_metrics(work.materials, task)[0]:
        measured = found.measured.get(metric)
        if measured is None or sorted(measured.table["query_id"]) != sorted(wanted):
            raise _complain(shard, f"its values of {metric} of {name[2]} on {name[1]} are not of its questions")
    return found


def _complain(shard: LoadedShard, fault: str) -> DataError:
    return DataError(f"{shard.place} is damaged: {fault}; {shard.remedy}")
