"""Narrows datasets to some of their queries, so that only these are asked and judged."""

from __future__ import annotations

import hashlib
import json
from collections import abc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rageval_spec.errors import DataError
from rageval_spec.pipeline.drawing import list_ids, restrict
from rageval_spec.plugin import Dataset, InputFile

if TYPE_CHECKING:
    from rageval_spec.data import tables
    from rageval_spec.data.assessment import Estimate
    from rageval_spec.pipeline.parts import Parts


class PartOfDataset(Dataset[Any]):
    """Some queries of a dataset. Its documents are all there."""

    def __init__(self, whole: Dataset[Any], query_ids: abc.Collection[str]) -> None:
        """Open nothing yet."""
        super().__init__(whole.node, whole.context)
        self._whole = whole
        self._query_ids = sorted(set(query_ids))
        self.version = whole.version  # type: ignore[misc]

    @property
    def parts(self) -> frozenset[str]:
        """What the whole dataset has."""
        return self._whole.parts

    def list_other_columns(self) -> Sequence[str] | None:
        """The columns of the whole dataset."""
        return self._whole.list_other_columns()

    def inputs(self) -> Sequence[InputFile]:
        """The files of the whole dataset."""
        return self._whole.inputs()

    def content(self) -> dict[str, Any]:
        """The identity of the dataset and of its part, so that tables of the whole are never taken for those of it."""
        digest = hashlib.sha256(json.dumps(self._query_ids).encode()).hexdigest()
        return {**self._whole.content(), "queries": digest}

    def prepare(self) -> None:
        """Make what the whole dataset lacks."""
        self._whole.prepare()

    def estimate(self) -> Estimate:
        """The calls that making the whole dataset would take."""
        return self._whole.estimate()

    def foresee(self) -> tables.Collection:
        """The collection with only these queries; the whole one, if its queries are only supposed."""
        whole = self._whole.foresee()
        part = restrict(whole, self._query_ids)
        return part if list_ids(part.queries, part.qrels) else whole

    def open(self) -> tables.Collection:
        """The collection with only these queries.

        Raises:
            DataError: it has none of them.
        """
        part = restrict(self._whole.open(), self._query_ids)
        if not list_ids(part.queries, part.qrels):
            raise DataError(f"dataset '{self.context.name}' has none of the {len(self._query_ids)} wanted queries")
        return part


def narrow_datasets(parts: Parts, queries: Mapping[str, abc.Collection[str]]) -> Parts:
    """The parts with only these queries of each dataset; datasets that are not named stay whole."""
    if not queries:
        return parts
    return replace(
        parts,
        datasets={
            name: PartOfDataset(dataset, queries[name]) if name in queries else dataset
            for name, dataset in parts.datasets.items()
        },
    )
