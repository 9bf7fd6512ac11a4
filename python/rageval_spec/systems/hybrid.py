"""`hybrid`: one ranking out of several systems' rankings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from rageval_spec import kernels
from rageval_spec.data.evaluation import Note
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.plugin import Retrieval, System, SystemName, SystemNode
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

_NUMBERED_RUN = re.compile(r"^runs\[(\d+)\]")


class HybridNode(SystemNode):
    """A fusion of several systems: reciprocal ranks, or normalised scores, summed up with weights."""

    systems: tuple[SystemName, ...] = Field(min_length=2, description="The systems to fuse: names under `systems:`.")
    method: Literal["rrf", "weighted"] = Field(
        default="rrf",
        description="rrf: the sum of weight / (k + rank), blind to scores; weighted: of weight * normalised score.",
    )
    k: float = Field(
        default=60,
        ge=0,
        allow_inf_nan=False,
        description="Of rrf: how much the differences of the first ranks are levelled.",
    )
    normalization: Literal["min_max", "z_score", "max", "none"] = Field(
        default="min_max",
        description="Of weighted: what makes the systems' scores comparable, for each query apart.",
    )
    weights: tuple[float, ...] | dict[str, float] | None = Field(
        default=None,
        description="What each system counts: a list in the order of `systems`, or a map by name; 1 by default.",
    )
    depth: int = Field(default=1000, ge=1, description="How many documents to keep for a query.")

    @field_validator("systems")
    @classmethod
    def _check_distinct(cls, systems: tuple[str, ...]) -> tuple[str, ...]:
        twice = [name for position, name in enumerate(systems) if name in systems[:position]]
        if twice:
            raise ValueError(f"'{twice[0]}' is there twice; give it a weight instead")
        return systems

    @field_validator("k", "normalization")
    @classmethod
    def _check_read(cls, value: object, info: ValidationInfo) -> object:
        reader = "rrf" if info.field_name == "k" else "weighted"
        if info.data.get("method", reader) != reader:
            raise ValueError(f"only 'method: {reader}' reads it; remove it, or write 'method: {reader}'")
        return value

    @field_validator("weights")
    @classmethod
    def _check_weights(
        cls, weights: tuple[float, ...] | dict[str, float] | None, info: ValidationInfo
    ) -> tuple[float, ...] | dict[str, float] | None:
        if weights is None:
            return weights
        _check_numbers(list(weights.values() if isinstance(weights, dict) else weights))
        if systems := info.data.get("systems"):
            _check_match(weights, systems)
        return weights


def _check_numbers(weights: Sequence[float]) -> None:
    if wrong := [weight for weight in weights if not 0 <= weight < math.inf]:
        raise ValueError(f"a weight must be at least 0, not {wrong[0]:g}")
    if not any(weights):
        raise ValueError("all are 0, so that nothing would count")


def _check_match(weights: tuple[float, ...] | dict[str, float], systems: tuple[str, ...]) -> None:
    if not isinstance(weights, dict):
        if len(weights) != len(systems):
            raise ValueError(f"{count_noun(len(weights), 'weight')} for {len(systems)} systems; give one each")
        return
    if unknown := [name for name in weights if name not in systems]:
        raise ValueError(f"'{unknown[0]}' is not among 'systems:', which has {', '.join(systems)}")
    if absent := [name for name in systems if name not in weights]:
        raise ValueError(f"'{absent[0]}' has no weight; write 0 if it should not count")


class Hybrid(System[HybridNode]):
    """Sums up what each system's ranking gives a document.

    Reciprocal rank fusion gives `weight / (k + rank)`, with ranks from 1 in the order of the system's run (Cormack,
    Clarke and Büttcher, SIGIR 2009); weighted fusion `weight * normalised score`, where a document that a ranking does
    not have counts as its worst. `kernels.fuse_runs` has the formulas. Ties are ordered as trec_eval orders them, by
    document id descending bytewise. A query that only some of the systems have is ranked by these, and a note says so.
    """

    node_type = HybridNode
    known_as = ("fusion", "rrf", "ensemble", "weighted")

    def content(self) -> dict[str, Any]:
        """What it is; weights by name stand in the order of the systems, so that they hang on no name."""
        content = super().content()
        content["node"]["weights"] = self._weights()
        return content

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:  # noqa: ARG002
        """The run over all queries that any system has, in the order in which they come first, system after system.

        Raises:
            DataError: a run has a score that is NaN or infinite, or a document twice for a query; scores that cannot be
                normalised.
        """
        found = [runs[name] for name in self.node.systems]
        return Retrieval(self._fuse(found), tuple(self._remark_on_absent(found)))

    def _fuse(self, runs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        try:
            return kernels.fuse_runs(
                runs,
                method=self.node.method,
                weights=self._weights(),
                k=self.node.k,
                normalization=self.node.normalization,
                depth=self.node.depth,
                threads=self.context.threads,
            )
        except DataError as error:
            raise DataError(_NUMBERED_RUN.sub(self._name_run, str(error))) from error

    def _name_run(self, number: re.Match[str]) -> str:
        return f"the run of '{self.node.systems[int(number[1])]}'"

    def _weights(self) -> Sequence[float] | None:
        weights = self.node.weights
        return [weights[name] for name in self.node.systems] if isinstance(weights, dict) else weights

    def _remark_on_absent(self, runs: Sequence[pl.DataFrame]) -> Iterator[Note]:
        queries = [set(run["query_id"].unique()) for run in runs]
        every = set().union(*queries)
        for name, its_own in zip(self.node.systems, queries, strict=True):
            if absent := len(every - its_own):
                total = count_noun(len(every), "query", "queries")
                yield Note(
                    "queries_without_documents", f"{name} has no documents for {absent} of {total}", count=absent
                )


PLUGIN = Hybrid
