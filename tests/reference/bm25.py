"""BM25 as Kamphuis et al., "Which BM25 do you mean?" (ECIR 2020), table 1, writes it: slow, one document at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping


def words(text: str) -> list[str]:
    return re.findall(r"\b\w\w+\b", text.lower())


def idf(method: str, documents: int, holders: int) -> float:
    match method:
        case "lucene":
            return math.log(1 + (documents - holders + 0.5) / (holders + 0.5))
        case "robertson":
            # The library clips what would be negative: a word in more than half of the documents counts nothing.
            return max(0.0, math.log((documents - holders + 0.5) / (holders + 0.5)))
        case "atire":
            return math.log(documents / holders)
        case "bm25l":
            return math.log((documents + 1) / (holders + 0.5))
        case _:
            return math.log((documents + 1) / holders)


def saturation(method: str, count: int, length: float, k1: float, b: float, delta: float) -> float:
    norm = 1 - b + b * length
    match method:
        case "lucene" | "robertson":
            return count / (count + k1 * norm) if count else 0.0
        case "atire":
            return (k1 + 1) * count / (count + k1 * norm) if count else 0.0
        case "bm25l":
            return (k1 + 1) * (count / norm + delta) / (k1 + count / norm + delta)
        case _:
            return (k1 + 1) * count / (count + k1 * norm) + delta if count else delta


def score_documents(
    query: str, corpus: Mapping[str, str], *, method: str, k1: float, b: float, delta: float
) -> dict[str, float]:
    """Scores of the documents that share a word with the query."""
    tokens = {doc_id: words(text) for doc_id, text in corpus.items()}
    mean_length = sum(map(len, tokens.values())) / len(tokens)
    holders = {word: sum(word in found for found in tokens.values()) for word in words(query)}
    scores: dict[str, float] = {}
    if not mean_length:
        return scores
    for doc_id, found in tokens.items():
        if not set(found) & set(holders):
            continue
        relative = len(found) / mean_length
        scores[doc_id] = sum(
            idf(method, len(corpus), holders[word]) * saturation(method, found.count(word), relative, k1, b, delta)
            for word in words(query)
            if holders[word]
        )
    return scores
