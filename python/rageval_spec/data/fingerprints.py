"""Fingerprints of the questions, gold answers and judgements that values were computed with.

An evaluation that is saved keeps them, a few bytes a query, so that a later one can tell a system that got worse from
references that were edited.
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
"""Where a Parquet file of values keeps them."""
_DIGEST_SIZE = 6


class Fingerprint(NamedTuple):
    """What one query was evaluated with, each part as a digest in hex; None for what the query does not have.

    Attributes:
        question: its text.
        reference: its gold answers, reference contexts, and what else the dataset says of the answer.
        judgements: its documents and their relevance, in any order.
    """

    question: str | None = None
    reference: str | None = None
    judgements: str | None = None


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprint of each query, by dataset and query id. A dataset that nobody fingerprinted is not there."""

    datasets: Mapping[str, Mapping[str, Fingerprint]] = field(default_factory=dict)

    def dump(self) -> str:
        """They as text, for `parse`."""
        return json.dumps(self.datasets, separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def parse(cls, text: str | None) -> Fingerprints:
        """What was dumped; nothing of what is something else, as in files of other versions."""
        try:
            datasets = json.loads(text or "{}")
            return cls({name: {key: Fingerprint(*parts) for key, parts in of.items()} for name, of in datasets.items()})
        except (ValueError, TypeError, AttributeError):
            return cls()


@dataclass(frozen=True)
class Evaluated:
    """The queries of one dataset that were evaluated.

    Attributes:
        collection: has their judgements, and their questions and references where those are read.
        query_ids: which of its queries were evaluated.
        reads_questions, reads_references: whether a system or a metric looks at them; otherwise they are not read.
    """

    collection: Collection
    query_ids: pl.Series
    reads_questions: bool = True
    reads_references: bool = True


def take_fingerprints(evaluated: Evaluated) -> dict[str, Fingerprint]:
    """The fingerprints of a dataset's queries, in the order of their ids."""
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
    """The rows of a query are joined before Python sees them: there may be hundreds for each."""
    import polars as pl

    if qrels is None:
        return {}
    row = pl.concat_str("doc_id", pl.lit("\t"), pl.col("relevance").cast(pl.String))
    of_query = qrels.sort("query_id", "doc_id").group_by("query_id").agg(row.str.join("\n").alias("rows"))
    return {query_id: _digest(rows) for query_id, rows in of_query.iter_rows()}


def _digest(text: str | None) -> str:
    content = (text or "").encode("utf-8", "backslashreplace")
    return hashlib.blake2b(content, digest_size=_DIGEST_SIZE).hexdigest()
