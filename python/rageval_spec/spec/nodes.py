"""The parts of a spec that no plugin owns, and the frozen whole.

These types are the one place where a key, its default, its bounds and its description are written: the JSON Schema
is generated from them and from the plugins' nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from rageval_spec.diagnostics import Diagnostic, Position, Severity
from rageval_spec.kernels.options import Duplicates, Missing, RankingOptions, TieRule
from rageval_spec.plugin import DatasetNode, MetricNode, Node, ReportNode, SystemNode
from rageval_spec.plugin.budget import Budget
from rageval_spec.registry import Section
from rageval_spec.spec.places import KeyPath, Place, nearest_place

VERSION = 1
"""The version of the spec's language that this release reads."""

NAME_PATTERN = r"""^[^\x00-\x20./\\:*?"<>|$\x7f]([^\x00-\x1f/\\:*?"<>|$\x7f]*[^\x00-\x20./\\:*?"<>|$\x7f])?$"""
"""A name is the name of a file on every system: none of / \\ : * ? " < > | $, no dot or space at its ends."""

Name: TypeAlias = Annotated[str, Field(pattern=NAME_PATTERN, max_length=100)]

NAMED_SECTIONS: tuple[Section, ...] = ("datasets", "systems", "models", "judges")
"""Sections that are a mapping: a name and a block with `use:`."""
LISTED_SECTIONS: tuple[Section, ...] = ("metrics", "reports")
"""Sections that are a list, of blocks with `use:` or bare words."""
SECTIONS = (*NAMED_SECTIONS, *LISTED_SECTIONS)

_SHARE = re.compile(r"(\d{1,2}(\.\d+)?|100(\.0+)?) ?%")


