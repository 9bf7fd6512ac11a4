"""The inputs of an execution, and the runs of one dataset's systems, from the store or newly retrieved.

An engine maps `compute` over the tasks of an execution. It computes the table of a step and never touches the stored
tables.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rageval_spec.data import tables
from rageval_spec.data.outcomes import Note
from rageval_spec.dataclass import asdict, dataclass, field, replace
from rageval_spec.errors import DataError, RagevalError, StoreWarning
from rageval_spec.pipeline.execution.step_parts import combine, deal_evenly, find_queries, restore, split
from rageval_spec.pipeline.execution.stopping_decision import Stopper
from rageval_spec.pipeline.planning.plan import EvaluationPlan, PlanStep, RunShare, StepTask, TaskResult, explain
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.values.ranking_values import retrieve_run
from rageval_spec.pipeline.values.sample_tables import answer_queries
from rageval_spec.pipeline.values.step_inputs import Materials, OpenedDataset
from rageval_spec.pipeline.values.system_values import compute_values
from rageval_spec.plugin import Engine, Shared
from rageval_spec.plugin.block_names import names_in
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.plugin import say_nothing
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.store.store import Store

if TYPE_CHECKING:
    import polars as pl


_MANY = 100_000
"""How many documents a corpus is taken to have, whose size is not known before it is read."""
_MOST_FOUND = 30_000_000
"""How many rows all parts of a search may give together: about 1 GB where they are joined."""
_COMPUTE: dict[str, Callable[[Materials, StepTask], TaskResult]] = {
    "retrieve": retrieve_run,
    "answer": answer_queries,
    "evaluate": compute_values,
}


def compute(materials: Materials, task: StepTask) -> TaskResult:
    """Compute a task, in this process or another one. If it fails, `error` of the result says why."""
    try:
        return _COMPUTE[task.step.kind](materials, restore(materials, task))
    except Exception as error:
        return TaskResult(error=error)


def embed_part(materials: Materials, part: tuple[str, str, int, int]) -> None:
    """Embed a part of a dataset's documents for a system. If that fails, its retrieval fails too, and says why."""
    dataset, system, place, count = part
    with suppress(Exception):
        materials.parts.system(system).embed_part(materials.open_whole(dataset).collection, place, count)


def map_parts(work: Work, tasks: Sequence[StepTask]) -> Iterator[TaskResult]:
    """Let the engine compute tasks in parts."""
    for task, parts, results in compute_parts(work, tasks):
        yield combine(work.materials, task, parts, results)


def compute_parts(
    work: Work, tasks: Sequence[StepTask]
) -> Iterator[tuple[StepTask, Sequence[StepTask], Sequence[TaskResult]]]:
    """Each task, with the parts of it that the engine computed, and their results."""
    _begin_asking(work, tasks)
    parts = [_split(work, task) for task in tasks]
    results = work.engine.map(partial(compute, work.materials), [*chain.from_iterable(parts)])
    for task, of_task in zip(tasks, parts, strict=True):
        yield task, of_task, [*islice(results, len(of_task))]


def _begin_asking(work: Work, tasks: Sequence[StepTask]) -> None:
    """Let systems begin here that other processes ask, because they finish here."""
    asked = [task.step for task in tasks if task.step.kind == "answer" and work.engine.reach is not None]
    for step in asked:
        system = work.parts.systems[str(step.system)]
        if system.can_be_asked:
            system.begin(work.materials.open(str(step.dataset)).asked)


def _split(work: Work, task: StepTask) -> list[StepTask]:
    """The parts of a task that the engine wants: of its questions, or of the documents where those have vectors.

    No process then needs all vectors.
    """
    if not _has_vectors(work, task):
        return split(work.materials, task, partial(work.engine.count_parts, task.step.kind), deal_evenly)
    count = _count_searches(work, task)
    return [replace(task, documents=(place, count)) for place in range(count)] if count > 1 else [task]


def _has_vectors(work: Work, task: StepTask) -> bool:
    return task.step.kind == "retrieve" and work.parts.system(str(task.step.system)).search_width > 0


