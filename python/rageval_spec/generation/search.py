"""Searches the chunks of a corpus with the product's own retrievers, to see how hard a question's source is to find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from rageval_spec import registry
from rageval_spec.data.tables import Collection
from rageval_spec.judging.language import NAMES, find_language
from rageval_spec.plugin import Retrieval, ignore_progress

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.plugin import Context, System

Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""For each retriever, by its name, the ids of the best chunks for each question, best first."""
_SAMPLED = 50
"""How many texts are read to tell the language of a corpus."""
EASY, HARD = 1, 5
"""A source at this rank with every retriever is easy to find; one below this rank with every retriever is hard."""


@dataclass(frozen=True)
class Search:
    """The retrievers of a corpus.

    Attributes:
        systems: the retrievers by name.
        corpus: its chunks, as a table of `doc_id`, `title` and `text`.
    """

    systems: Mapping[str, System[Any]]
    corpus: pl.DataFrame

    def rank(self, questions: Mapping[str, str]) -> Rankings:
        """The best chunks for each question; a chunk that a retriever does not find is missing."""
        import polars as pl

        if not questions:
            return {name: {} for name in self.systems}
        queries = pl.DataFrame({"query_id": list(questions), "text": list(questions.values())})
        collection = Collection("chunks", load_queries=lambda: queries, load_corpus=lambda: self.corpus)
        return {name: _list_best(_retrieve(system, collection), queries) for name, system in self.systems.items()}


def _retrieve(system: System[Any], collection: Collection) -> pl.DataFrame:
    found = system.retrieve(collection, {})
    return found.run if isinstance(found, Retrieval) else found


def _list_best(run: pl.DataFrame, queries: pl.DataFrame) -> dict[str, list[str]]:
    best: dict[str, list[str]] = {query_id: [] for query_id in queries["query_id"]}
    for query_id, doc_id in run.select("query_id", "doc_id").iter_rows():
        best[query_id].append(doc_id)
    return best


def make_search(corpus: pl.DataFrame, model: str | None, depth: int, context: Context) -> Search:
    """BM25 over a corpus, and dense retrieval if there is an embedding model.

    Args:
        corpus: the chunks: `doc_id`, `title`, `text`.
        model: the name of an embedding model among `context.models`; None for none.
        depth: how many chunks to find for a question.
        context: where the retrievers find models and threads.
    """
    nodes: dict[str, dict[str, Any]] = {"bm25": {"stop_words": choose_stop_words(corpus["text"].to_list())}}
    if model is not None:
        nodes["dense"] = {"model": model}
    systems: dict[str, System[Any]] = {}
    for word, keys in nodes.items():
        plugin = registry.load("systems", word)
        node = plugin.node_type.model_validate({"use": word, "depth": depth, **keys})
        systems[word] = plugin(node, replace(context, name=word, progress=ignore_progress))
    return Search(systems, corpus)


def choose_stop_words(texts: Sequence[str]) -> str:
    """The name of bm25's list of stop words for the language of most of these texts, or `none`."""
    chosen = texts[:: max(1, len(texts) // _SAMPLED)]
    told = [language for text in chosen if (language := find_language(text)) is not None]
    if not told:
        return "none"
    name = NAMES.get(max(sorted(set(told)), key=told.count), "").lower()
    lists = get_args(registry.load("systems", "bm25").node_type.model_fields["stop_words"].annotation)
    return name if name in lists else "none"


def find_ranks(rankings: Rankings, question: str, sources: Sequence[str]) -> dict[str, int | None]:
    """For each retriever, the rank from 1 of the source that it ranks lowest, or None if it misses one.

    Sources that rank above it do not count: a question whose three sources are found first has rank 1.
    """
    ranks: dict[str, int | None] = {}
    for name, best in rankings.items():
        found = [best[question].index(source) + 1 for source in sources if source in best[question]]
        ranks[name] = max(found) - (len(sources) - 1) if len(found) == len(sources) else None
    return ranks


def measure_difficulty(ranks: Mapping[str, int | None]) -> str:
    """How hard it is to find the sources of a question: `easy`, `medium` or `hard`."""
    found = [rank for rank in ranks.values() if rank is not None]
    if len(found) == len(ranks) and max(found, default=0) <= EASY:
        return "easy"
    return "medium" if min(found, default=HARD + 1) <= HARD else "hard"