class Block(BaseModel):
    """A YAML block without `use:`. Frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class RankingNode(Block):
    """`ranking:` how rankings are read, for all ranking metrics of the spec."""

    ties: TieRule = Field(
        default="trec_eval",
        description=(
            "How documents with equal scores are ordered. trec_eval: scores as float32, ties by doc_id descending, as "
            "its tag v9.0.8 (commit d95ca64, 2020); trec_eval_2023: the same with scores as float64, as its tag "
            "trec_eval-9.0.8 (2023); float64: another name of trec_eval_2023; input: ties stay in the order of the "
            "run; ranx: as the library ranx orders them."
        ),
    )
    tie_range: bool = Field(
        default=True,
        description="Report the lowest and highest value over all orders of tied documents.",
    )
    missing: Missing = Field(
        default="zero",
        description=(
            "A query that is in the qrels and not in the run: zero scores it 0, as trec_eval's -c does; "
            "skip leaves it out of the mean. Either way the count is reported."
        ),
    )
    no_relevant: Literal["zero", "skip"] = Field(
        default="zero",
        description=(
            "A query without any relevant document: zero gives trec_eval's number (0 for most measures); "
            "skip makes it unscorable. Either way the count is reported."
        ),
    )
    self_retrieval: Literal["auto", "keep", "drop"] = Field(
        default="auto",
        description=(
            "A retrieved document whose id is the query's. auto: BEIR folders drop it, as BEIR does, unless its text "
            "shows that it is not the query; other datasets keep it."
        ),
    )
    judged_only: bool = Field(default=False, description="Remove unjudged documents from the rankings first.")
    depth: int | None = Field(
        default=None, ge=1, description="Look at the first so many documents of each ranking only (trec_eval's -M)."
    )
    relevance_level: int = Field(
        default=1,
        ge=1,
        le=2**31 - 1,
        description="From which relevance on a document counts as relevant (trec_eval's -l).",
    )
    duplicates: Duplicates = Field(
        default="error",
        description="A document twice in a ranking: error stops; first keeps the one that comes first in the run.",
    )

    def options(self, *, drop_self: bool, missing: Missing | None = None) -> RankingOptions:
        """These settings as the kernel takes them; `self_retrieval` depends on the data, so the caller decides it."""
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


class StatisticsNode(Block):
    """`statistics:` intervals and tests."""

    confidence: float = Field(default=0.95, gt=0, lt=1, description="Confidence of every interval.")
    resamples: int = Field(
        default=10_000, ge=100, le=100_000_000, description="Bootstrap resamples behind an interval."
    )
    permutations: int = Field(
        default=10_000, ge=100, le=100_000_000, description="Sign flips of a paired permutation test."
    )
    seed: int = Field(default=20_240_601, ge=0, description="Seed of all resampling. Equal seeds give equal numbers.")


class GateNode(Block):
    """An entry of `gates:` a bound on an aggregate."""

    metric: str = Field(description="The metric's name in this spec: `ndcg@10`, or what `as:` says.")
    system: str | None = Field(default=None, description="Only this system; every system where it is left out.")
    dataset: str | None = Field(default=None, description="Only this dataset; every dataset where it is left out.")
    min: float | None = Field(default=None, description="Fail below this.")
    max: float | None = Field(default=None, description="Fail above this.")
    target: float | None = Field(default=None, description="Warn where the bound holds and this is not reached.")
    on: Literal["mean", "lower", "upper"] = Field(
        default="mean", description="What must clear the bound: the mean, or an end of its interval."
    )
    baseline: str | None = Field(
        default=None,
        description="Compare with a system of the spec, a label in the history, or a folder with earlier results.",
    )
    max_drop: float | None = Field(
        default=None, ge=0, description="Fail where the mean is lower than the baseline's by more than this."
    )
    alpha: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="With `baseline`: only a drop whose adjusted p-value is below this fails; otherwise it warns.",
    )
    min_scored: float = Field(
        default=0.9,
        ge=0,
        le=1,
        description=(
            "Fail where a smaller share of the queries could be scored; metrics of answers leave out those that cannot "
            "have a value, such as queries without a reference."
        ),
    )


class LimitsNode(Block):
    """`limits:` what an evaluation may use."""

    threads: int | None = Field(default=None, ge=1, description="Threads of the kernels; all cores by default.")
    concurrency: int = Field(
        default=16, ge=1, le=1024, description="Calls to one endpoint, or questions to one system, at the same time."
    )
    max_calls: int | None = Field(
        default=None,
        ge=0,
        description="Stop before more calls than this are made to models behind endpoints and systems that answer; "
        "retries count.",
    )
    max_cost: float | None = Field(
        default=None, ge=0, description="Stop before the calls cost more than this, in US dollars."
    )
    max_errors: int | str | None = Field(
        default=None,
        description="Stop where more questions than this get no reply that can be used: a number, or a share of the "
        "questions asked such as `1%`. A question to a judge may take several calls.",
    )

    @field_validator("max_errors")
    @classmethod
    def _read_share(cls, value: int | str | None) -> int | str | None:
        if isinstance(value, str) and not _SHARE.fullmatch(value):
            raise ValueError("must be a number of questions such as 10, or a share of them from 0% to 100%, such as 1%")
        if isinstance(value, int) and (value < 0 or isinstance(value, bool)):
            raise ValueError("must not be negative")
        return value

    def budget(self, *, retry_errors: bool = False) -> Budget:
        """What these limits allow, nothing of it spent."""
        errors: int | float | None = (
            float(self.max_errors.rstrip("% ")) / 100 if isinstance(self.max_errors, str) else self.max_errors
        )
        return Budget(self.max_calls, self.max_cost, errors, retry_errors)


@dataclass(frozen=True, slots=True)
class NamedMetric:
    """An entry of `metrics:`: its name in tables and its node."""

    name: str
    node: MetricNode


class SpecNode(Block):
    """A spec: what to evaluate, with what, and what must hold.

    The blocks that a plugin owns have any shape here; each is validated as the node of its `use:`.
    """

    version: int = Field(ge=VERSION, le=VERSION, description="The version of the spec's language: 1.")
    name: Name | None = Field(default=None, description="The evaluation's name; the file's name where it is left out.")
    datasets: dict[Name, Any] = Field(min_length=1, description="What to evaluate on: a name and a block with `use:`.")
    systems: dict[Name, Any] = Field(
        min_length=1, description="What to evaluate: a name and a block with `use:`. The first is compared with."
    )
    models: dict[Name, Any] = Field(default={}, description="Models that systems, judges and metrics name.")
    judges: dict[Name, Any] = Field(default={}, description="Judges that metrics name.")
    metrics: tuple[Any, ...] = Field(
        min_length=1, description="What to compute: blocks with `use:`, or bare names such as `ndcg@10`."
    )
    ranking: RankingNode = Field(default=RankingNode(), description="How rankings are read, for all ranking metrics.")
    statistics: StatisticsNode = Field(default=StatisticsNode(), description="Intervals and tests.")
    gates: tuple[GateNode, ...] = Field(default=(), description="Bounds on aggregates; together they are the verdict.")
    limits: LimitsNode = Field(default=LimitsNode(), description="What an evaluation may use.")
    reports: tuple[Any, ...] = Field(
        default=("terminal",), description="How to show it: blocks with `use:`, or bare names such as `terminal`."
    )


@dataclass(frozen=True)
class Spec:
    """A validated spec, defaults filled in. `folder` is where relative paths start.

    Attributes:
        digest: sha256 over the validated content; equal for specs that differ in layout and comments alone. A secret
            is in it by name.
        path: the name for messages (`spec.yaml`).
        places: where each key path (`("systems", "bm25", "k1")`, `("gates", 0, "min")`) stands in the text: a plain
            value itself, the key of a block.
        warnings: what is worth a word and no reason to stop.
        sources: systems that are not evaluated themselves, and whose runs those that are evaluated read.
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
    places: Mapping[KeyPath, Place] = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()
    sources: Mapping[str, SystemNode] = field(default_factory=dict)

    def diagnose(
        self, key_path: KeyPath, message: str, code: str, hint: str | None = None, severity: Severity = "error"
    ) -> Diagnostic:
        """A diagnostic at a key path, or at the nearest block around it where the text does not have that key."""
        place = nearest_place(self.places, key_path) or Place(self.path, Position(1, 1), "")
        return place.diagnose(message, code, hint, severity)
