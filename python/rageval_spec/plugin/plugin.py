"""The contract of all plugins, and what a plugin gets besides its node.

A plugin is a node, the class that is built with it, and the methods that each plugin has. Its context is its name, the
blocks it can refer to, limits, and the store of answers. The contract of judges is here too.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, get_args
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.findings import Ability, Assessment, Criterion, Estimate, Failed, Questions
from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import UnusablePathError, UsageError, check_path, expand_home
from rageval_spec.plugin.budget import WHOLE, Budget, Shard
from rageval_spec.progress import Progress, ignore_progress
from rageval_spec.store.checkout import CodeState
from rageval_spec.store.disk import InputFile, digest_content
from rageval_spec.store.remote_files import locate
from rageval_spec.store.store import Answers, NoAnswers

if TYPE_CHECKING:
    from rageval_spec.data.samples import Sample
    from rageval_spec.diagnostics import FileFault


class Node(BaseModel):
    """A validated YAML block. Frozen; an unknown key is an error. Its validator is built when it is first needed."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    use: str = Field(description="Which plugin serves this block: the name of a file in this section.")

    former_keys: ClassVar[Mapping[str, str]] = {}
    """Keys by which earlier versions knew keys of this node, and their names of today. Specs that have them are read
    with a warning, and `rageval-spec upgrade` rewrites them."""


N = TypeVar("N", bound=Node)


class Plugin(ABC, Generic[N]):
    """Base class of all plugins."""

    node_type: ClassVar[type[Node]] = Node
    """The pydantic model of the plugin's YAML block: what stands in brackets behind the base class."""
    version: ClassVar[str] = "1"
    """Part of the key of every table that the plugin makes. Raise it when the same node would give another table."""
    since: ClassVar[str] = "0.1.0"
    """The release of rageval-spec that brought the word; `explain` and the reference show it."""
    known_as: ClassVar[Sequence[str]] = ()
    """Names that other tools use for this plugin, in lower case with underscores. Where a spec uses one, `validate`
    suggests this plugin's word."""
    later_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys that the node gained after tables were stored. At their defaults `content` leaves them out, so that those
    tables are still found. Such a default must mean what the absence of the key meant."""

    def __init_subclass__(cls) -> None:
        """Take the type of the node from the base class: `Judge[MyNode]`."""
        super().__init_subclass__()
        for argument in (one for base in cls.__dict__.get("__orig_bases__", ()) for one in get_args(base)):
            if isinstance(argument, type) and issubclass(argument, Node) and "node_type" not in cls.__dict__:
                cls.node_type = argument

    def __init__(self, node: N, context: Context) -> None:
        """Keep the validated node and the context; open nothing."""
        self.node = node
        self.context = context

    @classmethod
    def list_known_models(cls) -> Sequence[KnownModel]:
        """The published models that the plugin knows by their names."""
        return ()

    def inputs(self) -> Sequence[InputFile]:
        """The files that the plugin needs; known before anything runs. Their content is part of the step's key."""
        return ()

    def check(self) -> str | None:
        """Why the node does not fit the blocks that it refers to; None if it does.

        Called once, when all plugins of the spec are built and before anything is read or paid for. Opens nothing.
        """
        return None

    def check_files(self) -> Iterable[FileFault]:
        """Faults that the beginnings of the node's files show, such as columns that a file does not have.

        Called after `check`. Reads only as much as takes a moment. Missing and damaged files are reported elsewhere.
        """
        return ()

    def describe_files(self) -> Iterable[FileReading]:
        """How the node's files are read, for files whose format or columns are recognised. Called after `check_files`.

        Raises:
            DataError: a file cannot be read.
        """
        return ()

    def content(self) -> dict[str, Any]:
        """The plugin's identity in JSON types: part of the key of every table that it makes."""
        node = self.node.model_dump(mode="json", by_alias=True)
        unchanged = self.later_keys - self.node.model_dump(exclude_defaults=True, by_alias=True).keys()
        return {
            "word": self.node.use,
            "version": self.version,
            "node": {key: value for key, value in node.items() if key not in unchanged},
        }

    def digest(self) -> str:
        """The sha256, in hex, of the plugin's identity and the content of its files."""
        parts = [self.content(), *map(self.context.fingerprint, self.inputs())]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


_CALIBRATION = "calibration"


