"""Turns a spec into steps, each named by a key: the hash of everything that it depends on.

Two steps with the same key give the same table, so the store finds tables by key. A key is made from the content of
the node with its defaults filled in (secrets by name), the plugin's word and version, the content of its input files,
and the keys of the steps before it; from the step "evaluate" on, also from the version of this package. Names and
threads are not part of a key, so renaming costs nothing; if a node names a model or another system, the key of that
one is used. Keys are computed when they are first read: a spec that only reads prepared runs never hashes them.

The tasks that an engine gets and the results that it returns can be pickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rageval_spec import registry
from rageval_spec.data.outcomes import AnyNote, Note, TakenOver, write_notes
from rageval_spec.dataclass import dataclass, field
from rageval_spec.diagnostics import make_json_visible
from rageval_spec.errors import RagevalError
from rageval_spec.kernels import version
from rageval_spec.pipeline.planning.spec_plugins import Fingerprint, SpecPlugins
from rageval_spec.plugin import Plugin
from rageval_spec.plugin.block_names import ReferredSection, names_in, number_names, order_by_reference
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.store.disk import InputFile, digest_content
from rageval_spec.store.stored_tables import AnyTable, StoredTable
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.samples import Part
    from rageval_spec.data.tables import Collection


_READ_EACH_TIME = ("open", "model", "judge", "labels", "retrieve", "answer")
StepKind = Literal["open", "model", "judge", "labels", "retrieve", "answer", "evaluate", "aggregate", "gate", "report"]
State = Literal["in the store", "to compute", "read each time"]

FORMAT_VERSION = 1


@dataclass(frozen=True)
class PlanStep:
    """One step of an evaluation.

    Attributes:
        content: the description of the step, in JSON's types; part of the key, as is the content of the files `inputs`.
        after: the steps whose tables this step reads.
        stored: whether its table is kept in the store.
    """

    kind: StepKind
    title: str
    content: Mapping[str, Any]
    fingerprint: Fingerprint = field(repr=False, compare=False)
    inputs: tuple[InputFile, ...] = ()
    after: tuple[PlanStep, ...] = field(default=(), repr=False)
    dataset: str | None = None
    system: str | None = None
    stored: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Pickle a step without the store's fingerprints: another process computes it but never needs its key."""
        return {**self.__dict__, "fingerprint": digest_content}

    @cached_property
    def digests(self) -> tuple[str, ...]:
        return tuple(map(self.fingerprint, self.inputs))

    @cached_property
    def key(self) -> str:
        """The sha256, in hex, of everything that the step's table depends on."""
        parts = {
            "kind": self.kind,
            "content": self.content,
            "inputs": self.digests,
            "after": [step.key for step in self.after],
        }
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class EvaluationPlan:
    """The steps of an evaluation, in order of execution."""

    name: str
    spec_digest: str
    steps: tuple[PlanStep, ...]

    def of(self, kind: StepKind) -> tuple[PlanStep, ...]:
        return tuple(step for step in self.steps if step.kind == kind)

    def retrieval(self, dataset: str, system: str) -> PlanStep:
        steps = (*self.of("retrieve"), *self.of("answer"))
        return next(step for step in steps if (step.dataset, step.system) == (dataset, system))

    def evaluation(self, dataset: str, system: str) -> PlanStep:
        return next(step for step in self.of("evaluate") if (step.dataset, step.system) == (dataset, system))

    def render(self, has: Callable[[str], bool]) -> str:
        """The plan as text, one line for each step; `has` says whether the store has a key."""
        lines = [f"{self.name}: {count_noun(len(self.steps), 'step')}"]
        width = max(len(step.title) for step in self.steps)
        for step in self.steps:
            state = f"  {state_of(step, has)}" if step.kind == "retrieve" else ""
            lines.append(f"  {step.key[:12]}  {step.title:<{width}}{state}".rstrip())
        waiting = [step for step in self.steps if state_of(step, has) == "to compute" and step.stored]
        lines.append(f"{count_noun(len(waiting), 'retrieval')} to compute")
        return "\n".join(lines) + "\n"

    def to_json(
        self,
        has: Callable[[str], bool],
        expected: Mapping[str, Any] | None = None,
        needs: Mapping[str, Any] | None = None,
        shard: tuple[int, int, int, int] | None = None,
    ) -> str:
        """The plan as JSON, with everything that the keys are made from, so that two plans can be compared by a diff.

        `expected` is the estimate of the calls to models and systems, `needs` that of memory and disk; `shard` has a
        shard's number, the number of shards, and how many questions it has of how many.
        """
        content = {
            "version": FORMAT_VERSION,
            "name": self.name,
            **({"shard": dict(zip(_SHARD, shard, strict=True))} if shard else {}),
            "spec_digest": self.spec_digest,
            "steps": [_describe(step, has) for step in self.steps],
            "to_ask": expected or {},
            **({"needs": needs} if needs else {}),
        }
        return make_json_visible(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"


_SHARD = ("number", "of_shards", "questions", "of_questions")


def make_plan(spec: Spec, parts: SpecPlugins, fingerprint: Fingerprint, limit: int | None = None) -> EvaluationPlan:
    """The steps of a spec's evaluation, of the first `limit` queries of each dataset."""
    return EvaluationPlan(spec.name, spec.digest, tuple(_Planner(spec, parts, fingerprint, limit).list_steps()))


def state_of(step: PlanStep, has: Callable[[str], bool]) -> State:
    """Whether a step's table is in the store, must be computed, or is cheap enough to be read each time."""
    if not step.stored:
        return "read each time" if step.kind in _READ_EACH_TIME else "to compute"
    return "in the store" if has(step.key) else "to compute"


class _Planner:
    def __init__(self, spec: Spec, parts: SpecPlugins, fingerprint: Fingerprint, limit: int | None) -> None:
        self.spec = spec
        self.parts = parts
        self.fingerprint = fingerprint
        self.limit = limit
        self.made: dict[ReferredSection, dict[str, PlanStep]] = {"models": {}, "judges": {}, "labels": {}}

    def list_steps(self) -> Iterator[PlanStep]:
        parts, made = self.parts, self.made
        for name, model in parts.asked_models.items():
            made["models"][name] = self._make("model", f"model {name}", _content("models", model), model.inputs())
        for name in chain(*order_by_reference({name: one.node for name, one in parts.judges.items()}, "judges")):
            judge = parts.judges[name]
            before = self._list_named(judge, ("models", "judges"))
            content = number_names(_content("judges", judge), judge.node)
            made["judges"][name] = self._make("judge", f"judge {name}", content, judge.inputs(), before)
        for name in dict.fromkeys(
            str(one.node.labels) for one in parts.metrics.values() if one.node.labels is not None
        ):
            labels = parts.labels[name]
            made["labels"][name] = self._make("labels", f"labels {name}", _content("labels", labels), labels.inputs())
        yield from (step for steps in made.values() for step in steps.values())
        before = []
        for dataset in parts.datasets:
            *steps, aggregate = self._list_dataset_steps(dataset)
            yield from (*steps, aggregate)
            before.append(aggregate)
        gates = []
        for gate in self.spec.gates:
            after = [step for step in before if gate.dataset in (None, step.dataset)]
            title = f"gate {gate.metric}" + (f" of {gate.system}" if gate.system else "")
            gates.append(self._make("gate", title, gate.content(), after=after))
        yield from gates
        for report in parts.reports:
            content = _content("reports", report)
            yield self._make("report", f"report {report.node.use}", content, after=(*before, *gates))

    def _list_dataset_steps(self, dataset: str) -> Iterator[PlanStep]:
        spec, parts, plugin = self.spec, self.parts, self.parts.datasets[dataset]
        content = {**number_names(_content("datasets", plugin), plugin.node), "limit": self.limit}
        content |= {"repeat": spec.repeat} if spec.repeat > 1 else {}
        asked = [step for section, steps in self.made.items() for name, step in steps.items()
                 if name in names_in(plugin.node, section)]  # fmt: skip
        opening = self._make("open", f"open {dataset}", content, plugin.inputs(), asked, dataset=dataset)
        yield opening
        retrievals: dict[str, PlanStep] = {}
        evaluations: dict[str, PlanStep] = {}
        for system in chain(*parts.levels()):
            retrievals[system] = self._retrieve(system, opening, retrievals)
            yield retrievals[system]
            if system in parts.systems:
                evaluations[system] = self._evaluate(opening, retrievals[system])
                yield evaluations[system]
        content = {"statistics": spec.statistics.model_dump(mode="json"), "package": version()}
        if spec.slices:
            content["slices"] = [entry.model_dump(mode="json", by_alias=True) for entry in spec.slices]
        labelled = [(name, one.node) for name, one in parts.metrics.items() if one.node.labels]
        if labelled:
            content["corrections"] = [[name, node.labels, node.correction] for name, node in labelled]
        after = (*(evaluations[system] for system in parts.systems), *self.made["labels"].values())
        yield self._make("aggregate", f"aggregate {dataset}", content, after=after, dataset=dataset)

    def _retrieve(self, system: str, opening: PlanStep, retrievals: Mapping[str, PlanStep]) -> PlanStep:
        plugin, dataset = self.parts.system(system), str(opening.dataset)
        sources = [retrievals[name] for name in names_in(plugin.node, "systems")]
        answers = plugin.answers_on(dataset)
        return self._make(
            "answer" if answers else "retrieve",
            f"{'ask' if answers else 'retrieve'} {system} x {dataset}",
            number_names(_content("systems", plugin), plugin.node),
            plugin.inputs_for(dataset),
            (opening, *self._list_named(plugin, ("models",)), *sources),
            dataset=dataset,
            system=system,
            stored=plugin.stored and not answers,
        )

    def _evaluate(self, opening: PlanStep, retrieval: PlanStep) -> PlanStep:
        metrics, made = self.parts.metrics, self.made
        models = {name: made["models"][name] for metric in metrics.values() for name in metric.asked_models()}
        judges = {name: made["judges"][name] for one in metrics.values() for name in names_in(one.node, "judges")}
        content = {
            "ranking": self.spec.ranking.model_dump(mode="json"),
            "metrics": [{"name": name, **_content("metrics", metric)} for name, metric in metrics.items()],
            "package": version(),
        }
        title = f"evaluate {retrieval.system} x {retrieval.dataset}: {count_noun(len(metrics), 'metric')}"
        after = (opening, retrieval, *models.values(), *judges.values())
        return self._make("evaluate", title, content, after=after, dataset=retrieval.dataset, system=retrieval.system)

    def _list_named(self, plugin: Plugin[Any], sections: Iterable[ReferredSection]) -> list[PlanStep]:
        return [self.made[section][name] for section in sections for name in names_in(plugin.node, section)]

    def _make(
        self,
        kind: StepKind,
        title: str,
        content: Mapping[str, Any],
        inputs: Iterable[InputFile] = (),
        after: Iterable[PlanStep] = (),
        **cell: Any,
    ) -> PlanStep:
        return PlanStep(kind, title, content, self.fingerprint, tuple(inputs), tuple(after), **cell)


def _content(section: registry.Section, plugin: Plugin[Any]) -> dict[str, Any]:
    return {"section": section, **plugin.content()}


def _describe(step: PlanStep, has: Callable[[str], bool]) -> dict[str, Any]:
    inputs = [
        {"key": ".".join(map(str, file.key)), "file": file.path.name, "sha256": digest}
        for file, digest in zip(step.inputs, step.digests, strict=True)
    ]
    return {
        **{name: getattr(step, name) for name in ("kind", "title", "dataset", "system", "key")},
        "state": state_of(step, has),
        "content": step.content,
        "inputs": inputs,
        "after": [before.key for before in step.after],
    }


@dataclass(frozen=True)
class QuestionPart:
    """Some of the questions of a dataset, about which a task computes its step.

    Pickled, it has only the questions' ids; `step_parts.restore` finds the rest where the task is computed.

    Attributes:
        place, count: which of how many parts it is, from 0. All questions are in one part, each in exactly one.
        queries: the dataset with only these queries and judgements.
        metrics: the metrics to measure; None for all.
        ids: the ids of the questions, in a part that was pickled.
    """

    place: int
    count: int
    queries: Collection
    metrics: frozenset[str] | None = None
    ids: tuple[str, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The part without texts."""
        table = self.queries.questions
        ids = () if table is None else tuple(table["query_id"].unique(maintain_order=True))
        return {**self.__dict__, "queries": None, "ids": ids}


@dataclass(frozen=True)
class StepTask:
    """A step of kind "retrieve", "answer" or "evaluate" to compute, or a part of one.

    `inputs` are the tables of the steps before it, by system: the runs that a system reads, or the run or the answers
    to evaluate. Datasets are not inputs. A part has its questions with it; what it needs beside them, and what a whole
    step needs, is opened by the process that computes it. `documents` says which of how many parts of the documents a
    retrieval searches, from 0; by default, all documents.
    """

    step: PlanStep
    inputs: Mapping[str, Any] = field(default_factory=dict)
    part: QuestionPart | None = None
    documents: tuple[int, int] | None = None


class RunShare(NamedTuple):
    """One system's share of a run: its own seconds, the texts that it reused, and the documents that it searched."""

    seconds: float
    reused: int
    documents: int


@dataclass(frozen=True)
class MeasuredPart:
    """What one metric measured on some samples, from which its values are made once all parts are there.

    Attributes:
        table: `query_id, value, status, reason, details, is_asked, is_unfinished`, a row for each sample. `is_asked`
            tells whether the metric got the sample, `is_unfinished` whether the evaluation stopped before it.
        notes: what the metric itself says.
        lacking: the parts that none of the samples has, among those that the metric needs.
        error: what the metric raised.
    """

    table: pl.DataFrame
    notes: tuple[AnyNote, ...] = ()
    lacking: tuple[Part, ...] = ()
    error: Exception | None = None


@dataclass(frozen=True)
class TaskResult:
    """The result of a task.

    Attributes:
        table: the run, the answers or the values; None if there is none, and `error` then says why.
        stored: the answers, in the place of `table`, if they are too many to hold.
        notes: those on runs and answers need not name the dataset and the system.
        share, queries: the cost of a retrieval, and its number of queries.
        measured: what each metric measured on a part of the answers; there is no table of values yet.
    """

    table: pl.DataFrame | None = None
    notes: tuple[AnyNote, ...] = ()
    failures: tuple[SystemFailure, ...] = ()
    error: Exception | None = None
    share: RunShare | None = None
    queries: int = 0
    taken_over: TakenOver | None = None
    measured: dict[str, MeasuredPart] = field(default_factory=dict)
    stored: StoredTable | None = None

    @property
    def answers(self) -> AnyTable | None:
        """The table of a system's answers, wherever it is."""
        return self.table if self.stored is None else self.stored

    @property
    def written_notes(self) -> tuple[Note, ...]:
        """The notes, also those that are not written before all parts of a step are together."""
        return write_notes(self.notes)


@dataclass(frozen=True)
class SystemFailure:
    """A system, or one of its metrics, that gave no values. `error` is the exception that it raised."""

    dataset: str
    system: str
    message: str
    error: Exception
    metric: str | None = None

    def __str__(self) -> str:
        """`bm25 on golden: the reason`."""
        what = f"{self.metric} of {self.system}" if self.metric else self.system
        return f"{what} on {self.dataset}: {self.message}"

    def note(self) -> Note:
        message = f"{self.metric}: {self.message}" if self.metric else self.message
        return Note("failed", message, self.dataset, self.system)


def explain(error: Exception) -> str:
    """An error's message, preceded by its type unless it is one of this package's errors."""
    return str(error) if isinstance(error, RagevalError) else f"{type(error).__name__}: {error}"
