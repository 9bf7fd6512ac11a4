"""Draws the questions of a dataset in a random order, for evaluations that may stop before the last one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rageval_spec.data.tables import only_queries

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection

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
    import polars as pl

    wanted = pl.DataFrame({"query_id": list(query_ids)}, schema={"query_id": pl.String})
    qrels, load_queries = collection.qrels, collection.load_queries
    judged = None if qrels is None else only_queries(qrels, wanted)
    return replace(
        collection,
        load_qrels=collection.load_qrels and (lambda: judged),
        load_queries=load_queries and (lambda: only_queries(load_queries(), wanted)),
    )


def list_ids(*tables: pl.DataFrame | None) -> list[str]:
    """The ids of all queries of these tables, in their order."""
    return [
        query_id for table in tables if table is not None for query_id in table["query_id"].unique(maintain_order=True)
    ]
