"""What a step needs to be computed, in any process: the parts of a spec, its datasets, and the budget.

In the process of the command, these are the parts that it built. Pickled materials hold only the spec and how to reach
what all processes share; another process builds its own parts from them, once for all tasks that it gets. Without a
way to reach it, each process opens the store itself, whose file of replies several processes can use.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from rageval_spec.data.evidence.nuggets import NUGGETS
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import Collection
from rageval_spec.dataclass import dataclass, field, fields, replace
from rageval_spec.pipeline.planning import question_selection
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts, list_files
from rageval_spec.pipeline.values.answer_values import brief_judges, difference_notes, limit_notes
from rageval_spec.pipeline.values.passage_judgements import passage_notes
from rageval_spec.plugin import Answering, Dataset, Engine, Shared
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.plugin import ResumeRule
from rageval_spec.reading.nugget_banks import read_banks
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.spec.text.places import Places
from rageval_spec.store.checkout import CodeState
from rageval_spec.store.shipped_files import Shipment, pack
from rageval_spec.store.store import MemoryStore, open_store
from rageval_spec.wording import agree, count_noun

_RESTORED: dict[str, Materials] = {}
_RESTORING = Lock()


@dataclass(frozen=True)
class OpenedDataset:
    """A dataset as an evaluation sees it.

    Attributes:
        collection, asked: restricted to the queries on which rankings are evaluated, and to those that systems are
            asked.
        answering: the names of the systems that answer.
        is_drawn: whether these are only some of the questions that the evaluation may ask.
    """

    collection: Collection
    asked: Collection
    answering: frozenset[str]
    notes: tuple[Note, ...]
    is_drawn: bool = False


@dataclass(frozen=True)
class Materials:
    """What a step needs to be computed.

    Attributes:
        limit: use only the first `limit` queries of each dataset.
        store: the folder where other processes find the replies of models; None if there is none.
        drawn: which questions of a dataset to ask now, from one place of the random order up to another; by default
            all.
        engine: what computes steps; its `reach` gives other processes what all of them share.
    """

    spec: Spec
    parts: SpecPlugins
    limit: int | None = None
    budget: Budget = field(default_factory=Budget)
    store: Path | None = None
    drawn: dict[str, tuple[int, int]] = field(default_factory=dict)
    engine: Engine[Any] | None = None
    _token: str = field(default_factory=lambda: uuid4().hex)
    _opened: dict[str, OpenedDataset] = field(default_factory=dict)
    _parts_drawn: dict[tuple[str, int, int], OpenedDataset] = field(default_factory=dict)
    _answers: dict[tuple[str, str], Answering] = field(default_factory=dict)
    _orders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _opening: Any = field(default_factory=Lock)

    def open_whole(self, dataset: str) -> OpenedDataset:
        """Open a dataset, once. Only the last one stays in memory."""
        with self._opening:
            if dataset not in self._opened:
                self._opened.clear()
                self._opened[dataset] = self._open(dataset)
            return self._opened[dataset]

    def open(self, dataset: str) -> OpenedDataset:
        """As `open_whole`, with only those queries that `drawn` says."""
        whole, drawn = self.open_whole(dataset), self.drawn.get(dataset)
        if drawn is None:
            return whole
        order = self.shuffle(dataset)
        if drawn == (0, len(order)):
            return whole
        with self._opening:
            if (dataset, *drawn) not in self._parts_drawn:
                self._parts_drawn.clear()
                ids = order[slice(*drawn)]
                judged, asked = (question_selection.restrict(one, ids) for one in (whole.collection, whole.asked))
                self._parts_drawn[dataset, *drawn] = replace(whole, collection=judged, asked=asked, is_drawn=True)
            return self._parts_drawn[dataset, *drawn]

    def shuffle(self, dataset: str) -> tuple[str, ...]:
        """The ids of all queries of a dataset that are asked or judged, in random order."""
        whole = self.open_whole(dataset)
        with self._opening:
            if dataset not in self._orders:
                self._orders.clear()
                ids = question_selection.list_ids(whole.asked.queries, whole.collection.qrels)
                self._orders[dataset] = question_selection.shuffle(ids, self.spec.statistics.seed)
            return self._orders[dataset]

    def read_answers(self, dataset: str, system: str) -> Answering:
        """The answers of a system that only knows them, such as a file, to all questions; they are read once."""
        if (dataset, system) not in self._answers:
            for other in [key for key in [*self._answers] if key[0] != dataset]:
                self._answers.pop(other, None)
            asked = self.open_whole(dataset).asked
            self._answers[dataset, system] = self.parts.systems[system].answer(asked)
        return self._answers[dataset, system]

    def narrow(self, metrics: Container[str]) -> Materials:
        """The same with only these metrics. Datasets and what is drawn of them are shared."""
        spec = replace(self.spec, metrics=tuple(one for one in self.spec.metrics if one.name in metrics))
        kept = {name: one for name, one in self.parts.metrics.items() if name in metrics}
        return replace(self, spec=spec, parts=replace(self.parts, metrics=kept), _token=uuid4().hex)

    def _open(self, dataset: str) -> OpenedDataset:
        plugin = self.parts.datasets[dataset]
        whole = replace(plugin.open(), identify=plugin.digest)
        answering = frozenset(name for name, system in self.parts.systems.items() if system.answers_on(dataset))
        needs_no_judgements = len(answering) == len(self.parts.systems) and not question_selection.has_judgements(whole)
        collection = whole if needs_no_judgements else question_selection.judged_queries(whole, self.limit)
        asked = question_selection.queries_to_ask(whole, self.limit) if answering else collection
        notes = (*difference_notes(whole), *limit_notes(whole, asked if answering else collection))
        notes += () if needs_no_judgements else passage_notes(whole)
        if any(NUGGETS in metric.needs for metric in self.parts.answer_metrics.values()):
            notes += tuple(_note_unknown_nuggets(plugin, whole))
        collection, asked = (question_selection.repeat_questions(one, self.spec.repeat) for one in (collection, asked))
        return OpenedDataset(collection, asked, answering, notes)

    def __reduce__(self) -> tuple[Callable[..., Materials], tuple[Any, ...]]:
        """Pickle the spec and the store's folder, without what is built from them."""
        held = {one.name: getattr(self.spec, one.name) for one in fields(self.spec)}
        plain: dict[str, Any] = {name: dict(one) for name, one in held.items() if isinstance(one, MappingProxyType)}
        spec = replace(self.spec, **plain | {"places": Places(), "warnings": ()})
        reach = None if self.engine is None else self.engine.reach
        share = reach or partial(_share_store, self.store, spec, retry_failed=self.budget.retry_failed)
        files, context = None if reach is None else self._shipment, next(iter(self.parts.systems.values())).context
        settings = {"resume": self._resume(context.resume), "shard": context.shard}
        return _restore, (self._token, spec, self.limit, self.store, dict(self.drawn), share, settings, files)

    @cached_property
    def _shipment(self) -> Shipment:
        fingerprint = next(iter(self.parts.systems.values())).context.fingerprint
        return pack(self.spec.folder, list_files(self.parts, self.spec.folder), fingerprint)

    def _resume(self, rule: ResumeRule) -> ResumeRule:
        """The rule by which this evaluation continues an earlier one, with what git said here."""
        asks = any(system.can_be_asked for system in self.parts.systems.values())
        return replace(rule, find_code=partial(_give, rule.find_code() if asks else CodeState()), is_told=True)