class CalibrationUse(BaseModel):
    """A calibration, and what the judge takes from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(
        min_length=1, description="The file that `rageval-spec calibrate -o` wrote, relative to the spec."
    )
    score: Literal["probability", "decision", "guarantee"] = Field(
        default="probability",
        description="What becomes of a score. probability: the probability that people say yes; decision: 1 from the "
        "calibration's threshold on, else 0; guarantee: 1 from the guarantee's threshold on, else 0.",
    )


class JudgeNode(Node):
    """A block under `judges:`."""

    calibration: Annotated[str, Field(min_length=1)] | CalibrationUse | None = Field(
        default=None,
        description="The file that `rageval-spec calibrate -o` wrote for this judge. Scores become the probability "
        "that people say yes; the steps of a cascade or a waterfall get their bounds from it.",
    )

    @property
    def calibrated(self) -> CalibrationUse | None:
        """The key `calibration` as a block; None without it."""
        return CalibrationUse(path=self.calibration) if isinstance(self.calibration, str) else self.calibration


J = TypeVar("J", bound=JudgeNode)


class Judge(Plugin[J]):
    """Gives verdicts and grades. Safe to use from several threads.

    A judge gets all samples of a system on a dataset at once, so it can batch them or ask about many in parallel.
    """

    declared: ClassVar[frozenset[Ability]] = frozenset()
    """What every judge of this class can do; empty if that depends on the judges that its node names."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What this judge can do; known before anything is opened."""
        return self.declared

    def inputs(self) -> Sequence[InputFile]:
        """The judge's calibration, if it has one; a judge with other files adds them to these."""
        if (use := self.node.calibrated) is None:
            return ()
        key = (_CALIBRATION,) if isinstance(self.node.calibration, str) else (_CALIBRATION, "path")
        hint = "write it with: rageval-spec calibrate --labels labels.csv -o calibration.json"
        return (InputFile(self.context.resolve(use.path), key, hint=hint),)

    def content(self) -> dict[str, Any]:
        """The judge's identity; where its calibration lies does not count, because its content does."""
        content = super().content()
        content["node"].pop(_CALIBRATION, None)
        if (use := self.node.calibrated) is not None:
            content[_CALIBRATION] = use.score
        return content

    def copy_with(self, context: Context) -> Judge[Any]:
        """The same judge in another context."""
        return type(self)(self.node, context)

    def list_reversals(self) -> Mapping[str, Judge[Any]]:
        """Copies of this judge that show a part of their prompt in the reverse order, by the part: `choices`.

        What they say should be the same. Contexts are reversed in the samples, so that judges need not do it.
        """
        return {}

    @property
    def decides_refusals(self) -> bool:
        """Whether this judge gets answers that refuse. If not, metrics of claims decide refusals without it."""
        return False

    @property
    def holds_back(self) -> bool:
        """Whether the judge itself rejects answers or sends them to people, whatever the gates are."""
        return False

    @property
    def scale(self) -> tuple[float, float] | None:
        """The lowest and the highest score of a judge that asks its own question; None if it uses the criterion's."""
        return None

    @property
    def values(self) -> Mapping[str, tuple[float, ...]]:
        """The lowest and the highest score of each value of a judge whose own question has several; else empty.

        Such a judge gives a criterion the value of its name.
        """
        return {}

    @property
    def levels(self) -> int | None:
        """How many different grades the judge's words can say, such as 2 for yes and no; None if the scale decides."""
        return None

    @property
    def reads_criteria(self) -> bool:
        """Whether the judge asks what the criterion says. If not, it asks its own question."""
        return True

    @property
    def shows_references(self) -> bool:
        """Whether a question of the judge's own shows reference answers or contexts, whatever the criterion shows."""
        return False

    def check_columns(
        self,
        list_columns: Callable[[], Sequence[str] | None],  # noqa: ARG002 - most judges read no column
    ) -> Iterable[FileFault]:
        """Faults that the names of the questions' other columns show.

        `list_columns` reads the beginnings of the datasets; it returns None if that does not show the names.
        """
        return ()

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Receive all criteria that `assess` will get; called once, before the first `assess`."""

    @abstractmethod
    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample, in the order of the samples; `Failed` if a sample could not be assessed.

        The samples have all parts that the criterion reads. A failure of only some samples raises nothing.

        Raises:
            LimitError: the spec's limits allow no further call.
            RagevalError: no sample can be assessed.
        """

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        """The claims of each text. `texts` are pairs of the question that a text answers ("" for none) and the text."""
        raise self._cannot("split texts into claims", texts)

    def questions(self, answers: Sequence[str], count: int) -> Sequence[Questions | Failed]:
        """For each answer, `count` questions that it would answer."""
        raise self._cannot(f"make up {count} questions", answers)

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | Failed]:
        """The distinct named entities of each text."""
        raise self._cannot("list entities", texts)

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:  # noqa: ARG002 - costs nothing
        """The calls that `assess` would make and whose replies are not stored yet. Makes no call."""
        return Estimate()

    def estimate_writing(
        self,
        ability: Literal["claims", "questions", "entities"],  # noqa: ARG002 - costs nothing
        texts: Sequence[tuple[str, str]],  # noqa: ARG002
        count: int = 1,  # noqa: ARG002
    ) -> Estimate:
        """The calls that `claims`, `questions` or `entities` would make, as in `estimate`. Makes no call.

        `texts` are pairs as in `claims`; for the other two the question of a pair is "". Only `questions` uses `count`.
        """
        return Estimate()

    def prompt_digests(self) -> Mapping[str, str]:
        """The sha256, in hex, of each prompt that this judge can send, by name; empty if it sends none.

        Judges that it asks in turn have their own.
        """
        return {}

    def _cannot(self, what: str, asked: Sequence[object]) -> UsageError:
        return UsageError(f"judges.{self.context.name} (use: {self.node.use}) cannot {what}, of {len(asked)} texts")


