"""The runs of one dataset's systems: those that the store has, and those that have to be retrieved."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data import tables
from rageval_spec.data.evaluation import Note
from rageval_spec.errors import DataError, RagevalError, StoreWarning, no_exit
from rageval_spec.plugin import Engine, Retrieval, System
from rageval_spec.plugin.names import names_in

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.pipeline.plan import Parts, Plan, Step
    from rageval_spec.store.tables import Record, Store


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a system took to retrieve on a dataset.

    Attributes:
        seconds: wall time of its own work; `total` also has that of the systems whose runs it reads, each once.
        documents: how many it searched, itself or in the systems whose runs it reads; 0 where none reads a corpus.
        queries: how many were asked.
        stored: the run was in the store, and the seconds are those of the time when it was computed.
        reused: how many texts needed no model because it had answered them before: then the seconds say little.
    """

    dataset: str
    system: str
    seconds: float
    total: float
    documents: int
    queries: int
    stored: bool
    reused: int


class Share(NamedTuple):
    """What one system gave to a run: its own seconds, the texts that it reused, and the documents that it searched."""

    seconds: float
    reused: int
    documents: int


@dataclass(frozen=True, slots=True)
class TimedRun:
    """A run `query_id, doc_id, score`, remarks on it, and how long it took to make.

    `shares` has what each system that had a part in it gave, itself included, by name.
    """

    run: pl.DataFrame
    notes: tuple[Note, ...]
    timing: Timing
    shares: Mapping[str, Share]


