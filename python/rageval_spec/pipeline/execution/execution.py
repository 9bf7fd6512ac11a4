"""Executes the plan: loads each table from the store or has it computed, until every query has its values.

The engine maps `runs.compute` over the steps; only this side loads from the store and saves to it. A
system that fails does not stop the others: its values get the status "error" with the reason, and the failure is
reported. A dataset that cannot be read stops the evaluation, because without it the queries are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from rageval_spec.data.datasets import EvaluatedQueries
from rageval_spec.data.outcomes import AskedQuestions, Note, TakenOver
from rageval_spec.data.tables import ASKED, only_queries
from rageval_spec.dataclass import dataclass, field, fields, replace
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.libraries import pl
from rageval_spec.pipeline.execution.runs import RunTables, TimedRun, Timing, Work
from rageval_spec.pipeline.execution.stopping_decision import Failed, Round, Stopper
from rageval_spec.pipeline.planning.plan import StepTask, SystemFailure, TaskResult
from rageval_spec.pipeline.planning.preflight import list_labelled
from rageval_spec.pipeline.planning.question_selection import list_ids
from rageval_spec.pipeline.values import ranking_values as values
from rageval_spec.pipeline.values.answer_values import brief_judges
from rageval_spec.pipeline.values.ranking_values import drops_self, retrieve
from rageval_spec.pipeline.values.sample_tables import SampleParts
from rageval_spec.pipeline.values.step_inputs import OpenedDataset
from rageval_spec.pipeline.values.system_values import find_run_file, give_up
from rageval_spec.plugin import AnswerMetric
from rageval_spec.store.stored_tables import AnyTable


@dataclass(frozen=True)
class Execution:
    """The result of executing a plan, or a part of it: the results of parts are added up.

    Attributes:
        values: columns `values.COLUMNS`, with datasets, systems and metrics in the order of the spec.
        samples: the parts of the samples table, in the same order.
        asked: how many questions of each dataset were asked, if the evaluation may stop before the last one.
        rounds: the last round of each dataset of which not all questions were asked.
        taken_over: the answers that were not asked now, for each dataset and system that has some.
        times: `dataset, system, query_id, asked` of those of them whose time is known.
    """

    values: pl.DataFrame = field(default_factory=partial(values.concatenate, ()))
    notes: tuple[Note, ...] = ()
    failures: tuple[SystemFailure, ...] = ()
    timings: tuple[Timing, ...] = ()
    samples: tuple[SampleParts, ...] = ()
    evaluated: tuple[EvaluatedQueries, ...] = ()
    asked: tuple[AskedQuestions, ...] = ()
    rounds: tuple[Round, ...] = ()
    taken_over: tuple[TakenOver, ...] = ()
    times: tuple[pl.DataFrame, ...] = ()


def execute(work: Work) -> Execution:
    """Compute the values of every metric of every system on every dataset.

    A metric of answers has no values for a system that only retrieves. A ranking metric has none for a system whose
    answers do not name the documents they were made from. Raises `RagevalError` if a dataset cannot be read.
    """
    brief_judges(work.parts.answer_metrics)
    found = _add_up([part for dataset in work.parts.datasets for part in _execute_dataset(work, dataset)])
    return replace(found, failures=(*found.failures, *_find_unmeasured(work, found.values)))


def _add_up(parts: Sequence[Execution]) -> Execution:
    """The results of all parts, in order; equal notes are one."""
    lists = {one.name: tuple(chain(*(getattr(part, one.name) for part in parts))) for one in fields(Execution)[1:]}
    lists["notes"] = tuple(dict.fromkeys(lists["notes"]))
    return Execution(values.concatenate([part.values for part in parts]), **lists)


def _execute_dataset(work: Work, dataset: str) -> Iterator[Execution]:
    work.announce(f"read {dataset}")
    opened = work.materials.open_whole(dataset)
    yield Execution(notes=opened.notes)
    runs = RunTables(work, opened)
    runs.retrieve_missing()
    yield Execution(notes=tuple(runs.remark_on_sources()))
    if work.stopper is None or not opened.answering:
        yield Execution(evaluated=(list_evaluated(work, opened),))
        yield from _evaluate_systems(work, opened, runs)
    else:
        yield from _execute_rounds(work, work.stopper, opened, runs)


def _evaluate_systems(work: Work, opened: OpenedDataset, runs: RunTables, progress: str = "") -> Iterator[Execution]:
    systems = list(work.parts.systems)
    for group in [[system] for system in systems] if work.engine.shares_cores else [systems]:
        yield from _Group(work, opened, runs, group, progress).evaluate()


def _execute_rounds(work: Work, stopper: Stopper, whole: OpenedDataset, runs: RunTables) -> Iterator[Execution]:
    """Ask some questions, then some more, until every gate is decided.

    Each round computes the metrics of gates on its own questions. At the end, all metrics are computed on all questions
    that were asked; no call is made again.
    """
    dataset, materials = whole.collection.name, work.materials
    order, evaluated = materials.shuffle(dataset), list_evaluated(work, whole)
    total = len(order)
    gated = work.narrow(stopper.list_metrics(dataset))
    edits = {} if stopper.explain_all(dataset) else stopper.compare_data(evaluated)
    asked, judged = (frozenset(list_ids(table)) for table in (whole.asked.queries, whole.collection.qrels))
    count, done = 0, Round(evaluated, asked, judged, order, 0, values.concatenate([]), None, edits)
    for count in stopper.list_counts(dataset, total):
        if count == total:
            break
        materials.drawn[dataset] = (done.count, count)
        progress = f" ({count:,} of at most {total:,} questions)"
        found = _add_up([*_evaluate_systems(gated, materials.open(dataset), runs, progress)])
        done = done.extend(count, found.values, _list_failed(found))
        if work.budget.stopped is not None or stopper.is_decided(done):
            break
    materials.drawn[dataset] = (0, count)
    opened = materials.open(dataset)
    yield Execution(evaluated=(list_evaluated(work, opened),))
    found = _add_up([*_evaluate_systems(work, opened, runs)])
    yield found
    done = Round(evaluated, asked, judged, order, count, found.values, _list_failed(found), edits)
    told = stopper.describe(done, is_interrupted=work.budget.stopped is not None)
    yield Execution(asked=(told,), rounds=(done,) if told.is_part else ())


def _list_failed(found: Execution) -> frozenset[Failed]:
    """The systems, and the metrics of systems, that failed."""
    return frozenset((failure.system, failure.metric) for failure in found.failures)


def list_evaluated(work: Work, opened: OpenedDataset) -> EvaluatedQueries:
    """The queries that are evaluated, without a reference to the corpus, so that it can be freed."""
    collection, asked = opened.collection, opened.asked if opened.answering else None
    qrels = collection.qrels
    ids = [table["query_id"] for table in (qrels, None if asked is None else asked.queries) if table is not None]
    reads_questions = asked is not None or any("queries" in system.needs for system in work.parts.systems.values())
    kept = replace(asked or collection, load_corpus=None, load_qrels=lambda: qrels)
    every = pl.concat(ids) if ids else pl.Series([], dtype=pl.String)
    return EvaluatedQueries(kept, every, reads_questions, reads_references=asked is not None)


class _Group:
    def __init__(
        self, work: Work, opened: OpenedDataset, runs: RunTables, systems: Sequence[str], progress: str = ""
    ) -> None:
        self._work = work
        self._opened = opened
        self._dataset = opened.collection.name
        self._runs = runs
        self._systems = systems
        self._progress = progress
        self._answers: dict[str, TaskResult] = {}
        self._taken: dict[str, TimedRun] = {}
        self._errors: dict[str, Exception] = {}

    def evaluate(self) -> Iterator[Execution]:
        """Ask the systems that answer, take the runs of the others, and compute the values of each."""
        asked = [system for system in self._systems if system in self._opened.answering]
        if asked:
            self._work.announce(f"ask {', '.join(asked)} on {self._dataset}{self._progress}")
            asking = [StepTask(self._work.plan.retrieval(self._dataset, system)) for system in asked]
            self._answers = dict(zip(asked, self._work.map(asking), strict=True))
        tasks = {system: task for system in self._systems if (task := self._prepare(system)) is not None}
        for verb, group in (("judge", self._answers.keys()), ("evaluate", tasks.keys() - self._answers.keys())):
            if named := [system for system in tasks if system in group]:
                self._work.announce(f"{verb} {', '.join(named)} on {self._dataset}{self._progress}")
        made = dict(zip(tasks, self._work.map(list(tasks.values())), strict=True))
        for system in self._systems:
            yield self._finish(system, made.get(system))

    def _prepare(self, system: str) -> StepTask | None:
        """The task that computes a system's values; None if its run or its answers could not be made."""
        step = self._work.plan.evaluation(self._dataset, system)
        if system in self._answers:
            table, error = self._answers[system].answers, self._answers[system].error
            if table is not None:
                return StepTask(step, {system: table})
            self._errors[system] = error or DataError("the system returned no answers")
            return None
        if find_run_file(self._work.materials, self._opened, system) is not None:
            return StepTask(step)
        try:
            taken = self._runs.take(system)
            if self._opened.is_drawn and (qrels := self._opened.collection.qrels) is not None:
                taken = replace(taken, run=only_queries(taken.run, qrels))
        except Exception as error:
            self._errors[system] = error
            return None
        self._taken[system] = taken
        return StepTask(step, {system: taken.run})

    def _finish(self, system: str, made: TaskResult | None) -> Execution:
        if made is None or made.table is None:
            error = self._errors.get(system) or (made and made.error) or DataError("the system has no values")
            made = give_up(self._work.materials, self._opened, system, error)
        assert made.table is not None, "a system that fails as a whole has errors for values"
        answers, run = self._answers.get(system), self._taken.get(system)
        samples, remarks = self._take_samples(system)
        found = Execution(made.table, (*made.written_notes, *remarks), made.failures, samples=samples)
        if made.error is not None:  # the failure replaces all other notes
            return found
        if answers is None:
            return found if run is None else replace(found, notes=(*run.notes, *found.notes), timings=(run.timing,))
        taken = answers.taken_over and replace(answers.taken_over, dataset=self._dataset, system=system)
        is_part = self._work.limit is not None or self._opened.is_drawn  # answers to other queries are expected then
        notes = [note for note in answers.written_notes if not is_part or note.code != "unknown_queries"]
        notes = [replace(note, dataset=self._dataset, system=system) for note in notes]
        times = self._list_times(system, answers.answers)
        return replace(found, notes=(*notes, *found.notes), taken_over=(taken,) if taken else (), times=times)

    def _list_times(self, system: str, answers: AnyTable | None) -> tuple[pl.DataFrame, ...]:
        """When the answers were asked that were not asked now; nothing if no time is known."""
        if answers is None or ASKED not in answers.columns:
            return ()
        told = answers.select("query_id", ASKED).drop_nulls()
        if told.is_empty():
            return ()
        return (told.select(pl.lit(self._dataset).alias("dataset"), pl.lit(system).alias("system"), pl.all()),)

    def _take_samples(self, system: str) -> tuple[tuple[SampleParts, ...], Sequence[Note]]:
        """What the samples of a system are built from, with a note if the dataset's texts cannot be read for them."""
        is_answering = system in self._opened.answering
        joins_labels = bool(list_labelled(self._work.parts.metrics))
        if (self._work.spec.samples == "none" and not joins_labels) or system in self._errors:
            return (), ()
        if is_answering:
            answers = self._answers[system].answers
            return () if answers is None else (SampleParts.of(self._opened.asked, system, answers),), ()
        collection, ranking, taken = self._opened.collection, self._work.spec.ranking, self._taken.get(system)
        run = retrieve(self._work.parts.system(system), collection, {}).run if taken is None else taken.run
        if drops_self(ranking, collection, run):  # as it was evaluated
            run = run.filter(run["query_id"] != run["doc_id"])
        wants_texts = self._work.spec.samples == "full" and "contexts" not in self._work.spec.redact
        try:
            return (SampleParts.of_run(collection, system, run, with_texts=wants_texts),), ()
        except RagevalError as error:
            told = Note("no_texts", f"the samples have no texts: {error}", self._dataset, system, level="warning")
            unread = replace(collection, load_queries=None, load_corpus=None, load_columns=None)
            return (SampleParts.of_run(unread, system, run, with_texts=False),), (told,)


def _find_unmeasured(work: Work, table: pl.DataFrame) -> Iterator[SystemFailure]:
    """A failure for each metric without a value or an error of any system: the spec should not ask for it."""
    found = {*table["metric"].unique()}
    for name, metric in work.parts.metrics.items():
        if name not in found:
            reason = "it is a metric of rankings, and the answers of these systems do not name their documents"
            if isinstance(metric, AnswerMetric):
                reason = "it is a metric of answers, and these systems only retrieve; use http, python, command or file"
            error = DataError(f"it cannot be computed for any system: {reason}")
            dataset, system = next(iter(work.parts.datasets)), next(iter(work.parts.systems))
            yield SystemFailure(dataset, system, str(error), error, name)
