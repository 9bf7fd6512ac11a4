"""What each kind of plugin must do: the page to read before writing one.

A plugin is one file, `<section>/<word>.py`, with a node (the YAML block: keys, defaults, bounds, descriptions; the
JSON Schema is made from it), a class whose `node_type` is that node, and `PLUGIN = TheClass`. It is built with its
validated node and a `Context`, reads nothing before it is asked to, and knows no plugin of another section.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.assessment import Ability, Assessment, Criterion, Estimate, Failed, Questions
from rageval_spec.errors import UsageError
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.names import Reference, names_in

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rageval_spec.data.chat import ChatReply, ChatRequest
    from rageval_spec.data.evaluation import Evaluation, Note
    from rageval_spec.data.sample import Part, Sample
    from rageval_spec.data.tables import Collection, Status
    from rageval_spec.diagnostics import FileFault

SystemName: TypeAlias = Annotated[str, Reference("systems")]
"""The name of another block under `systems:`."""
ModelName: TypeAlias = Annotated[str, Reference("models")]
"""The name of a block under `models:`, or of the embedded default `minilm`."""
JudgeName: TypeAlias = Annotated[str, Reference("judges")]
"""The name of a block under `judges:`."""

Progress = Callable[[int, int], None]
"""Called with (done, total) while something long runs; it draws on a terminal and is silent in a pipe."""


def ignore_progress(done: int, total: int) -> None:
    """The `Progress` that shows nothing."""


class Node(BaseModel):
    """A validated YAML block. Frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    use: str = Field(description="Which plugin serves this block: the name of a file in this section.")


N = TypeVar("N", bound=Node)
M = TypeVar("M", bound="Model[Any]")
Partition = TypeVar("Partition")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that a node names.

    Attributes:
        key: the YAML key (a path of keys and indexes, inside the node) that asked for it.
        hint: what to tell where it is missing, such as the files that are there instead.
    """

    path: Path
    key: tuple[str | int, ...]
    kind: Literal["file", "folder"] = "file"
    hint: str | None = None


class Answers(Protocol):
    """What models answered before, kept the moment it arrives; keys are digests of a question's content."""

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """The answers that are kept for a model's questions."""

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Keep answers; when it returns, they outlive the process (`RagevalError` where they cannot be written)."""


class NoAnswers:
    """Keeps nothing."""

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:  # noqa: ARG002 - nothing is there
        """None of them."""
        return {}

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        """Forget them."""


def digest_content(file: InputFile) -> str:
    """The sha256 of a file's content, in hex."""
    with file.path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class Context:
    """Where a plugin lives: `name` is its key in the spec, relative paths start at `folder` (the spec's own).

    Attributes:
        threads: how many the spec allows; all cores where it is None.
        progress: told how far something long has come.
        models: the spec's models by name, for plugins that name one.
        judges: the spec's judges by name, for plugins that name one.
        budget: what may be asked of endpoints that cost money, and what was asked.
        concurrency: how many calls to one endpoint may be under way at the same time.
        answers: where models keep what they answer.
        fingerprint: gives the sha256 of an input file's content.
    """

    name: str
    folder: Path = field(default_factory=Path)
    threads: int | None = None
    progress: Progress = ignore_progress
    models: Mapping[str, Model[Any]] = field(default_factory=dict)
    answers: Answers = field(default_factory=NoAnswers)
    fingerprint: Callable[[InputFile], str] = digest_content
    judges: Mapping[str, Judge[Any]] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    concurrency: int = 16

    def resolve(self, path: str | Path) -> Path:
        """An absolute path, or a path relative to the spec's folder; `~` is expanded."""
        return self.folder / Path(path).expanduser()

    def model(self, name: str, kind: type[M]) -> M:
        """The model of that name, which must be of a kind: `EmbeddingModel`, `PairModel`.

        Raises:
            UsageError: there is no such model, or it is of another kind.
        """
        model = self.models.get(name)
        if model is None:
            raise UsageError(f"{self.name}: there is no model '{name}'; name it under 'models:'")
        if not isinstance(model, kind):
            raise UsageError(f"{self.name}: the model '{name}' (use: {model.node.use}) is no {kind.wanted}")
        return model

    def explain_model(self, name: str, kind: type[Model[Any]], complaint: str) -> str | None:
        """What is wrong with a model's name where a kind is needed: `complaint` of it; None where nothing is."""
        model = self.models.get(name)
        if model is None or isinstance(model, kind):
            return None
        return f"the model '{name}' (use: {model.node.use}) {complaint}"

    def judge(self, name: str) -> Judge[Any]:
        """The judge of that name.

        Raises:
            UsageError: there is none.
        """
        if name not in self.judges:
            raise UsageError(f"{self.name}: there is no judge '{name}'; name it under 'judges:'")
        return self.judges[name]


