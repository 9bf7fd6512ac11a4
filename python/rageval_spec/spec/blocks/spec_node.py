"""The parts of a spec that belong to no plugin, and the frozen spec itself.

These types are the only place that defines a key, its default, its bounds and its description. The JSON Schema is
generated from them and from the plugins' nodes. Some models and judges can be named without a declaration; their
blocks are here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from rageval_spec import registry
from rageval_spec.dataclass import dataclass, field
from rageval_spec.diagnostics import Diagnostic, Severity
from rageval_spec.kernels.ranking_measures import Duplicates, Missing, RankingOptions, TieRule
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import DatasetNode, EngineNode, Node, ReportNode, SystemNode
from rageval_spec.plugin.budget import Budget, CallLimits
from rageval_spec.plugin.secrets import Secret
from rageval_spec.registry import Section
from rageval_spec.spec.blocks.gates import NUMBER_OR_SHARE, GateNode, NamedMetric, StoppingNode
from rageval_spec.spec.blocks.monitor import MonitorNode
from rageval_spec.spec.blocks.plugin_blocks import SpecBlock
from rageval_spec.spec.blocks.slices import ColumnName, SliceNode
from rageval_spec.spec.text.places import KeyPath, Places
from rageval_spec.wording import DURATION, read_duration

if TYPE_CHECKING:
    from rageval_spec.data.bands import BandScale


DEFAULT_MODELS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {name: MappingProxyType({"use": "onnx", "model": name}) for name in ("minilm", "multilingual")}
)
"""The block under `models:` that each of these names means."""

DEFAULT_IDS: Mapping[str, str] = MappingProxyType(
    {"all-minilm-l6-v2": "minilm", "multilingual-e5-small": "multilingual"}
)
"""Their names on hubs, in lower case and without an owner."""


DefaultedSection: TypeAlias = Literal["judges", "models"]


def default_block(section: DefaultedSection, name: str) -> Mapping[str, str] | None:
    """The block that an undeclared name means; None if the name must be declared.

    A judge's word means the judge with its defaults, unless one of its keys is required.
    """
    if section == "models":
        return DEFAULT_MODELS.get(name)
    if name not in registry.builtin_words("judges") and name not in registry.words("judges"):
        return None
    return None if needs_more("judges", name) else MappingProxyType({"use": name})


def needs_more(section: registry.Section, word: str) -> bool:
    fields = registry.load(section, word).node_type.model_fields
    return any(field.is_required() for key, field in fields.items() if key != "use")


def default_blocks(section: str) -> dict[str, Mapping[str, str]]:
    """The blocks that need no declaration, by name. Only models and judges have any."""
    if section == "models":
        return dict(DEFAULT_MODELS)
    words = registry.words("judges") if section == "judges" else ()
    return {word: block for word in words if (block := default_block("judges", word))}


@dataclass(frozen=True)
class QuestionWeightsNode:
    """What a spec says of the questions of one dataset: `cluster`, `weight` and `weights` as in `SpecNode`."""

    cluster: str | None = None
    weight: str | None = None
    weights: str | None = None


VERSION = 1
"""The version of the spec's format that this release reads."""

NAME_PATTERN = r"""^[^\x00-\x20./\\:*?"<>|$\x7f]([^\x00-\x1f/\\:*?"<>|$\x7f]*[^\x00-\x20./\\:*?"<>|$\x7f])?$"""
"""A name must be a valid file name on every system: none of / \\ : * ? " < > | $, no dot or space at its ends."""

SamplesKept: TypeAlias = Literal["full", "texts", "none"]
RedactedColumn: TypeAlias = Literal[
    "question", "answer", "contexts", "reference", "reference_contexts", "columns", "group", "condition", "error"
]
Name: TypeAlias = Annotated[str, Field(pattern=NAME_PATTERN, max_length=100)]

NAMED_SECTIONS: tuple[Section, ...] = ("datasets", "systems", "models", "judges", "labels")
"""Sections that are a mapping of names to blocks with `use:`."""
LISTED_SECTIONS: tuple[Section, ...] = ("metrics", "reports")
"""Sections that are a list of blocks with `use:` or bare words."""
SEND: KeyPath = ("monitor", "send")
INNER_SECTIONS: Mapping[KeyPath, Section] = MappingProxyType({("monitor", "notify"): "notifiers", SEND: "reports"})
"""Lists of blocks within another block: where they are, and the section that their words are of."""
SINGLE_SECTIONS: Mapping[str, Section] = MappingProxyType({"engine": "engines"})
"""Keys of one block with `use:` or a bare word, and the section that its words are of."""
SECTIONS = tuple(
    dict.fromkeys((*NAMED_SECTIONS, *LISTED_SECTIONS, *INNER_SECTIONS.values(), *SINGLE_SECTIONS.values()))
)