def _note_unknown_nuggets(dataset: Dataset[Any], whole: Collection) -> Iterator[Note]:
    """A note if the dataset lacks some questions of its file of nuggets. That it lacks all is an error elsewhere."""
    if (file := getattr(dataset.node, NUGGETS, None)) is None or whole.questions is None:
        return
    asked, banks = {*whole.questions["query_id"]}, read_banks(dataset.context.resolve(file))
    unknown = [query_id for query_id in banks if query_id not in asked]
    if 0 < len(unknown) < len(banks):
        belong = f"{count_noun(len(banks), 'question')} with nuggets {agree(len(unknown), 'is')} not in the dataset"
        message = f"{len(unknown)} of {belong}, such as {unknown[0]!r} in {file}"
        yield Note("unknown_nuggets", message, whole.name, count=len(unknown))


def _restore(
    token: str,
    spec: Spec,
    limit: int | None,
    store: Path | None,
    drawn: Mapping[str, tuple[int, int]],
    share: Callable[[], Shared],
    settings: Mapping[str, Any],
    files: Shipment | None,
) -> Materials:
    """Restore pickled materials; they are built once for all tasks that come with the same ones."""
    with _RESTORING:
        if token not in _RESTORED:
            _RESTORED.clear()
            shared = share()
            folder, moved = (spec.folder, {}) if files is None else files.unpack(shared.fetch)
            threads = spec.limits.threads or shared.threads
            spec = replace(spec, folder=folder, limits=spec.limits.model_copy(update={"threads": threads}))
            parts = build_parts(
                spec,
                shared.counting,
                shared.answers,
                MemoryStore().fingerprint,
                shared.budget,
                shared.tell,
                **settings,
                pace=shared.pace,
                moved=moved,
            )
            for model in parts.asked_models.values():
                model.prepare()
            brief_judges(parts.answer_metrics)
            _RESTORED[token] = Materials(spec, parts, limit, shared.budget, store)
        materials = _RESTORED[token]
        materials.drawn.update(drawn)
        next(iter(materials.parts.systems.values())).context.resume.begun.update(settings["resume"].begun)
        return materials


def _share_store(store: Path | None, spec: Spec, *, retry_failed: bool) -> Shared:
    """What a process has that opens the store itself; the limits hold for it alone."""
    return Shared(open_store(store).answers, spec.limits.budget(retry_failed=retry_failed))


def _give(code: CodeState) -> CodeState:
    return code