def _count_searches(work: Work, task: StepTask) -> int:
    """Into how many parts of the documents a search is split."""
    queries = find_queries(work.materials, task)
    if queries is None or queries.queries is None:
        return 1
    found = queries.queries.height * work.parts.system(str(task.step.system)).search_width
    return max(1, min(work.engine.count_parts("search", _MANY), _MOST_FOUND // max(1, found)))


@dataclass(frozen=True)
class Work:
    """Everything that an execution needs. `announce` is called with what is being done.

    `stopper` decides when enough questions were asked; without one, all questions are asked. `mapping` says how tasks
    become results: by default, the engine computes all of them. `shared` is what it opens for its processes.
    """

    spec: Spec
    parts: SpecPlugins
    plan: EvaluationPlan
    store: Store
    engine: Engine[Any]
    limit: int | None = None
    announce: Callable[[str], None] = say_nothing
    budget: Budget = field(default_factory=Budget)
    stopper: Stopper | None = None
    mapping: Callable[[Work, Sequence[StepTask]], Iterator[TaskResult]] = map_parts
    shared: Shared = field(default_factory=Shared)
    _materials: Materials | None = None

    @cached_property
    def materials(self) -> Materials:
        return self._materials or Materials(
            self.spec, self.parts, self.limit, self.budget, self.store.folder, engine=self.engine
        )

    def narrow(self, metrics: Container[str]) -> Work:
        """The same with only these metrics; the datasets that are open are shared."""
        materials = self.materials.narrow(metrics)
        return replace(self, spec=materials.spec, parts=materials.parts, _materials=materials)

    def map(self, tasks: Sequence[StepTask]) -> Iterator[TaskResult]:
        """The results of tasks, in their order."""
        return self.mapping(self, tasks)

    def embed(self, tasks: Sequence[StepTask]) -> None:
        """Have other processes embed the documents that these retrievals read, each a part of them.

        Processes that search parts embed them, too; this is for retrievals that all processes cannot search.
        """
        if self.engine.reach is None:
            return
        count = self.engine.count_parts("embed", _MANY)
        for task in tasks:
            if _has_vectors(self, task) and _count_searches(self, task) < max(2, self.engine.count_parts("search", 1)):
                parts = [(str(task.step.dataset), str(task.step.system), place, count) for place in range(count)]
                deque(self.engine.map(partial(embed_part, self.materials), parts), maxlen=0)


_FORMAT = 2
"""The format of the records beside stored runs. Records of the first format do not name it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The time that a system took to retrieve on a dataset.

    Attributes:
        seconds: the wall time of its own work; `total` has that of the systems whose runs it reads too, each once.
        documents: how many documents any of them searched; 0 if none reads a corpus.
        stored: True if the run came from the store; the seconds are then those of its original computation.
        reused: the number of texts whose vectors were in the store; the seconds then say little.
        made: when it was retrieved, in UTC, as ISO 8601 with seconds; None if an earlier version stored it.
    """

    dataset: str
    system: str
    seconds: float
    total: float
    documents: int
    queries: int
    stored: bool
    reused: int
    made: str | None = None


@dataclass(frozen=True, slots=True)
class TimedRun:
    """A run, its notes, its time, and the share of each system that contributed to it, itself included, by name."""

    run: pl.DataFrame
    notes: tuple[Note, ...]
    timing: Timing
    shares: Mapping[str, RunShare]


Sources = Mapping[str, TimedRun]
"""The runs that a system reads, by the name of the system that made them."""


class RunTables:
    """Loads runs from the store, or has them retrieved; no run is made twice.

    With a limit, the rows of other queries than those to be evaluated are removed from a run that has them.
    """

    def __init__(self, work: Work, opened: OpenedDataset) -> None:
        self._work = work
        self._parts = work.parts
        self._store = work.store
        self._collection = opened.collection
        self._answering = opened.answering
        read_again = [] if work.stopper is None else self._all()
        self._shared = {*read_again, *(source for system in self._all() for source in self._sources(system))}
        self._taken: dict[str, TimedRun] = {}
        self._errors: dict[str, Exception] = {}
        self._made: set[str] = set()
        self._unsaved: dict[str, TimedRun] = {}

    def retrieve_missing(self) -> None:
        """Retrieve the runs that belong in the store and are not there. Systems that answer are skipped.

        A system that reads the runs of others comes after them. The systems of a level run at the same time; but if
        they share the cores of this machine, those that run a model run alone. An error is raised when its run is
        taken.
        """
        needed = self._find_needed()
        for level in self._parts.levels():
            missing = [step for step in map(self._step, level) if step.system in needed and self._is_missing(step)]
            steps = list({step.key: step for step in missing}.values())
            users = [step for step in steps if names_in(self._parts.system(str(step.system)).node, "models")]
            alone = users if self._work.engine.shares_cores else []
            together = [step for step in steps if step not in alone]
            for group in (together, *([step] for step in alone)):
                self._retrieve_group(group)

    def take(self, system: str) -> TimedRun:
        """The run of a system. Raises its exceptions, and `DataError` if a run that it reads could not be made."""
        if system in self._errors:
            raise self._errors[system]
        if system in self._taken:
            return self._taken[system]
        step = self._step(system)
        found = self._load(step) or self._make(step)
        if self._work.limit is not None:
            found = replace(found, run=self._only_asked(found.run))
        if system in self._shared:
            self._taken[system] = found
        return found

    def remark_on_sources(self) -> Iterator[Note]:
        """The notes on runs that are not evaluated themselves, but that evaluated systems read."""
        for source in self._parts.sources:
            step = self._step(source)
            if step.stored:
                unsaved = self._unsaved.get(step.key)
                notes = self._read_notes(step) if unsaved is None else unsaved.notes
                yield from self._place(notes or (), step)

    def _all(self) -> Sequence[str]:
        return [*self._parts.sources, *self._parts.systems]

    def _step(self, system: str) -> PlanStep:
        return self._work.plan.retrieval(self._collection.name, system)

    def _sources(self, system: str) -> Sequence[str]:
        return names_in(self._parts.system(system).node, "systems")

    def _is_missing(self, step: PlanStep) -> bool:
        return step.stored and not self._store.has(step.key)

    def _find_needed(self) -> set[str]:
        """The systems whose runs are needed: the evaluated ones, and the sources of runs that are still to be made."""
        needed: set[str] = set()
        waiting = [system for system in self._parts.systems if system not in self._answering]
        while waiting:
            system = waiting.pop()
            needed.add(system)
            step = self._step(system)
            if not step.stored or self._is_missing(step):
                waiting.extend(source for source in self._sources(system) if source not in needed)
        return needed

    def _retrieve_group(self, steps: Sequence[PlanStep]) -> None:
        if not steps:
            return
        self._work.announce(f"retrieve {', '.join(str(step.system) for step in steps)} on {self._collection.name}")
        if self._work.engine.shares_cores:
            for part in sorted({part for step in steps for part in self._parts.system(str(step.system)).needs}):
                # loaded once, before the threads share it; a corpus is read as each system reads it
                getattr(self._collection, "documents" if part == "corpus" else part)
        ready: list[tuple[PlanStep, Sources]] = []
        for step in steps:
            try:
                ready.append((step, self._take_sources(str(step.system))))
            except DataError as error:
                self._fail(step, error)
        tasks = [self._task(step, sources) for step, sources in ready]
        self._work.embed(tasks)
        for (step, sources), made in zip(ready, self._work.map(tasks), strict=True):
            if made.error is None:
                self._save(step, made, self._finish(step, made, sources))
            else:
                self._fail(step, made.error)

    def _fail(self, step: PlanStep, error: Exception) -> None:
        """Keep an error for all systems that share this run."""
        twins = [name for name in self._all() if (twin := self._step(name)).stored and twin.key == step.key]
        self._errors.update(dict.fromkeys(twins, error))

    def _save(self, step: PlanStep, made: TaskResult, run: TimedRun) -> None:
        """Save a run in the store. If that fails, keep it in memory until the end."""
        notes = [asdict(note) for note in made.written_notes]
        try:
            record = {"format": _FORMAT, "timing": asdict(run.timing), "notes": notes, "shares": run.shares}
            self._store.save(step.key, run.run, record)
        except RagevalError as error:
            warnings.warn(f"the run of {step.system} is used but could not be stored: {error}", StoreWarning, 2)
            self._unsaved[step.key] = run
        self._made.add(step.key)

    def _load(self, step: PlanStep) -> TimedRun | None:
        if not step.stored:
            return None
        if (unsaved := self._unsaved.get(step.key)) is not None:
            return replace(unsaved, notes=self._place(unsaved.notes, step))
        run = self._store.load(step.key)
        if run is None:
            return None
        record, notes = self._store.record(step.key), self._read_notes(step)
        try:
            timing = Timing(**{**record["timing"], **self._cell(step), "stored": step.key not in self._made})
            shares = {name: RunShare(*share) for name, share in record["shares"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            notes = None
        if notes is None or ("format" not in record and self._is_outdated(str(step.system))):
            self._store.forget(step.key)  # a run without its notes is incomplete
            return None
        return TimedRun(run, self._place(notes, step), timing, shares)

    def _is_outdated(self, system: str) -> bool:
        """Whether a run of the first format is outdated, because of its system or of one whose run that reads."""
        if self._parts.system(system).is_outdated(self._collection):
            return True
        return any(self._is_outdated(source) for source in self._sources(system))

    def _read_notes(self, step: PlanStep) -> tuple[Note, ...] | None:
        """The notes that are stored beside a run, read without its rows; None if there are none."""
        try:
            stored = self._store.record(step.key)["notes"]  # in JSON, tuples are lists
            return tuple(Note(**{**note, "table": tuple(map(tuple, note.get("table", ())))}) for note in stored)
        except (KeyError, TypeError):
            return None

    def _make(self, step: PlanStep) -> TimedRun:
        """Have a run retrieved, and save it if it belongs in the store."""
        sources = self._take_sources(str(step.system))
        (made,) = self._work.map([self._task(step, sources)])
        if made.error is not None:
            raise made.error
        run = self._finish(step, made, sources)
        if step.stored:
            self._save(step, made, run)
        return run

    def _task(self, step: PlanStep, sources: Sources) -> StepTask:
        return StepTask(step, {name: self._only_asked(source.run) for name, source in sources.items()})

    def _finish(self, step: PlanStep, made: TaskResult, sources: Sources) -> TimedRun:
        """The new run, with its timing and the shares of the runs that it read."""
        assert made.table is not None and made.share is not None, "a retrieval without an error has both"
        shares = {name: share for source in sources.values() for name, share in source.shares.items()}
        shares |= {str(step.system): made.share}
        timing = Timing(
            **self._cell(step),
            seconds=made.share.seconds,
            total=sum(share.seconds for share in shares.values()),
            documents=max(share.documents for share in shares.values()),
            queries=made.queries,
            stored=False,
            reused=sum(share.reused for share in shares.values()),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        return TimedRun(made.table, self._place(made.written_notes, step), timing, shares)

    def _only_asked(self, run: pl.DataFrame) -> pl.DataFrame:
        assert self._collection.qrels is not None, "nothing is retrieved without judgements"
        return tables.only_queries(run, self._collection.qrels)

    def _take_sources(self, system: str) -> Sources:
        runs = {}
        for source in self._sources(system):
            if self._step(source).kind == "answer":
                raise DataError(f"reads the run of '{source}', which gives answers and no run")
            try:
                runs[source] = self.take(source)
            except Exception as error:
                raise DataError(f"reads the run of '{source}', which could not be made: {explain(error)}") from error
        return runs

    def _cell(self, step: PlanStep) -> dict[str, str]:
        return {"dataset": self._collection.name, "system": str(step.system)}

    def _place(self, notes: Sequence[Note], step: PlanStep) -> tuple[Note, ...]:
        return tuple(replace(note, dataset=self._collection.name, system=step.system) for note in notes)