RESUME, NEVER = "12h", "never"
"""The default of `resume:`, and its word for no time at all."""
_SHARE = compile_later(r"(\d{1,2}(\.\d+)?|100(\.0+)?) ?%")


ScaleName: TypeAlias = Literal["published", "industry", "medical", "legal", "finance", "support", "creative"]
"""The names of `data.bands.SCALES`."""


class RankingNode(SpecBlock):
    """`ranking:` how to read rankings, for all ranking metrics in the spec."""

    ties: TieRule = Field(
        default="trec_eval",
        description=(
            "How to order documents with equal scores. trec_eval: scores as float32, ties by doc_id descending, like "
            "its tag v9.0.8 (commit d95ca64, 2020); trec_eval_2023: the same with scores as float64, like its tag "
            "trec_eval-9.0.8 (2023); float64: another name for trec_eval_2023; input: ties keep the order of the "
            "run; ranx: like the library ranx."
        ),
    )
    tie_range: bool = Field(
        default=True, description="Report the lowest and highest value over all orders of tied documents."
    )
    missing: Missing = Field(
        default="zero",
        description=(
            "What to do with a query that is in the qrels but not in the run: zero scores it 0, like trec_eval's -c; "
            "skip excludes it from the mean. Either way, reports show how many there are."
        ),
    )
    no_relevant: Literal["zero", "skip"] = Field(
        default="zero",
        description=(
            "What to do with a query without relevant documents: zero gives it trec_eval's value (0 for most "
            "measures); skip makes it unscorable. Either way, reports show how many there are."
        ),
    )
    self_retrieval: Literal["auto", "keep", "drop"] = Field(
        default="auto",
        description=(
            "What to do with a retrieved document whose id is the query's id. auto: BEIR folders drop it, as BEIR "
            "does, unless its text shows that it is not the query; other datasets keep it."
        ),
    )
    judged_only: bool = Field(default=False, description="Remove unjudged documents from the rankings before scoring.")
    depth: int | None = Field(
        default=None, ge=1, description="Score only this many documents at the top of each ranking (trec_eval's -M)."
    )
    relevance_level: int = Field(
        default=1, ge=1, le=2**31 - 1, description="The lowest relevance that counts as relevant (trec_eval's -l)."
    )
    duplicates: Duplicates = Field(
        default="error",
        description="What to do if a ranking lists a document twice: error stops; first keeps its first row.",
    )

    def options(self, *, drop_self: bool, missing: Missing | None = None) -> RankingOptions:
        """These settings as options of the kernel. The caller resolves `self_retrieval`, which depends on the data."""
        return RankingOptions(
            ties=self.ties,
            depth=self.depth,
            judged_only=self.judged_only,
            drop_self=drop_self,
            relevance_level=self.relevance_level,
            missing=missing or self.missing,
            duplicates=self.duplicates,
            tie_range=self.tie_range,
        )


class StatisticsNode(SpecBlock):
    """`statistics:` intervals and tests."""

    confidence: float = Field(default=0.95, gt=0, lt=1, description="The confidence level of every interval.")
    resamples: int = Field(
        default=10_000, ge=100, le=100_000_000, description="How many bootstrap resamples each interval is based on."
    )
    permutations: int = Field(
        default=10_000, ge=100, le=100_000_000, description="How many sign flips each paired permutation test uses."
    )
    seed: int = Field(default=20_240_601, ge=0, description="Seed for all resampling. Equal seeds give equal results.")


class DiagnosisNode(SpecBlock):
    """`diagnosis:` how to sort questions by what went wrong. Metrics are named as in tables."""

    retrieval: str | None = Field(
        default=None,
        description="The metric that shows whether the contexts have what was needed. Default: `context_recall` if the "
        "spec has it, else whether any relevant document is among the contexts.",
    )
    correctness: str | None = Field(
        default=None,
        description="The metric that shows whether the answer is right. Default: the first of `answer_correctness`, "
        "`completeness` and `token_f1` that the spec has.",
    )
    faithfulness: str | None = Field(
        default=None,
        description="The metric that shows whether the answer keeps to its contexts. Default: `faithfulness` if the "
        "spec has it.",
    )
    wrong_below: float = Field(default=0.5, description="Values below this are wrong.")
    right_from: float = Field(
        default=0.7, description="Values from this on are right. Between the two, a question is undecided."
    )


