"""The block of a gate."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from rageval_spec.data.comparability import ChangedPart
from rageval_spec.data.drop import SEVERITIES, Drop, Severity, read_drop
from rageval_spec.spec.blocks import Block

NUMBER_OR_SHARE = "number_or_share"
"""The type of pydantic's error for text that is neither; the text of a variable can still be read as a number."""
_NEWER_GATE_KEYS = {"at_least", "slice", "decide", "on_inconclusive", "accept_changes", "severities"}


def _check_drop(value: float | str) -> float | str:
    try:
        read_drop(value)
    except ValueError:
        told = "must be a number of 0 or more such as 0.02, or a share of the baseline's number such as 5%"
        raise PydanticCustomError(NUMBER_OR_SHARE, told) from None
    return value


DropValue: TypeAlias = Annotated[float | str, AfterValidator(_check_drop)]


class SeveritiesNode(Block):
    """`severities:` of a gate: from which size on a drop has a severity."""

    low: DropValue | None = Field(default=None, description="A larger drop than this has low severity.")
    medium: DropValue | None = Field(default=None, description="A larger drop than this has medium severity.")
    high: DropValue | None = Field(default=None, description="A larger drop than this has high severity.")

    @property
    def drops(self) -> dict[Severity, Drop]:
        """The size from which each severity begins, from the least severe to the worst."""
        written = {severity: getattr(self, severity) for severity in SEVERITIES}
        return {severity: read_drop(value) for severity, value in written.items() if value is not None}


class GateNode(Block):
    """An entry of `gates:` a bound on an aggregate."""

    metric: str = Field(description="The metric's name in this spec: `ndcg@10`, or the name set with `as:`.")
    system: str | None = Field(default=None, description="Apply the gate only to this system. Default: every system.")
    dataset: str | None = Field(
        default=None, description="Apply the gate only to this dataset. Default: every dataset."
    )
    slice: str | None = Field(
        default=None,
        description="Apply the gate only to this slice of the queries: `difficulty=hard`, the name of a slice, or a "
        "column under `slices` for each of its slices. Default: all queries.",
    )
    min: float | None = Field(default=None, description="Fail below this.")
    max: float | None = Field(default=None, description="Fail above this.")
    target: float | None = Field(default=None, description="Warn if the bound holds but this target is missed.")
    at_least: str | None = Field(
        default=None, description="Fail if the value is worse than this word of the metric's scale under `bands`."
    )
    on: Literal["mean", "lower", "upper"] = Field(
        default="mean", description="What must clear the bound: the mean, or an end of its interval."
    )
    decide: Literal["mean", "certain"] | None = Field(
        default=None,
        description="mean (the default): the number that `on` selects decides. certain: the whole interval must clear "
        "the bound; the gate fails if none of it does, and is inconclusive in between.",
    )
    on_inconclusive: Literal["pass", "warn", "fail"] | None = Field(
        default=None, description="What an inconclusive gate counts as for the outcome. Default: warn."
    )
    baseline: str | None = Field(
        default=None,
        description="Compare with a system in the spec, or with an earlier evaluation: a label, the id of a record, "
        "`previous` (the newest record), `branch:main` (the newest of a branch that passed), `commit:abc123`, or a "
        "folder with results.",
    )
    max_drop: DropValue | None = Field(
        default=None,
        description="Fail if the number is below the baseline's by more than this; above it, where low values are "
        "better. Write a number, or a share of the baseline's number, for example `5%`.",
    )
    severities: SeveritiesNode | None = Field(
        default=None,
        description="How bad a drop from the baseline is, by its size. Without `max_drop`, a drop of low severity "
        "warns, and one of medium or high severity fails; with `max_drop`, only that decides.",
    )
    alpha: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="With `baseline`: fail only if the adjusted p-value of a drop is below this; otherwise warn.",
    )
    accept_changes: tuple[ChangedPart, ...] | None = Field(
        default=None,
        description="Compare with an earlier evaluation although these parts changed since then: `references`, "
        "`qrels`, `judge`, `prompt`, `model`, `metric`. Without it, the gate is inconclusive if a part changed that "
        "its metric uses.",
    )
    min_scored: float = Field(
        default=0.9,
        ge=0,
        le=1,
        description=(
            "Fail if a smaller share of the queries could be scored. Metrics of answers do not count queries that "
            "cannot have a value, for example queries without a reference."
        ),
    )

    def content(self) -> dict[str, Any]:
        """The gate's keys in JSON types. Unset keys that older versions lack are left out, so that digests stay."""
        content = self.model_dump(mode="json", by_alias=True)
        return {key: value for key, value in content.items() if value is not None or key not in _NEWER_GATE_KEYS}
