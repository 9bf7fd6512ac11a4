"""Fusion of rankings straight from its definitions: dictionaries, one query after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

Ranking = Sequence[tuple[str, float]]
"""Documents and scores, best first."""
Run = Mapping[str, Ranking]


def fuse(
    runs: Sequence[Run], *, method: str, weights: Sequence[float], k: float, normalization: str, depth: int
) -> dict[str, list[tuple[str, float]]]:
    fused = {}
    for query in dict.fromkeys(query for run in runs for query, ranking in run.items() if ranking):
        rankings = [(run[query], weight) for run, weight in zip(runs, weights, strict=True) if run.get(query)]
        if method == "rrf":
            parts = [(reciprocal_ranks(ranking, k), 0.0, weight) for ranking, weight in rankings]
        else:
            parts = [(*normalize(ranking, normalization), weight) for ranking, weight in rankings]
        fused[query] = order(add_up(parts))[:depth]
    return fused


def add_up(parts: Sequence[tuple[Mapping[str, float], float, float]]) -> list[tuple[str, float]]:
    """From values by document, the value of all other documents, and a weight for each run."""
    documents = dict.fromkeys(document for values, _, _ in parts for document in values)
    sums = []
    for document in documents:
        total = 0.0
        for values, otherwise, weight in parts:
            total += weight * values.get(document, otherwise)
        sums.append((document, total))
    return sums


def reciprocal_ranks(ranking: Ranking, k: float) -> dict[str, float]:
    return {document: 1 / (k + rank) for rank, (document, _) in enumerate(ranking, 1)}


def normalize(ranking: Ranking, normalization: str) -> tuple[dict[str, float], float]:
    """The documents' values, and that of documents which are not in the ranking."""
    scores = [score for _, score in ranking]
    lowest, highest = min(scores), max(scores)
    if normalization == "min_max":
        spread = highest - lowest
        return {document: (score - lowest) / spread if spread else 1.0 for document, score in ranking}, 0.0
    if normalization == "max":
        return {document: score / highest for document, score in ranking}, 0.0
    if normalization == "none":
        return dict(ranking), 0.0
    mean = plain_sum(scores) / len(scores)
    deviation = sqrt(plain_sum([(score - mean) * (score - mean) for score in scores]) / len(scores))
    if lowest == highest:
        return {document: 0.0 for document, _ in ranking}, 0.0
    return {document: (score - mean) / deviation for document, score in ranking}, (lowest - mean) / deviation


def plain_sum(values: Sequence[float]) -> float:
    """Added up one by one; `sum` carries the rounding errors along."""
    total = 0.0
    for value in values:
        total += value
    return total


def order(ranking: Ranking) -> list[tuple[str, float]]:
    """As trec_eval: float32 scores descending, then ids descending, by their bytes."""
    with np.errstate(over="ignore"):
        return sorted(ranking, key=lambda row: (np.float32(row[1]), row[0].encode()), reverse=True)
