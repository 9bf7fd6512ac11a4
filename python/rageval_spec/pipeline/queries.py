"""Selects the queries of a dataset: the judged ones for rankings, and the ones to ask for answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rageval_spec.data.tables import Collection, only_queries
from rageval_spec.errors import DataError

if TYPE_CHECKING:
    import polars as pl


def judged_queries(collection: Collection, limit: int | None = None) -> Collection:
    """A copy of the collection with only the queries in its qrels: the first `limit` of them, in the qrels' order.

    Raises:
        DataError: the dataset has no judgements.
    """
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

    Raises:
        DataError: the dataset has no queries.
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
    """Whether any document is judged for any query."""
    return collection.qrels is not None and collection.qrels.height > 0


def judged_ids(judged: Collection) -> pl.DataFrame:
    """The column `query_id` with the queries that rankings are evaluated on, each once, sorted."""
    assert judged.qrels is not None, "judged_queries refuses a collection without qrels"
    return judged.qrels.select("query_id").unique().sort("query_id")


def asked_ids(asked: Collection) -> pl.DataFrame:
    """The column `query_id` with the queries that answers are evaluated on, sorted."""
    assert asked.queries is not None, "queries_to_ask refuses a collection without queries"
    return asked.queries.select("query_id").sort("query_id")