@dataclass(frozen=True, slots=True)
class FileReading:
    """How a file is read.

    Attributes:
        file: its name, as written in the node.
        details: what was assumed about its format, and whose layout it has: `sheet 'Golden'`, `as DeepEval writes it`.
        columns: the column that each part is read from, as `columns:` in the spec would say it.
        others: the columns that are kept with the questions but are no part of them.
    """

    file: str
    details: tuple[str, ...]
    columns: Mapping[str, str]
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The file and the details, in one line."""
        return ", ".join((self.file, *self.details))


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What a plugin knows about a published model, where that was read, and on which day.

    Attributes:
        name: its id on the Hugging Face Hub, with `@` and the branch if that is not the main one.
        columns, facts: the facts that a table of the known models shows, by the heading of their column, and the
            others.
        example: the blocks of a spec that use the model, in YAML; "" if it cannot be used.
    """

    name: str
    columns: Mapping[str, str]
    facts: Mapping[str, str]
    sources: tuple[str, ...]
    read: date
    example: str


Role = Literal["query", "document"]
"""What a text is embedded as; many models use a different prefix for each role."""


class ModelNode(Node):
    """A block under `models:`."""


class Speed(NamedTuple):
    """How fast a model reads on this machine, and on which day that was measured; None if it is a guess."""

    tokens_per_second: float
    measured_on: str | None = None


class Model(Plugin[N]):
    """A model that systems, judges and metrics refer to. Its files are downloaded and read when first needed."""

    not_in_answers: ClassVar[frozenset[str]] = frozenset()
    """Keys of the node that no answer depends on, such as a prefix that becomes part of the text itself."""

    counts: ClassVar[str] = "texts"
    """The unit that the model's progress counts."""
    wanted: ClassVar[str] = "a model"
    """Ends the message "the model ... is not": the name of this kind, and what to name instead."""

    def __init__(self, node: N, context: Context) -> None:
        """Keep the validated node and the context; open nothing.

        The model holds `lock` while it looks up and computes answers, so what two threads ask for is computed once.
        """
        super().__init__(node, context)
        self.lock = RLock()

    def prepare(self) -> None:
        """Download missing files and pin their revision. `run` calls this; `validate` and `plan` never do.

        Raises:
            RagevalError: the model cannot be downloaded; the message says what to do instead.
        """

    def describe(self) -> dict[str, str]:
        """What the results record about the model: its id, its revision, and what else is needed to reproduce it."""
        return {"use": self.node.use}

    @property
    def called(self) -> str:
        """What its maker or its endpoint calls the model; else its name in the spec."""
        called = getattr(self.node, "model", None)
        return called if isinstance(called, str) else self.context.name

    @property
    def published_name(self) -> str | None:
        """The id on the Hugging Face Hub that the model has or may have, such as `owner/name` or `owner/name@branch`.

        A model in a folder may have the id that the last two parts of its path make up. None if there is nothing to go
        by. Opens nothing.
        """
        return None

    def foresee(
        self,
        task: Literal["embed", "score", "tag"],
        texts: Sequence[str | tuple[str, str]],
        role: Role = "document",  # noqa: ARG002 - for models that put a prefix before texts
    ) -> Mapping[str, int]:
        """Which texts or pairs this method would have to read, and about how many tokens each has, by a key for it.

        What has a stored answer is left out if the model can tell. Computes nothing.
        """
        return {digest_text(task, text): count_roughly(text) for text in texts}

    def find_speed(self) -> Speed | None:
        """How fast the model reads on this machine; None if that is not known."""
        return None

    @property
    def key(self) -> str:
        """The sha256, in hex, of everything that the model's answers depend on, including its files' content."""
        digests = [self.context.fingerprint(file) for file in self.inputs()]
        content = self.content()
        content["node"] = {key: value for key, value in content["node"].items() if key not in self.not_in_answers}
        text = json.dumps([content, digests], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def digest_text(task: str, text: str | tuple[str, str]) -> str:
    """The sha256, in hex, of a text or a pair and of what is done with it."""
    texts = (text,) if isinstance(text, str) else text
    parts = [part.encode("utf-8", "surrogatepass") for part in (task, *texts)]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).hexdigest()


