"""`hybrid`: combines the rankings of several systems into one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note, Remark, remark, writes_notes
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import Retrieval, System, SystemName, SystemNode
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

_NUMBERED_RUN = compile_later(r"^runs\[(\d+)\]")


class HybridSystemNode(SystemNode):
    """A fusion of several systems: a weighted sum of reciprocal ranks or of normalised scores."""

    systems: tuple[SystemName, ...] = Field(min_length=2, description="The systems to fuse: names under `systems:`.")
    method: Literal["rrf", "weighted"] = Field(
        default="rrf",
        description="rrf: the sum of weight / (k + rank); weighted: the sum of weight * normalised score.",
    )
    k: float = Field(
        default=60,
        ge=0,
        allow_inf_nan=False,
        description="For rrf: the larger it is, the less the first ranks stand out.",
    )
    normalization: Literal["min_max", "z_score", "max", "none"] = Field(
        default="min_max",
        description="For weighted: how to make the systems' scores comparable. Each query is normalised on its own.",
    )
    weights: tuple[float, ...] | dict[str, float] | None = Field(
        default=None,
        description="The weight of each system: a list in the order of `systems`, or a map by name. Default: 1 each.",
    )
    depth: int = Field(default=1000, ge=1, description="How many documents to keep for a query.")

    @field_validator("systems")
    @classmethod
    def _check_distinct(cls, systems: tuple[str, ...]) -> tuple[str, ...]:
        twice = [name for position, name in enumerate(systems) if name in systems[:position]]
        if twice:
            raise ValueError(f"'{twice[0]}' is listed twice; list it once, and give it a weight instead")
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
        numbers = [*(weights.values() if isinstance(weights, dict) else weights)]
        if wrong := [weight for weight in numbers if not 0 <= weight < math.inf]:
            raise ValueError(f"a weight must be at least 0, not {wrong[0]:g}")
        if not any(numbers):
            raise ValueError("all weights are 0; give at least one system a weight above 0")
        systems = info.data.get("systems", ())
        if not isinstance(weights, dict):
            if systems and len(weights) != len(systems):
                count = count_noun(len(weights), "weight")
                raise ValueError(f"{count} for {len(systems)} systems; give each system one weight")
        elif systems and (unknown := [name for name in weights if name not in systems]):
            raise ValueError(f"'{unknown[0]}' is not among 'systems:', which has {', '.join(systems)}")
        elif absent := [name for name in systems if name not in weights]:
            raise ValueError(f"'{absent[0]}' has no weight; write 0 if it should not count")
        return weights


class HybridSystem(System[HybridSystemNode]):
    """Sums the contributions of each system's ranking to a document.

    Reciprocal rank fusion contributes `weight / (k + rank)`, with ranks from 1 in the order of the system's run
    (Cormack, Clarke and Büttcher, SIGIR 2009). Weighted fusion contributes `weight * normalised score`; a document
    that a ranking lacks counts like its worst. `kernels.fuse_runs` has the formulas. Ties are ordered as in
    trec_eval, by document id in descending byte order. If only some of the systems have a query, only these rank it,
    and a note says so.
    """

    is_separable = True
    known_as = ("fusion", "rrf", "ensemble", "weighted")

    def content(self) -> dict[str, Any]:
        """Weights by name are put in the order of the systems, so that names do not matter."""
        content = super().content()
        content["node"]["weights"] = self._weights()
        return content

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:  # noqa: ARG002
        found = [runs[name] for name in self.node.systems]
        return Retrieval(self._fuse(found), (self._remark_on_absent(found),))

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
            names = self.node.systems
            message = _NUMBERED_RUN.sub(lambda number: f"the run of '{names[int(number[1])]}'", str(error))
            raise DataError(message) from error

    def _weights(self) -> Sequence[float] | None:
        weights = self.node.weights
        return [weights[name] for name in self.node.systems] if isinstance(weights, dict) else weights

    def _remark_on_absent(self, runs: Sequence[pl.DataFrame]) -> Remark:
        queries = [set(run["query_id"].unique()) for run in runs]
        every = set().union(*queries)
        absent = tuple(len(every - its_own) for its_own in queries)
        return remark(_write_absent, [(len(every), absent)], tuple(self.node.systems))


@writes_notes
def _write_absent(counts: Sequence[tuple[int, Sequence[int]]], names: Sequence[str]) -> Iterator[Note]:
    every = sum(total for total, _ in counts)
    for name, lost in zip(names, zip(*(absent for _, absent in counts), strict=True), strict=True):
        if absent := sum(lost):
            message = f"{name} has no documents for {absent} of {count_noun(every, 'query', 'queries')}"
            yield Note("queries_without_documents", message, count=absent)


PLUGIN = HybridSystem
