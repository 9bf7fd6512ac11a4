"""Whether a document whose id is the query's is the query itself, and so is dropped from rankings.

BEIR drops every such document, because in some of its collections (ArguAna, Quora) queries are documents of the
corpus. Where queries and documents are numbered independently, equal ids mean nothing and dropping loses results: the
texts decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec.data.evaluation import Note
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.spec.nodes import RankingNode


def may_drop_self(ranking: RankingNode, collection: Collection) -> bool:
    """Whether rows may be dropped at all, as far as that is known before a run is read."""
    return ranking.self_retrieval == "drop" or (ranking.self_retrieval == "auto" and collection.drops_self_retrieval)


def drops_self(ranking: RankingNode, collection: Collection, run: pl.DataFrame) -> bool:
    """Whether to drop the documents whose id is the query's from a run.

    With `auto`, where the dataset's benchmark does and the texts agree; texts that are not there stand in nobody's way.
    The texts are read only where the run has such rows.
    """
    if not may_drop_self(ranking, collection) or not (run["query_id"] == run["doc_id"]).any():
        return False
    return ranking.self_retrieval == "drop" or collection.repeats_queries is not False


def self_retrieval_notes(ranking: RankingNode, collection: Collection, system: str, found: int) -> list[Note]:
    """What became of `found` retrieved documents with the id of the query; one note for all systems if they stay."""
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