class Plugin(ABC, Generic[N]):
    """What all plugins share."""

    node_type: ClassVar[type[Node]] = Node
    """The shape of its YAML block."""
    version: ClassVar[str] = "1"
    """Part of the key of every table it makes: raise it when the same node would now give another table."""

    def __init__(self, node: N, context: Context) -> None:
        """Keep the validated node and the context; open nothing."""
        self.node = node
        self.context = context

    def inputs(self) -> Sequence[InputFile]:
        """Files that must be there, named before anything runs; their content is part of the step's key."""
        return ()

    def check(self) -> str | None:
        """What is wrong with how it is put together with the blocks that it names; None where nothing is.

        Asked once when all plugins of the spec are built, before anything is read or paid; opens nothing.
        """
        return None

    def check_files(self) -> Iterable[FileFault]:
        """What is wrong with the node by the beginnings of its files, such as names of columns that they do not have.

        Asked after `check`. Reads no more than takes a moment; a file that is not there or is damaged is told of
        elsewhere.
        """
        return ()

    def content(self) -> dict[str, Any]:
        """What it is, in JSON's types: part of the key of everything that it makes."""
        return {
            "word": self.node.use,
            "version": self.version,
            "node": self.node.model_dump(mode="json", by_alias=True),
        }


class DatasetNode(Node):
    """A block under `datasets:`."""


class Dataset(Plugin[N]):
    """Reads judgements, queries and documents."""

    @property
    def parts(self) -> frozenset[str]:
        """What it can have of "queries" and "corpus", as far as that is known before it is opened."""
        return frozenset({"queries", "corpus"})

    @abstractmethod
    def open(self) -> Collection:
        """The collection, whose tables load on first use and raise `DataError` with `file:line`."""


Role = Literal["query", "document"]
"""What a text is embedded as: many models put another prefix before each."""


class ModelNode(Node):
    """A block under `models:`."""