HistoryWord: TypeAlias = Literal["none", "sqlite"]


class HistoryNode(SpecBlock):
    """`history:` where evaluations are recorded."""

    use: Literal["none", "sqlite", "postgres"] = Field(
        description="none: nowhere; sqlite: in a file; postgres: in PostgreSQL, which needs the extra `postgres`."
    )
    path: str | None = Field(
        default=None, description="The file of `use: sqlite`. Default: `.rageval/history.db` next to the spec."
    )
    url: Secret | None = Field(
        default=None,
        description="The database of `use: postgres`, for example `${secret:HISTORY_URL}` where the variable holds "
        "postgresql://user:password@host/database.",
    )

    def find_mistake(self) -> tuple[str, str, str | None] | None:
        """The key that contradicts `use`, what is wrong with it, and what to do; None if nothing is wrong."""
        if self.use == "postgres" and self.url is None:
            return "use", "'use: postgres' needs the address of a database", "add 'url: ${secret:HISTORY_URL}'"
        if self.use != "postgres" and self.url is not None:
            return "url", f"'use: {self.use}' has no 'url'", "write 'use: postgres', or remove 'url'"
        if self.use != "sqlite" and self.path is not None:
            return "path", f"'use: {self.use}' has no 'path'", "write 'use: sqlite', or remove 'path'"
        return None


CallCount: TypeAlias = Annotated[int, Field(ge=0)]


class CallsNode(SpecBlock):
    """How many calls may be made, to systems and to models."""

    systems: CallCount | None = Field(
        default=None, description="How often systems that answer may be asked. Without it, there is no limit."
    )
    models: CallCount | None = Field(
        default=None,
        description="How many calls to models behind endpoints may be made. Without it, there is no limit.",
    )


class LimitsNode(SpecBlock):
    """`limits:` what an evaluation can use at most."""

    threads: int | None = Field(default=None, ge=1, description="How many threads the kernels use. Default: all cores.")
    concurrency: int = Field(
        default=16,
        ge=1,
        le=1024,
        description="How many calls to one endpoint, or questions to one system, run at once.",
    )
    max_calls: CallCount | CallsNode | None = Field(
        default=None,
        description="Stop before making more calls than this to models behind endpoints, or asking systems that answer "
        "more often than this. A number bounds each of the two on its own; `{systems: 60, models: 500}` gives each its "
        "own number. Retries count.",
    )
    max_cost: float | None = Field(
        default=None, ge=0, description="Stop before the calls cost more than this, in US dollars."
    )
    max_errors: int | str | None = Field(
        default=None,
        description="Stop if more questions than this get no usable reply. Write a number, or a share of the questions "
        "asked, for example `1%`. A question to a judge can take several calls.",
    )

    @field_validator("max_errors")
    @classmethod
    def _read_share(cls, value: int | str | None) -> int | str | None:
        if isinstance(value, str) and not _SHARE.fullmatch(value):
            raise PydanticCustomError(
                NUMBER_OR_SHARE,
                "must be a number of questions such as 10, or a share of them from 0% to 100%, such as 1%",
            )
        if isinstance(value, int) and (value < 0 or isinstance(value, bool)):
            raise ValueError("must not be negative")
        return value

    @property
    def call_limits(self) -> CallLimits:
        if isinstance(self.max_calls, CallsNode):
            return CallLimits(self.max_calls.systems, self.max_calls.models)
        return CallLimits(self.max_calls, self.max_calls)

    def budget(self, *, retry_failed: bool = False) -> Budget:
        errors: int | float | None = (
            float(self.max_errors.rstrip("% ")) / 100 if isinstance(self.max_errors, str) else self.max_errors
        )
        return Budget(self.call_limits, self.max_cost, errors, retry_failed)


AXIS_PATTERN = r"^(datasets|systems|models)\.[^.].*\.[^.]+$"
"""A key that an axis may change. Another judge or metric measures something else."""


