"""Fingerprints of the questions, gold answers and judgements from which values were computed.

A saved evaluation keeps them, at a few bytes for each query. A later evaluation uses them to tell a system that got
worse from references that were edited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.data import tables

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection

METADATA_KEY = "rageval-spec:fingerprints"
"""The key of the fingerprints in the metadata of a Parquet file of values."""
_DIGEST_SIZE = 6


class Fingerprint(NamedTuple):
    """Digests, in hex, of the data that one query was evaluated with; None for a part that the query does not have.

    Attributes:
        question: digest of the query's text.
        reference: digest of the gold answers, the reference contexts and the other columns of `tables.REFERENCES`.
        judgements: digest of the judged documents and their relevance; their order does not matter.
    """

    question: str | None = None
    reference: str | None = None
    judgements: str | None = None


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprint of each query, by dataset and query id. Datasets without recorded fingerprints are absent."""

    datasets: Mapping[str, Mapping[str, Fingerprint]] = field(default_factory=dict)

    def dump(self) -> str:
        """The fingerprints as JSON text, which `parse` reads."""
        return json.dumps(self.datasets, separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def parse(cls, text: str | None) -> Fingerprints:
        """Read the text that `dump` wrote. None, and any other text (from another version), give no fingerprints."""
        try:
            datasets = json.loads(text or "{}")
            return cls({name: {key: Fingerprint(*parts) for key, parts in of.items()} for name, of in datasets.items()})
        except (ValueError, TypeError, AttributeError):
            return cls()


@dataclass(frozen=True)
class Evaluated:
    """The queries of one dataset that were evaluated.

    Attributes:
        collection: the dataset, with their judgements, questions and references.
        query_ids: the ids of the evaluated queries.
        reads_questions, reads_references: whether a system or a metric uses them; if not, they are not read.
    """

    collection: Collection
    query_ids: pl.Series
    reads_questions: bool = True
    reads_references: bool = True


def take_fingerprints(evaluated: Evaluated) -> dict[str, Fingerprint]:
    """The fingerprints of a dataset's evaluated queries, sorted by query id."""
    collection = evaluated.collection
    questions = _digest_questions(collection.queries) if evaluated.reads_questions else {}
    references = _digest_references(collection.references) if evaluated.reads_references else {}
    judgements = _digest_judgements(collection.qrels)
    return {
        query_id: Fingerprint(questions.get(query_id), references.get(query_id), judgements.get(query_id))
        for query_id in sorted(evaluated.query_ids.unique().to_list())
    }


def _digest_questions(queries: pl.DataFrame | None) -> dict[str, str]:
    if queries is None:
        return {}
    return {query_id: _digest(text) for query_id, text in queries.select("query_id", "text").iter_rows()}


def _digest_references(references: pl.DataFrame | None) -> dict[str, str]:
    if references is None:
        return {}
    columns = [column for column in tables.REFERENCES if column != "query_id" and column in references.columns]
    return {
        query_id: _digest(json.dumps(row, ensure_ascii=True))
        for query_id, *row in references.select("query_id", *columns).iter_rows()
    }


def _digest_judgements(qrels: pl.DataFrame | None) -> dict[str, str]:
    """Digest the judgements. Polars joins the rows of each query, because there can be hundreds for each."""
    import polars as pl

    if qrels is None:
        return {}
    row = pl.concat_str("doc_id", pl.lit("\t"), pl.col("relevance").cast(pl.String))
    of_query = qrels.sort("query_id", "doc_id").group_by("query_id").agg(row.str.join("\n").alias("rows"))
    return {query_id: _digest(rows) for query_id, rows in of_query.iter_rows()}


def _digest(text: str | None) -> str:
    content = (text or "").encode("utf-8", "backslashreplace")
    return hashlib.blake2b(content, digest_size=_DIGEST_SIZE).hexdigest()