class Model(Plugin[N]):
    """A model that systems, judges and metrics name. Its files are read, and fetched, when it is first needed."""

    not_in_answers: ClassVar[frozenset[str]] = frozenset({"query_prefix", "document_prefix", "similarity"})
    """Keys of the node on which no answer depends: a prefix is part of the text that is asked."""

    counts: ClassVar[str] = "texts"
    """What its progress counts."""
    wanted: ClassVar[str] = "model"
    """What such a model is called where another one was named, and what to name instead."""

    def __init__(self, node: N, context: Context) -> None:
        """Keep the validated node and the context; open nothing.

        `lock` is held while answers are looked up and computed, so that what two threads ask for is computed once.
        """
        super().__init__(node, context)
        self.lock = RLock()

    def prepare(self) -> None:
        """Fetch what is not on this machine yet, and pin its revision. Called before a run, never by validate or plan.

        Raises:
            RagevalError: it cannot be had; the message says what to do instead.
        """

    def describe(self) -> dict[str, str]:
        """What the results say of it: the model's id, its revision, whatever another person needs to have the same."""
        return {"use": self.node.use}

    @property
    def key(self) -> str:
        """The sha256 of everything that its answers depend on, its files' content included, in hex."""
        digests = [self.context.fingerprint(file) for file in self.inputs()]
        content = self.content()
        content["node"] = {key: value for key, value in content["node"].items() if key not in self.not_in_answers}
        text = json.dumps([content, digests], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of texts, in the order of the texts.

    Attributes:
        vectors: float32 [texts, dimension]; finite.
        truncated: bool [texts]: whether the text is longer than the model takes, and was cut.
        reused: how many of the distinct texts were not computed now, but found among earlier answers.
    """

    vectors: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    reused: int = 0


class EmbeddingModel(Model[N]):
    """Gives texts vectors."""

    wanted = "embedding model; name one, such as minilm"

    @property
    @abstractmethod
    def similarity(self) -> Literal["cosine", "dot"]:
        """What its vectors were trained to be compared with."""

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Vectors of texts; equal texts are computed once, and those that were answered before not at all.

        An empty text has the vector that the model gives it. Progress counts distinct texts.

        Raises:
            UsageError: the model gives no embeddings.
            DataError: its files are damaged, or do not belong together.
        """


@dataclass(frozen=True, slots=True)
class PairScores:
    """What a cross-encoder says of pairs, in the order of the pairs.

    Attributes:
        logits: float32 [pairs, labels]; finite. Rerankers have one label.
        truncated: bool [pairs]: whether the pair is longer than the model takes, and its longer text was cut.
        reused: how many of the distinct pairs were found among earlier answers.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    reused: int = 0


class PairModel(Model[N]):
    """Reads two texts together: a reranker, an entailment classifier."""

    wanted = "model that reads two texts together; name a cross-encoder: a reranker or an entailment classifier"

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of the logits, as the model's configuration names them."""

    @abstractmethod
    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        """Logits of pairs; equal pairs are computed once, and those that were answered before not at all.

        Raises:
            UsageError: the model is no sequence classifier.
            DataError: its files are damaged, or do not belong together.
        """


class ChatModel(Model[N]):
    """Writes replies: one call a question, however many threads ask."""

    counts = "calls"
    wanted = "chat model; name one of 'use: chat'"

    @abstractmethod
    def ask(self, request: ChatRequest, *, fresh: bool = False) -> ChatReply:
        """The reply, in the store before it is given; one that is there already is not asked for again.

        Equal requests that are under way at the same time are one call. With `fresh`, what the store has is not used,
        and is replaced.

        Raises:
            CallError: the call failed, after all tries.
            LimitError: the spec's limits allow no further call.
        """

    @abstractmethod
    def find(self, request: ChatRequest) -> ChatReply | None:
        """The reply that is kept; None where it would have to be asked for. Calls nobody."""

    @property
    @abstractmethod
    def price(self) -> tuple[float, float] | None:
        """US dollars per million tokens in and out; None where nobody says."""

    def stop(self) -> None:
        """End what is under way, because nobody waits for it any longer: after Ctrl-C."""


class JudgeNode(Node):
    """A block under `judges:`."""


class Judge(Plugin[N]):
    """Gives verdicts and grades. Safe to use from several threads.

    It gets all samples of a system on a dataset at once, and so may batch them, or ask for many at the same time.
    """

    @property
    @abstractmethod
    def abilities(self) -> frozenset[Ability]:
        """What it can be asked for; known before anything is opened."""

    @property
    def decides_refusals(self) -> bool:
        """Whether it is shown answers that refuse; metrics of what an answer claims settle them otherwise."""
        return False

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Told once, before anything is assessed: all criteria that it will be asked for."""

    @abstractmethod
    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """A finding a sample, in their order; `Failed` where there is none. Never raises for one sample alone.

        The samples have all parts that the criterion reads.

        Raises:
            LimitError: the spec's limits allow no further call.
            RagevalError: nothing can be assessed at all.
        """

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        """The claims of texts, each a pair of the question that it answers ("" where there is none) and the text."""
        raise self._cannot("split texts into claims", texts)

    def questions(self, answers: Sequence[str], count: int) -> Sequence[Questions | Failed]:
        """So many questions that each answer would answer."""
        raise self._cannot(f"make up {count} questions", answers)

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | Failed]:
        """The named things in each text, each once."""
        raise self._cannot("list entities", texts)

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:  # noqa: ARG002 - costs nothing
        """The calls that `assess` would make and that are not answered yet; makes none."""
        return Estimate()

    def estimate_writing(
        self,
        ability: Literal["claims", "questions", "entities"],  # noqa: ARG002 - costs nothing
        texts: Sequence[tuple[str, str]],  # noqa: ARG002
        count: int = 1,  # noqa: ARG002
    ) -> Estimate:
        """As `estimate`, of what `claims`, `questions` or `entities` would ask; makes no call.

        `texts` are pairs as in `claims`; for the other two the question of a pair is "". `count` is that of
        `questions`.
        """
        return Estimate()

    def _cannot(self, what: str, asked: Sequence[object]) -> UsageError:
        return UsageError(f"judges.{self.context.name} (use: {self.node.use}) cannot {what}, of {len(asked)} texts")


class SystemNode(Node):
    """A block under `systems:`."""


@dataclass(frozen=True, slots=True)
class Answering:
    """A system's answers, and what must be known beside them.

    Attributes:
        answers: a row a query, columns `tables.ANSWERS`; queries without a row were not answered.
        notes: remarks, which need name neither the dataset nor the system.
    """

    answers: pl.DataFrame
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A run, and what must be known beside it.

    Attributes:
        run: `query_id, doc_id, score`, grouped by query and best first, no document twice for a query.
        notes: remarks, which need name neither the dataset nor the system.
        reused: how many texts needed no model because earlier answers were found: seconds then say little.
    """

    run: pl.DataFrame
    notes: tuple[Note, ...] = ()
    reused: int = 0


class System(Plugin[N]):
    """Gives a ranking for each query, or answers, whose contexts' ids are a ranking too."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Parts of the dataset it reads: any of "queries", "corpus"."""
    stored: ClassVar[bool] = True
    """Whether a run is worth keeping in the store; False where reading it again costs no more than the store would."""

    def inputs_for(self, dataset: str) -> Sequence[InputFile]:  # noqa: ARG002 - a plugin with a file per dataset uses it
        """Files that must be there for one dataset."""
        return self.inputs()

    def run_file(self, dataset: str) -> Path | None:  # noqa: ARG002 - as in `inputs_for`
        """A TREC run file that holds what `retrieve` would give, for kernels to read in place; None without one."""
        return None

    def answers_on(self, dataset: str) -> bool:  # noqa: ARG002 - a plugin with a file per dataset uses it
        """Whether `answer` is to be asked on a dataset, and not `retrieve`. Reads no more than a file's beginning."""
        return False

    @property
    def can_be_asked(self) -> bool:
        """Whether it may answer what `find_answers` does not know; a file cannot."""
        return True

    def retrieve(
        self,
        collection: Collection,
        runs: Mapping[str, pl.DataFrame],  # noqa: ARG002 - for those that retrieve
    ) -> pl.DataFrame | Retrieval:
        """The run: `query_id, doc_id, score`, grouped by query and best first, no document twice for a query.

        `runs` are those of the systems that the node names (keys of type `SystemName`), by name.
        """
        raise UsageError(f"systems.{self.context.name} (use: {self.node.use}) gives no ranking of {collection.name}")

    def answer(self, collection: Collection) -> Answering:
        """Answers to the collection's queries; each is in `context.answers` the moment it arrives, errors are not.

        A query that fails has a row whose `error` says why; it does not stop the others.

        Raises:
            RagevalError: nothing can be answered at all.
        """
        raise UsageError(f"systems.{self.context.name} (use: {self.node.use}) gives no answers to {collection.name}")

    def find_answers(self, collection: Collection) -> pl.DataFrame:  # noqa: ARG002 - nothing is known by default
        """The rows of `answer` that are known without asking anybody: from a file, or from an earlier evaluation."""
        from rageval_spec.data.tables import answers_table

        return answers_table([])


class MetricNode(Node):
    """A block under `metrics:`; a metric that needs nothing may be a bare string such as `ndcg@10`."""

    as_: str | None = Field(
        default=None, alias="as", min_length=1, description="The name of this metric in tables and gates."
    )


MetricGroup = Literal["ranking", "answers", "text", "operation", "other"]
"""Where `rageval-spec metrics` lists a metric."""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What `rageval-spec metrics show` prints; `unit` is that of the values, None where they have none."""

    summary: str
    formula: str
    edge_cases: Sequence[str]
    source: str
    aliases: Sequence[str] = ()
    higher_is_better: bool | None = True
    bounds: tuple[float, float | None] = (0.0, 1.0)
    statistic: Literal["mean", "geometric mean", "sum"] = "mean"
    unit: str | None = None


class Metric(Plugin[N]):
    """Gives each query a value, or null with a status and a reason."""

    info: ClassVar[MetricInfo]
    group: ClassVar[MetricGroup] = "other"
    excuses: ClassVar[bool] = False
    """Whether a query that cannot have a value is left out of the share that a gate's `min_scored` looks at."""

    @property
    def statistic(self) -> str:
        """What its aggregate is: "mean", "geometric mean", "sum", or a percentile such as "p95"."""
        return self.info.statistic

    @property
    def higher_is_better(self) -> bool | None:
        """False where low values are good; None where neither is."""
        return self.info.higher_is_better

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in tables, unless `as:` gives another: `ndcg@10`."""

    def asked_models(self) -> Sequence[str]:
        """The names of the models that it asks: those that its node names."""
        return names_in(self.node, "models")


class RankingMetric(Metric[N]):
    """A metric that the kernel computes from qrels and a run; all of a run's measures come out of one pass."""

    group: ClassVar[MetricGroup] = "ranking"

    @abstractmethod
    def measure(self) -> str:
        """The kernel's name of this measure, parameters and cutoff included: `ndcg(gain=exp)@10`."""

    def companions(self) -> Sequence[str]:
        """Further measures that `unscorable` must see, by the kernel's names; they are computed in the same pass."""
        return ()

    def unscorable(self, numbers: pl.DataFrame) -> pl.Series | None:  # noqa: ARG002 - for measures whose 0 is no value
        """Why queries have no value: a reason a row, null where the kernel's number is the value.

        `numbers` has a row a query and the columns `measure()` and `companions()`. None says that every number is a
        value, as it is for most measures.
        """
        return None

    def remark_on(self, values: pl.DataFrame) -> Note | None:  # noqa: ARG002 - as in `unscorable`
        """What must be known beside the mean of one system on one dataset; the note need not name the three.

        `values` has the columns `query_id, value, status, reason, tie_low, tie_high`.
        """
        return None


class TableMetric(Metric[N]):
    """A metric in Python: a function from the tables of one dataset and system to values."""

    @abstractmethod
    def compute(self, collection: Collection, run: pl.DataFrame) -> pl.DataFrame:
        """`query_id, value, status, reason`: a row a query of the qrels; value is null unless status is "scored"."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One query's value, or why it has none, and what it was computed from.

    Attributes:
        reason: why there is no value, or what must be said of the one that there is.
        details: in JSON's types: claims with their verdicts, for instance.
    """

    value: float | None
    status: Status
    reason: str | None = None
    details: Mapping[str, Any] | None = None

    @classmethod
    def scored(cls, value: float, reason: str | None = None, details: Mapping[str, Any] | None = None) -> Measurement:
        """A value; it must be finite."""
        return cls(float(value), "scored", reason, details)

    @classmethod
    def unscorable(cls, reason: str, details: Mapping[str, Any] | None = None) -> Measurement:
        """This query cannot have a value."""
        return cls(None, "unscorable", reason, details)

    @classmethod
    def error(cls, reason: str, details: Mapping[str, Any] | None = None) -> Measurement:
        """It failed."""
        return cls(None, "error", reason, details)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements in the order of the samples, and remarks that need name neither dataset nor system nor metric."""

    measurements: Sequence[Measurement]
    notes: tuple[Note, ...] = ()


class AnswerMetric(Metric[N]):
    """A metric of answers: a function of samples. Safe to use from several threads."""

    group: ClassVar[MetricGroup] = "answers"
    excuses = True
    needs: frozenset[Part] = frozenset({"answer"})
    """What a sample must have; one that lacks a part is unscorable, and the metric does not see it.

    A metric whose needs depend on its node makes it a property.
    """
    counts_failures: ClassVar[bool] = False
    """Whether it sees samples whose system failed; otherwise their status is "error" and the metric does not see them.
    """

    def criteria(self) -> Sequence[Criterion]:
        """What it asks its judge, who is told of it before."""
        return ()

    def judges(self) -> Sequence[Judge[Any]]:
        """Whom it asks."""
        return ()

    @abstractmethod
    def compute(self, samples: Sequence[Sample]) -> Measured:
        """A measurement a sample, in their order.

        Raises:
            LimitError: the spec's limits allow no further call.
            RagevalError: no sample can have a value at all.
        """

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        """The calls that `compute` would make and that are not answered yet; makes none."""
        estimate = Estimate()
        for judge in self.judges():
            for criterion in self.criteria():
                estimate |= judge.estimate(criterion, samples)
        return estimate


class ReportNode(Node):
    """A block under `reports:`; a report that needs nothing may be a bare string such as `terminal`."""

    path: str | None = Field(
        default=None,
        description="Where to write it: a file name inside the output folder, or an absolute path.",
    )


class Report(Plugin[N]):
    """Shows an evaluation."""

    filename: ClassVar[str | None] = None
    """The file it writes in the output folder unless `path:` says another; None for the terminal."""

    @abstractmethod
    def render(self, evaluation: Evaluation) -> bytes:
        """The report's bytes (UTF-8 where it is text). The same evaluation gives the same bytes."""


class EngineNode(Node):
    """A block that says where steps are computed."""


class Engine(Plugin[N]):
    """Applies a step's function to partitions: in threads here, on a cluster elsewhere."""

    @abstractmethod
    def map(self, function: Callable[[Partition], Answer], partitions: Iterable[Partition]) -> Iterator[Answer]:
        """The function's answers in the order of the partitions, whichever is ready first; its exceptions come out."""
