"""The runs that bm25s gives, as the system `bm25` made them before it had an index of its own."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from bm25s import BM25
from bm25s.tokenization import Tokenizer

WORDS = r"(?u)\b\w\w+\b"


def rank_documents(
    corpus: Mapping[str, str],
    queries: list[str],
    *,
    splitter: str | Callable[[str], list[str]] = WORDS,
    stop_words: str | None = "english",
    stemmer: Any = None,
    depth: int = 1000,
    **formula: Any,
) -> list[list[tuple[str, float]]]:
    """For each query the ids and scores of the best documents, equal scores in descending order of ids."""
    ids = sorted(corpus, key=str.encode, reverse=True)
    tokenizer = Tokenizer(splitter=splitter, stopwords=stop_words, stemmer=stemmer)
    texts = (corpus[key] for key in ids)
    tokens = [array("i", found) for found in tokenizer.streaming_tokenize(texts, allow_empty=False)]
    vocabulary = tokenizer.get_vocab_dict()
    if not vocabulary:
        return [[] for _ in queries]
    scorer = BM25(backend="numpy", **formula)
    scorer.index((tokens, vocabulary), create_empty_token=False, show_progress=False)
    absent, scorer.nonoccurrence_array = scorer.nonoccurrence_array, None
    return [_rank(scorer, absent, ids, found, depth) for found in _read(tokenizer, queries)]


def _read(tokenizer: Tokenizer, queries: list[str]) -> list[list[int]]:
    return list(tokenizer.streaming_tokenize(queries, update_vocab=False, allow_empty=False))


def _rank(scorer: BM25, absent: Any, ids: list[str], tokens: list[int], depth: int) -> list[tuple[str, float]]:
    if not tokens:
        return []
    scores = scorer.get_scores_from_ids(tokens)
    found = np.flatnonzero(scores > 0)
    best = scores[found] + (0 if absent is None else absent[tokens].sum())
    order = np.argsort(-best, kind="stable")[:depth]
    return [(ids[found[place]], float(best[place])) for place in order]