class Runs:
    """Takes runs from the store, or retrieves them; no run is made twice.

    `collection` has the queries alone that are to be asked. With `cut`, other queries' rows are taken out of a run
    that has them.
    """

    def __init__(
        self,
        parts: Parts,
        plan: Plan,
        store: Store,
        collection: Collection,
        *,
        cut: bool,
        answering: AbstractSet[str] = frozenset(),
    ) -> None:
        """Retrieve nothing yet, and nothing at all for the systems of `answering`."""
        self._parts = parts
        self._plan = plan
        self._store = store
        self._collection = collection
        self._cut = cut
        self._answering = answering
        self._shared = {source for system in self._all() for source in self._sources(system)}
        self._taken: dict[str, TimedRun] = {}
        self._errors: dict[str, Exception] = {}
        self._made: set[str] = set()
        self._unsaved: dict[str, TimedRun] = {}

    def retrieve_missing(self, engine: Engine[Any], announce: Callable[[str], None]) -> None:
        """Retrieve what belongs in the store and is not there.

        A system that reads others' runs comes after these. Systems that run a model have the cores for themselves,
        one after the other; the others of a level run side by side. An error waits until its run is taken.
        """
        needed = self._find_needed()
        for level in self._parts.levels():
            missing = [step for step in map(self._step, level) if step.system in needed and self._is_missing(step)]
            steps = list({step.key: step for step in missing}.values())
            alone = [step for step in steps if names_in(self._plugin(str(step.system)).node, "models")]
            together = [step for step in steps if step not in alone]
            for group in (together, *([step] for step in alone)):
                self._retrieve_group(group, engine, announce)

    def take(self, system: str) -> TimedRun:
        """The run of a system.

        Raises:
            Exception: whatever the system raised; `DataError` where a run that it reads could not be made.
        """
        if system in self._errors:
            raise self._errors[system]
        if system in self._taken:
            return self._taken[system]
        step = self._step(system)
        found = self._load(step) or self._make(step)
        if self._cut:
            found = replace(found, run=self._only_asked(found.run))
        if system in self._shared:
            self._taken[system] = found
        return found

    def remark_on_sources(self) -> Iterator[Note]:
        """Remarks on the runs that are not evaluated themselves, and are part of those that are."""
        for source in self._parts.sources:
            step = self._step(source)
            if step.stored:
                unsaved = self._unsaved.get(step.key)
                notes = self._read_notes(step) if unsaved is None else unsaved.notes
                yield from self._place(notes or (), step)

    def _all(self) -> Sequence[str]:
        return [*self._parts.sources, *self._parts.systems]

    def _plugin(self, system: str) -> System[Any]:
        return self._parts.system(system)

    def _step(self, system: str) -> Step:
        return self._plan.retrieval(self._collection.name, system)

    def _sources(self, system: str) -> Sequence[str]:
        return names_in(self._plugin(system).node, "systems")

    def _is_missing(self, step: Step) -> bool:
        return step.stored and not self._store.has(step.key)

    def _find_needed(self) -> set[str]:
        """Systems whose runs are read: those that are evaluated, and the sources of those that are yet to be made."""
        needed: set[str] = set()
        waiting = [system for system in self._parts.systems if system not in self._answering]
        while waiting:
            system = waiting.pop()
            needed.add(system)
            step = self._step(system)
            if not step.stored or self._is_missing(step):
                waiting.extend(source for source in self._sources(system) if source not in needed)
        return needed

    def _retrieve_group(self, steps: Sequence[Step], engine: Engine[Any], announce: Callable[[str], None]) -> None:
        if not steps:
            return
        announce(f"retrieve {', '.join(str(step.system) for step in steps)} on {self._collection.name}")
        for part in sorted({part for step in steps for part in self._plugin(str(step.system)).needs}):
            getattr(self._collection, part)  # loaded once, before the threads share it
        for step, error in zip(steps, engine.map(self._try, steps), strict=True):
            if error is not None:
                twins = [name for name in self._all() if (twin := self._step(name)).stored and twin.key == step.key]
                self._errors.update(dict.fromkeys(twins, error))

    def _try(self, step: Step) -> Exception | None:
        try:
            made, record = self._compute(step)
        except Exception as error:
            return error
        self._save(step, made, record)
        return None

    def _save(self, step: Step, made: TimedRun, record: Record) -> None:
        """Keep a run in the store; where it cannot be written, until the end, because it is made."""
        try:
            self._store.save(step.key, made.run, record)
        except RagevalError as error:
            warnings.warn(f"the run of {step.system} is used and not kept: {error}", StoreWarning, 2)
            self._unsaved[step.key] = made
        self._made.add(step.key)

    def _load(self, step: Step) -> TimedRun | None:
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
            shares = {name: Share(*share) for name, share in record["shares"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            notes = None
        if notes is None:
            self._store.forget(step.key)  # its remarks are lost, and so the run is not whole
            return None
        return TimedRun(run, self._place(notes, step), timing, shares)

    def _read_notes(self, step: Step) -> tuple[Note, ...] | None:
        """The remarks that the store has beside a run, whose rows need not be read for them; None where it has none."""
        try:
            return tuple(Note(**note) for note in self._store.record(step.key)["notes"])
        except (KeyError, TypeError):
            return None

    def _make(self, step: Step) -> TimedRun:
        """Retrieve, and keep what is worth it."""
        made, record = self._compute(step)
        if step.stored:
            self._save(step, made, record)
        return made

    def _compute(self, step: Step) -> tuple[TimedRun, Record]:
        """The run, and what the store is to know of it."""
        system = str(step.system)
        runs = self._take_sources(system)
        start = time.perf_counter()
        sources = {name: self._only_asked(taken.run) for name, taken in runs.items()}
        found = retrieve(self._plugin(system), self._collection, sources)
        own = Share(time.perf_counter() - start, found.reused, self._count("corpus", system))
        shares = {name: share for taken in runs.values() for name, share in taken.shares.items()} | {system: own}
        timing = self._measure(step, own, shares)
        notes = [asdict(note) for note in found.notes]
        record = {"timing": asdict(timing), "notes": notes, "shares": shares}
        return TimedRun(found.run, self._place(found.notes, step), timing, shares), record

    def _only_asked(self, run: pl.DataFrame) -> pl.DataFrame:
        assert self._collection.qrels is not None, "nothing is retrieved without judgements"
        return tables.only_queries(run, self._collection.qrels)

    def _take_sources(self, system: str) -> dict[str, TimedRun]:
        runs = {}
        for source in self._sources(system):
            try:
                runs[source] = self.take(source)
            except Exception as error:
                raise DataError(f"reads the run of '{source}', which could not be made: {explain(error)}") from error
        return runs

    def _measure(self, step: Step, own: Share, shares: Mapping[str, Share]) -> Timing:
        return Timing(
            **self._cell(step),
            seconds=own.seconds,
            total=sum(share.seconds for share in shares.values()),
            documents=max(share.documents for share in shares.values()),
            queries=self._count("queries", str(step.system)),
            stored=False,
            reused=sum(share.reused for share in shares.values()),
        )

    def _count(self, part: str, system: str) -> int:
        """How many rows of a part of the dataset a system reads."""
        table = getattr(self._collection, part) if part in self._plugin(system).needs else None
        return 0 if table is None else int(table.height)

    def _cell(self, step: Step) -> dict[str, str]:
        return {"dataset": self._collection.name, "system": str(step.system)}

    def _place(self, notes: Sequence[Note], step: Step) -> tuple[Note, ...]:
        return tuple(replace(note, dataset=self._collection.name, system=step.system) for note in notes)


def retrieve(plugin: System[Any], collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:
    """What a system gives, checked.

    Raises:
        DataError: the dataset lacks a part that the system needs, or the run lacks a column.
    """
    for part in sorted(plugin.needs):
        if getattr(collection, part) is None:
            raise DataError(f"{plugin.node.use} needs {part}, and the dataset '{collection.name}' has none")
    with no_exit():
        found = plugin.retrieve(collection, runs)
    retrieval = found if isinstance(found, Retrieval) else Retrieval(found)
    run = retrieval.run
    absent = [column for column in tables.RUN if column not in run.columns]
    if absent:
        raise DataError(f"the run has no column {', '.join(map(repr, absent))}; it has {', '.join(run.columns)}")
    return replace(retrieval, run=run.select(tables.RUN))


def explain(error: Exception) -> str:
    """What an error says; where it is none of ours, its type too."""
    return str(error) if isinstance(error, RagevalError) else f"{type(error).__name__}: {error}"
