"""Decides whether a document with the query's id is the query itself, and so must be dropped from rankings.

BEIR drops every such document, because in some of its collections (ArguAna, Quora) queries are documents of the
corpus. If queries and documents are numbered independently, equal ids mean nothing, and dropping such documents would
lose results. Therefore the texts are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec.data.note import Note
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.spec.nodes import RankingNode


def may_drop_self(ranking: RankingNode, collection: Collection) -> bool:
    """Whether rows could be dropped, as far as this is known before a run is read."""
    return ranking.self_retrieval == "drop" or (ranking.self_retrieval == "auto" and collection.drops_self_retrieval)


def drops_self(ranking: RankingNode, collection: Collection, run: pl.DataFrame) -> bool:
    """Whether to drop the documents whose id is the query's from a run.

    With `auto`, they are dropped if the dataset's benchmark does so and the texts do not disagree (missing texts never
    do). The texts are read only if the run has such rows.
    """
    if not may_drop_self(ranking, collection) or not (run["query_id"] == run["doc_id"]).any():
        return False
    return ranking.self_retrieval == "drop" or collection.repeats_queries is not False


def self_retrieval_notes(ranking: RankingNode, collection: Collection, system: str, found: int) -> list[Note]:
    """A note on the `found` retrieved documents with the query's id; one note for all systems if they were kept."""
    if not found:
        return []
    if ranking.self_retrieval == "auto" and collection.repeats_queries is False:
        message = (
            "documents with the id of the query are kept, because their texts differ from the query's; "
            "set 'ranking.self_retrieval: drop' to drop them"
        )
        return [Note("self_retrieval", message, collection.name)]
    documents, were = count_noun(found, "retrieved document"), "was" if found == 1 else "were"
    message = f"{documents} with the id of the query {were} dropped"
    if ranking.self_retrieval == "auto":
        message += ", as BEIR does; set 'ranking.self_retrieval: keep' to keep them"
    return [Note("self_retrieval", message, collection.name, system, found)]