class SweepNode(SpecBlock):
    """`sweep:` how the combinations of the values of `axes` are compared."""

    search: Literal["all", "halving"] = Field(
        default="all",
        description="all: every combination gets every question; halving: rounds with more and more questions, each of "
        "which leaves out combinations that are significantly worse than its best.",
    )
    metric: str | None = Field(default=None, description="The metric that decides. Default: the first of the spec.")


class SpecNode(SpecBlock):
    """A spec: what to evaluate, with which metrics, and what the results must meet.

    Blocks of plugins can have any shape here. Each is validated as the node of its `use:`.
    """

    version: int = Field(ge=VERSION, le=VERSION, description="The version of the spec's format: 1.")
    name: Name | None = Field(default=None, description="The evaluation's name. By default, the name of the file.")
    datasets: dict[Name, Any] = Field(
        default={},
        description="What to evaluate on: names and blocks with `use:`. Only a spec with `monitor` can do without.",
    )
    systems: dict[Name, Any] = Field(
        min_length=1, description="What to evaluate: names and blocks with `use:`. The first is the baseline."
    )
    models: dict[Name, Any] = Field(default={}, description="The models that systems, judges and metrics use.")
    judges: dict[Name, Any] = Field(default={}, description="The judges that metrics use.")
    labels: dict[Name, Any] = Field(
        default={}, description="What people judged about answers: names and blocks with `use:`. Metrics name them."
    )
    metrics: tuple[Any, ...] = Field(
        min_length=1, description="What to compute: blocks with `use:`, or bare names such as `ndcg@10`."
    )
    ranking: RankingNode = Field(default=RankingNode(), description="How to read rankings, for all ranking metrics.")
    statistics: StatisticsNode = Field(default=StatisticsNode(), description="Intervals and tests.")
    gates: tuple[GateNode, ...] = Field(default=(), description="Bounds on aggregates. They decide the outcome.")
    diagnosis: DiagnosisNode = Field(
        default=DiagnosisNode(), description="How to sort questions by what went wrong: retrieval, generation or both."
    )
    bands: ScaleName | dict[str, ScaleName | dict[str, float]] | None = Field(
        default=None,
        description="Words for values, such as good. A built-in scale for all metrics that it covers; or, for each "
        "metric by its name, a built-in scale or words with their lowest value (the highest, if low values are good).",
    )
    slices: tuple[ColumnName | SliceNode, ...] = Field(
        default=(),
        description="Parts of the queries that get their own numbers: names of columns (one slice for each value), or "
        "blocks with `by` or `where`.",
    )
    cluster: ColumnName | dict[Name, ColumnName] | None = Field(
        default=None,
        description="The column of the questions whose values show which of them belong together, such as `source`; or "
        "a column for each dataset by name. Intervals and tests count questions with the same value as one draw.",
    )
    weight: ColumnName | dict[Name, ColumnName] | None = Field(
        default=None,
        description="The column of the questions with how much each counts, such as `traffic`; or a column for each "
        "dataset by name. Means, intervals, tests and gates are weighted.",
    )
    weights: ColumnName | dict[Name, ColumnName] | None = Field(
        default=None,
        description="A CSV file with the mix of questions in production, or a file for each dataset by name. Its "
        "columns are columns of the questions, or `slice`, and `share`. Means, intervals, tests and gates are weighted "
        "to that mix.",
    )
    axes: dict[Annotated[str, Field(pattern=AXIS_PATTERN)], Annotated[tuple[Any, ...], Field(min_length=2)]] = Field(
        default={},
        description="Keys of datasets, systems and models with several values: `systems.dense.depth: [50, 100]`. `run` "
        "evaluates all combinations and compares them.",
    )
    sweep: SweepNode = Field(default=SweepNode(), description="How combinations are compared.")
    stopping: StoppingNode | None = Field(
        default=None,
        description="Stop asking questions as soon as every gate is decided. By default, every question is asked.",
    )
    repeat: int = Field(
        default=1,
        ge=1,
        le=100,
        description="How often to ask each question. Reports then show how far its answers differ, and intervals count "
        "a question once. Of recorded answers, the rows of one question are its repeats.",
    )
    monitor: MonitorNode | None = Field(
        default=None, description="How `rageval-spec monitor` watches production. Default: it cannot."
    )
    limits: LimitsNode = Field(default=LimitsNode(), description="What an evaluation can use at most.")
    engine: Any = Field(
        default="local",
        description="Where steps are computed: `local`, this machine; a block with `use: ray` for a Ray cluster.",
    )
    resume: str = Field(
        default=RESUME,
        json_schema_extra={"pattern": f"^({NEVER}|{DURATION})$"},
        description="How long after its beginning an evaluation that was interrupted, killed or stopped by a limit is "
        "continued with the answers that it has, if neither the system's block nor its files nor the commit changed: "
        "`12h`, `90m`, `2d`. never: every evaluation asks all questions.",
    )
    samples: SamplesKept = Field(
        default="full",
        description="What the results keep of each question. full: everything; texts: everything but the texts of "
        "documents, so that no corpus is read for them; none: only values.",
    )
    redact: tuple[RedactedColumn, ...] = Field(
        default=(),
        description="Columns of the samples to leave out of the results. What judges wrote about their texts is left "
        "out too.",
    )
    history: HistoryWord | HistoryNode = Field(
        default="sqlite",
        description="Where to record evaluations: `sqlite`, a file next to the spec; a block with `use: postgres` for "
        "a server; `none` to record nothing.",
    )
    reports: tuple[Any, ...] = Field(
        default=("terminal",),
        description="How to show the results: blocks with `use:`, or bare names such as `terminal`.",
    )

    @field_validator("resume", mode="before")
    @classmethod
    def _check_resume(cls, value: object) -> str:
        if not isinstance(value, str) or (value != NEVER and read_duration(value) is None):
            raise ValueError(f"must be a duration such as 12h, 90m or 2d, or the word {NEVER}")
        return value