def count_roughly(text: str | tuple[str, str]) -> int:
    """About how many tokens a text or a pair has, with special tokens: four characters are a token."""
    length, special = (len(text), 2) if isinstance(text, str) else (sum(map(len, text)), 3)
    return length // 4 + special


M = TypeVar("M", bound="Model[Any]")


def say_nothing(message: str) -> None:
    """A `Context.tell` that drops the message."""


class SpecOrigin(NamedTuple):
    """Where a spec is written: its path in its repository, with forward slashes, and the line of each gate, from 1."""

    path: str
    gate_lines: tuple[int, ...]


@dataclass(frozen=True)
class ResumeRule:
    """Which unfinished evaluation may be continued with its answers.

    Attributes:
        longest: how many seconds ago it may have begun; with 0, none is continued.
        is_fresh: whether to ask everything again, whatever is stored (`--fresh`).
        find_code: asks git which code is checked out; called at most once for an evaluation.
        evaluation: tells this evaluation from all others, in all its processes.
        begun: the beginnings of this evaluation, or of those that it continues, by the key of the system.
        is_told: whether another process of this evaluation tells the user what is taken over.
    """

    longest: float = 12 * 3600.0
    is_fresh: bool = False
    find_code: Callable[[], CodeState] = CodeState
    evaluation: str = field(default_factory=lambda: uuid4().hex)
    begun: dict[str, Any] = field(default_factory=dict, compare=False)
    is_told: bool = False


@dataclass(frozen=True)
class Context:
    """A plugin's surroundings: `name` is its key in the spec; relative paths start at `folder`, the spec's folder.

    Attributes:
        threads: how many threads the spec allows; None for all cores.
        tell: shows the user a sentence at once, on stderr; it is not part of the results.
        models, judges: the spec's blocks by name, for plugins that refer to one.
        budget: what may be asked of endpoints that cost money, and what was asked.
        concurrency: how many calls to one endpoint may be under way at the same time.
        answers: where models store their answers.
        store: the folder of the store; None to keep no files there.
        fingerprint: computes the sha256 of an input file's content.
        origin: where the spec is written, for reports that point at a gate; None if it was not read from a file.
        output: the folder that the results are written to; None if they are not written.
        pace: gives the maker of the pace of the endpoint of that name, if other processes ask it too.
        moved: where files and folders are that are elsewhere in this process than the spec says.
        shard: the part of the evaluation, which gets its share of calls at once and of rates.
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
    tell: Callable[[str], None] = say_nothing
    origin: SpecOrigin | None = None
    output: Path | None = None
    resume: ResumeRule = field(default_factory=ResumeRule)
    shard: Shard = WHOLE
    pace: Callable[[str], Callable[..., Any]] | None = None
    moved: Mapping[Path, Path] = field(default_factory=dict)
    store: Path | None = None

    def make_pace(self, endpoint: str) -> Callable[..., Any] | None:
        """What makes the pace of an endpoint that other processes ask too; None if only this one does."""
        return None if self.pace is None else self.pace(endpoint)

    def resolve(self, path: str | Path) -> Path:
        """The path with `~` expanded; a relative path starts at the spec's folder. A URL has a copy beside the spec.

        Raises:
            UnusablePathError: no file can have this path, or it may not be followed.
        """
        found = locate(path, self.folder) or self.folder / expand_home(path)
        found = self.moved.get(found, found)
        check_path(found, str(path))
        return found

    def find_file(self, word: str) -> Path | None:
        """The file that a word names, which need not name any."""
        try:
            path = self.resolve(word)
        except UnusablePathError:
            return None
        return path if path.is_file() else None

    def model(self, name: str, kind: type[M]) -> M:
        """The model of that name, which must be an instance of `kind`, such as `EmbeddingModel`.

        Raises:
            UsageError: there is no such model, or it is of another kind.
        """
        model = self.models.get(name)
        if model is None:
            raise UsageError(f"{self.name}: there is no model '{name}'; declare it under 'models:'")
        if not isinstance(model, kind):
            raise UsageError(f"{self.name}: the model '{name}' (use: {model.node.use}) is not {kind.wanted}")
        return model

    def explain_model(self, name: str, kind: type[Model[Any]], complaint: str) -> str | None:
        """Why the model of that name cannot serve as `kind`, ending in `complaint`; None if it can."""
        model = self.models.get(name)
        if model is None or isinstance(model, kind):
            return None
        return f"the model '{name}' (use: {model.node.use}) {complaint}"

    def judge(self, name: str) -> Judge[Any]:
        """The judge of that name.

        Raises:
            UsageError: there is no such judge.
        """
        if name not in self.judges:
            raise UsageError(f"{self.name}: there is no judge '{name}'; declare it under 'judges:'")
        return self.judges[name]
