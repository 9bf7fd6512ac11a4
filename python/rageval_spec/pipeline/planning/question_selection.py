"""Selects the queries of a dataset that are asked and judged, and the order in which they are asked.

Rankings need the judged queries; answers need the ones to ask. A dataset can be narrowed to some of its queries. An
evaluation that may stop before the last question asks them in a random order.
"""

from __future__ import annotations

import hashlib
import json
from collections import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rageval_spec.data.tables import Collection, only_queries
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.plugin import Dataset
from rageval_spec.store.disk import InputFile

if TYPE_CHECKING:
    from rageval_spec.data import tables
    from rageval_spec.data.findings import Estimate
    from rageval_spec.data.samples import Part
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins


class PartOfDataset(Dataset[Any]):
    """Some queries of a dataset. Its documents are all there."""

    def __init__(self, whole: Dataset[Any], query_ids: abc.Collection[str]) -> None:
        super().__init__(whole.node, whole.context)
        self._whole = whole
        self._query_ids = sorted(set(query_ids))
        self.version = whole.version  # type: ignore[misc]

    @property
    def parts(self) -> frozenset[str]:
        return self._whole.parts

    def list_other_columns(self) -> Sequence[str] | None:
        return self._whole.list_other_columns()

    def find_parts(self) -> frozenset[Part] | None:
        return self._whole.find_parts()

    def inputs(self) -> Sequence[InputFile]:
        return self._whole.inputs()

    def content(self) -> dict[str, Any]:
        """The identity of the dataset and of its part, so that tables of the whole are never taken for those of it."""
        digest = hashlib.sha256(json.dumps(self._query_ids).encode()).hexdigest()
        return {**self._whole.content(), "queries": digest}

    def prepare(self) -> None:
        self._whole.prepare()

    def estimate(self) -> Estimate:
        return self._whole.estimate()

    def foresee(self) -> tables.Collection:
        """The collection with only these queries; the whole one, if its queries are only supposed."""
        whole = self._whole.foresee()
        part = restrict(whole, self._query_ids)
        return part if list_ids(part.queries, part.qrels) else whole

    def open(self) -> tables.Collection:
        part = restrict(self._whole.open(), self._query_ids)
        if not list_ids(part.queries, part.qrels):
            raise DataError(f"dataset '{self.context.name}' has none of the {len(self._query_ids)} wanted queries")
        return part


def narrow_datasets(parts: SpecPlugins, queries: Mapping[str, abc.Collection[str]]) -> SpecPlugins:
    """The parts with only these queries of each dataset; datasets that are not named stay whole."""
    if not queries:
        return parts
    narrowed = {name: PartOfDataset(one, queries[name]) for name, one in parts.datasets.items() if name in queries}
    return replace(parts, datasets={**parts.datasets, **narrowed})


def judged_queries(collection: Collection, limit: int | None = None) -> Collection:
    """A copy of the collection with only the queries in its qrels: the first `limit` of them, in the qrels' order."""
    qrels = collection.qrels
    if qrels is None:
        reason = collection.why_no_qrels or "name a file with qrels"
        raise DataError(f"dataset '{collection.name}' has no relevance judgements; {reason}")
    if limit is not None:
        qrels = only_queries(qrels, qrels.select("query_id").unique(maintain_order=True).head(limit))
    load_queries = collection.load_queries
    return replace(
        collection,
        load_qrels=lambda: qrels,
        load_queries=load_queries and (lambda: only_queries(load_queries(), qrels)),
    )


def queries_to_ask(whole: Collection, limit: int | None = None) -> Collection:
    """A copy of the collection with only the queries whose answers are evaluated: the first `limit` of them.

    If the dataset has gold answers, these are all of its queries; else the judged ones, if any; else all.
    """
    queries = whole.queries
    if queries is None or not queries.height:
        raise DataError(f"dataset '{whole.name}' has no queries to ask")
    if whole.references is None and has_judgements(whole):
        assert whole.qrels is not None, "it has judgements"
        queries = only_queries(queries, whole.qrels)
    asked = queries if limit is None else queries.head(limit)
    return replace(whole, load_queries=lambda: asked)


def has_judgements(collection: Collection) -> bool:
    return collection.qrels is not None and collection.qrels.height > 0


def sorted_ids(table: pl.DataFrame | None) -> pl.DataFrame:
    """The column `query_id` of queries or qrels that are evaluated, each id once, sorted."""
    assert table is not None, "a collection without queries and qrels is refused"
    return table.select("query_id").unique().sort("query_id")


_SIZE = 16


def shuffle(query_ids: Iterable[str], seed: int) -> tuple[str, ...]:
    """Each id once, in an order that depends only on the ids and the seed.

    Each id has a place of its own, so that questions that are added to a dataset do not change the order of the others.
    """
    key = str(seed).encode()

    def place(query_id: str) -> bytes:
        content = query_id.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=_SIZE, key=hashlib.sha256(key).digest()).digest()

    return tuple(sorted(dict.fromkeys(query_ids), key=place))


def restrict(collection: Collection, query_ids: Iterable[str]) -> Collection:
    """A copy of the collection with only these queries, in the collection's order."""
    wanted = pl.DataFrame({"query_id": list(query_ids)}, schema={"query_id": pl.String})
    qrels, load_queries = collection.qrels, collection.load_queries
    judged = None if qrels is None else only_queries(qrels, wanted)
    return replace(
        collection,
        load_qrels=collection.load_qrels and (lambda: judged),
        load_queries=load_queries and (lambda: only_queries(load_queries(), wanted)),
    )


def repeat_questions(collection: Collection, repeat: int) -> Collection:
    """A copy in which each question is there several times: `q1` becomes `q1#1`, `q1#2` and so on, one after the other.

    Raises DataError: its judgements follow from passages.
    """
    if repeat == 1:
        return collection
    if collection.passages is not None:
        raise DataError(f"dataset '{collection.name}' names passages as relevant, which 'repeat' cannot count")

    def load(part: Callable[[], pl.DataFrame | None]) -> pl.DataFrame | None:
        if (table := part()) is None:
            return None
        numbers = pl.DataFrame({"number": range(1, repeat + 1)})
        each = table.group_by("query_id", maintain_order=True).agg(pl.all()).join(numbers, how="cross")
        named = each.with_columns(pl.format("{}#{}", "query_id", "number").alias("query_id"))
        return named.explode([name for name in table.columns if name != "query_id"]).drop("number")

    parts = {
        name: getattr(collection, name) for name in ("load_queries", "load_qrels", "load_references", "load_columns")
    }
    loads = {name: partial(load, part) for name, part in parts.items() if part is not None}
    return replace(collection, repeat=repeat, **loads)  # type: ignore[arg-type]


def list_ids(*tables: pl.DataFrame | None) -> list[str]:
    return [
        query_id for table in tables if table is not None for query_id in table["query_id"].unique(maintain_order=True)
    ]