@dataclass(frozen=True)
class Spec:
    """A validated spec with defaults filled in.

    Attributes:
        path: the spec's name in messages (`spec.yaml`); relative paths start at `folder`.
        digest: the sha256 of the validated content. Specs that differ only in layout and comments have the same digest.
            It includes the name of a secret, not its value.
        places: the place in the text of each key path (`("systems", "bm25", "k1")`, `("gates", 0, "min")`): that of the
            value if it is a scalar, otherwise that of its key.
        warnings: diagnostics that do not stop an evaluation.
        slices: the entries of `slices:`; a bare column is a block with `by`.
        sources: systems that are not evaluated themselves, but whose runs an evaluated system reads.
        designs: which questions belong together and how much each counts, for each dataset that says so.
        monitor: how production is watched; None without the block.
        notifiers: who is told of alerts.
        destinations: the tools that a monitor sends values and numbers to.
        engine: where steps are computed; None if the spec does not say it, which means this machine.
        axes: the values that a sweep gives to keys, by path; blocks have one of each.
    """

    name: str
    path: str
    folder: Path
    datasets: Mapping[str, DatasetNode]
    systems: Mapping[str, SystemNode]
    models: Mapping[str, Node]
    judges: Mapping[str, Node]
    metrics: tuple[NamedMetric, ...]
    gates: tuple[GateNode, ...]
    ranking: RankingNode
    statistics: StatisticsNode
    limits: LimitsNode
    reports: tuple[ReportNode, ...]
    digest: str
    places: Places = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()
    sources: Mapping[str, SystemNode] = field(default_factory=dict)
    diagnosis: DiagnosisNode = field(default_factory=DiagnosisNode)
    bands: Mapping[str, BandScale] = field(default_factory=dict)
    samples: SamplesKept = "full"
    redact: tuple[RedactedColumn, ...] = ()
    slices: tuple[SliceNode, ...] = ()
    history: HistoryNode = field(default_factory=lambda: HistoryNode(use="sqlite"))
    stopping: StoppingNode | None = None
    labels: Mapping[str, Node] = field(default_factory=dict)
    designs: Mapping[str, QuestionWeightsNode] = field(default_factory=dict)
    resume: str = RESUME
    repeat: int = 1
    monitor: MonitorNode | None = None
    notifiers: tuple[Node, ...] = ()
    destinations: tuple[ReportNode, ...] = ()
    engine: EngineNode | None = None
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sweep: SweepNode = field(default_factory=SweepNode)

    @property
    def longest_resume(self) -> float:
        """The seconds after its beginning in which an unfinished evaluation is continued; 0 for never."""
        return read_duration(self.resume) or 0.0

    def diagnose(
        self, key_path: KeyPath, message: str, code: str, hint: str | None = None, severity: Severity = "error"
    ) -> Diagnostic:
        """A diagnostic at a key path, or at the nearest enclosing block if the text does not have that key."""
        return self.places.diagnose(key_path, message, code, hint, severity)
