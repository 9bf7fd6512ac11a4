"""Every ranking measure straight from its definition: whole rankings are sorted, nothing is shared or clever."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, permutations, product
from math import exp, inf, log, log2
from typing import Any

Judgements = Mapping[str, int]
Retrieved = Sequence[tuple[str, float]]
Parameters = Mapping[str, Any]

FLOOR = 0.00001


@dataclass(frozen=True)
class Query:
    """One query as a measure sees it.

    Attributes:
        ranking: the relevance of each retrieved document, best rank first; None if it is not in the qrels.
        judgements: all relevance values of the query.
        level: from which relevance on a document is relevant.
    """

    ranking: list[int | None]
    judgements: list[int]
    level: int = 1

    def hit(self, rank: int) -> bool:
        """Whether the document at a rank, from 1, is relevant."""
        relevance = self.ranking[rank - 1]
        return relevance is not None and relevance >= self.level

    def hits(self, cutoff: float = inf) -> int:
        return sum(self.hit(rank) for rank in self.ranks(cutoff))

    def ranks(self, cutoff: float = inf) -> range:
        return range(1, int(min(cutoff, len(self.ranking))) + 1)

    @property
    def relevant(self) -> int:
        return sum(relevance >= self.level for relevance in self.judgements)

    @property
    def nonrelevant(self) -> int:
        return sum(0 <= relevance < self.level for relevance in self.judgements)


def divide(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def gain(relevance: int | None, form: str) -> float:
    if relevance is None or relevance <= 0:
        return 0.0
    return float(relevance) if form == "linear" else 2.0**relevance - 1.0


def discounted(relevances: Sequence[int | None], cutoff: float, form: str) -> float:
    kept = relevances[: int(min(cutoff, len(relevances)))]
    return sum((gain(relevance, form) / log2(rank + 1) for rank, relevance in enumerate(kept, 1)), 0.0)


def dcg(query: Query, cutoff: float, parameters: Parameters) -> float:
    return discounted(query.ranking, cutoff, parameters.get("gain", "linear"))


def ndcg(query: Query, cutoff: float, parameters: Parameters) -> float:
    ideal = discounted(sorted(query.judgements, reverse=True), cutoff, parameters.get("gain", "linear"))
    return divide(dcg(query, cutoff, parameters), ideal)


def precision(query: Query, cutoff: float, parameters: Parameters) -> float:
    return query.hits(cutoff) / cutoff


def recall(query: Query, cutoff: float, parameters: Parameters) -> float:
    return divide(query.hits(cutoff), query.relevant)


def capped_recall(query: Query, cutoff: float, parameters: Parameters) -> float:
    return divide(query.hits(cutoff), min(cutoff, query.relevant))


def f1(query: Query, cutoff: float, parameters: Parameters) -> float:
    p, r = precision(query, cutoff, parameters), recall(query, cutoff, parameters)
    return divide(2 * p * r, p + r)


def success(query: Query, cutoff: float, parameters: Parameters) -> float:
    return float(query.hits(cutoff) > 0)


def rr(query: Query, cutoff: float, parameters: Parameters) -> float:
    return next((1 / rank for rank in query.ranks(cutoff) if query.hit(rank)), 0.0)


def average_precision(query: Query, cutoff: float, parameters: Parameters) -> float:
    return divide(sum(query.hits(rank) / rank for rank in query.ranks(cutoff) if query.hit(rank)), query.relevant)


def gm_map(query: Query, cutoff: float, parameters: Parameters) -> float:
    return log(max(average_precision(query, cutoff, parameters), FLOOR))


def rprec(query: Query, cutoff: float, parameters: Parameters) -> float:
    return divide(query.hits(query.relevant), query.relevant)


def bpref(query: Query, cutoff: float, parameters: Parameters) -> float:
    total = 0.0
    for rank in query.ranks():
        if query.hit(rank):
            above = [r for r in query.ranking[: rank - 1] if r is not None and 0 <= r < query.level]
            bounded = min(len(above), query.relevant)
            total += 1 - divide(bounded, min(query.nonrelevant, query.relevant))
    return divide(total, query.relevant)


def infap(query: Query, cutoff: float, parameters: Parameters) -> float:
    total = 0.0
    for rank in query.ranks():
        if not query.hit(rank):
            continue
        pooled = [relevance for relevance in query.ranking[: rank - 1] if relevance is not None]
        relevant = sum(relevance >= query.level for relevance in pooled)
        judged = sum(relevance >= 0 for relevance in pooled)
        guess = (relevant + FLOOR) / (judged + 2 * FLOOR)
        total += 1 / rank + (rank - 1) / rank * divide(len(pooled), rank - 1) * guess
    return divide(total, query.relevant)


def rbp(query: Query, cutoff: float, parameters: Parameters) -> float:
    p = parameters.get("p", 0.8)
    return float((1 - p) * sum(p ** (rank - 1) for rank in query.ranks(cutoff) if query.hit(rank)))


def err(query: Query, cutoff: float, parameters: Parameters) -> float:
    highest = parameters.get("max_grade", 4)
    total, arrives = 0.0, 1.0
    for rank in query.ranks(cutoff):
        relevance = query.ranking[rank - 1]
        stops = gain(None if relevance is None else min(relevance, highest), "exp") / 2**highest
        total += arrives * stops / rank
        arrives *= 1 - stops
    return total


def iprec(query: Query, cutoff: float, parameters: Parameters) -> float:
    wanted = int(parameters["recall"] * query.relevant + 0.9)
    return max((query.hits(rank) / rank for rank in query.ranks() if query.hits(rank) >= wanted), default=0.0)


def judged(query: Query, cutoff: float, parameters: Parameters) -> float:
    ranks = query.ranks(cutoff)
    return divide(sum(query.ranking[rank - 1] is not None for rank in ranks), len(ranks))


def num_ret(query: Query, cutoff: float, parameters: Parameters) -> float:
    return float(len(query.ranking))


def num_rel(query: Query, cutoff: float, parameters: Parameters) -> float:
    return float(query.relevant)


def num_rel_ret(query: Query, cutoff: float, parameters: Parameters) -> float:
    return float(query.hits())


def set_precision(query: Query, cutoff: float, parameters: Parameters) -> float:
    return divide(query.hits(), len(query.ranking))


def set_recall(query: Query, cutoff: float, parameters: Parameters) -> float:
    return divide(query.hits(), query.relevant)


def set_f(query: Query, cutoff: float, parameters: Parameters) -> float:
    x = parameters.get("beta", 1.0)
    p, r = set_precision(query, cutoff, parameters), set_recall(query, cutoff, parameters)
    return float(divide((x + 1) * p * r, x * p + r))


def target_rank(query: Query, cutoff: float, parameters: Parameters) -> float:
    if query.relevant != 1:
        return 0.0
    return float(next((rank for rank in query.ranks(cutoff) if query.hit(rank)), 0))


MEASURES: dict[str, Callable[[Query, float, Parameters], float]] = {
    "ndcg": ndcg,
    "dcg": dcg,
    "precision": precision,
    "recall": recall,
    "capped_recall": capped_recall,
    "f1": f1,
    "success": success,
    "rr": rr,
    "map": average_precision,
    "rprec": rprec,
    "bpref": bpref,
    "infap": infap,
    "rbp": rbp,
    "err": err,
    "iprec": iprec,
    "gm_map": gm_map,
    "judged": judged,
    "num_ret": num_ret,
    "num_rel": num_rel,
    "num_rel_ret": num_rel_ret,
    "set_precision": set_precision,
    "set_recall": set_recall,
    "set_f": set_f,
    "target_rank": target_rank,
}


@dataclass(frozen=True)
class Measure:
    """A measure as a word, a cutoff and parameters, which `text` writes as users do."""

    word: str
    cutoff: int | None = None
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def text(self) -> str:
        inside = ",".join(f"{key}={value}" for key, value in self.parameters if key != "recall")
        behind = self.cutoff if self.cutoff is not None else dict(self.parameters).get("recall")
        return self.word + (f"({inside})" if inside else "") + ("" if behind is None else f"@{behind}")

    def value(self, query: Query) -> float:
        parameters = dict(self.parameters)
        query = replace(query, level=parameters.get("rel", query.level))
        if parameters.get("judged_only"):
            query = keep_judged(query)
        return MEASURES[self.word](query, inf if self.cutoff is None else self.cutoff, parameters)


@dataclass(frozen=True)
class Settings:
    """How rankings are read: fields of `kernels.RankingOptions`."""

    ties: str = "trec_eval"
    depth: int | None = None
    judged_only: bool = False
    drop_self: bool = False
    relevance_level: int = 1
    duplicates: str = "error"


def as_float32(score: float) -> float:
    """The nearest float32; beyond its range an infinity, as a cast in C."""
    try:
        return float(struct.unpack("f", struct.pack("f", score))[0])
    except OverflowError:
        return inf if score > 0 else -inf


def order_key(settings: Settings) -> Callable[[tuple[str, float]], Any]:
    """The sort key of a retrieved document; documents with equal keys stay as they are."""
    if settings.ties == "trec_eval":
        return lambda item: (-as_float32(item[1]), [-byte for byte in item[0].encode()] + [1])
    if settings.ties in ("float64", "trec_eval_2023"):
        return lambda item: (-item[1], [-byte for byte in item[0].encode()] + [1])
    if settings.ties == "input":
        return lambda item: -item[1]
    raise ValueError(settings.ties)


def first_of_each(retrieved: Retrieved) -> list[tuple[str, float]]:
    seen: dict[str, float] = {}
    for doc_id, score in retrieved:
        seen.setdefault(doc_id, score)
    return list(seen.items())


def keep_judged(query: Query) -> Query:
    """Without the documents that are not in the qrels or have a negative relevance there."""
    return replace(
        query, ranking=[relevance for relevance in query.ranking if relevance is not None and relevance >= 0]
    )


def see(documents: Sequence[str], judgements: Judgements, settings: Settings) -> Query:
    """What measures see of a ranking whose documents are in order."""
    ranking = [judgements.get(doc_id) for doc_id in documents[: settings.depth]]
    query = Query(ranking, list(judgements.values()), settings.relevance_level)
    return keep_judged(query) if settings.judged_only else query


def candidates(query_id: str, retrieved: Retrieved, settings: Settings) -> list[tuple[str, float]]:
    kept = first_of_each(retrieved) if settings.duplicates == "first" else list(retrieved)
    return [item for item in kept if not (settings.drop_self and item[0] == query_id)]


def value(measure: Measure, query_id: str, judgements: Judgements, retrieved: Retrieved, settings: Settings) -> float:
    """A measure's value for one query."""
    ordered = sorted(candidates(query_id, retrieved, settings), key=order_key(settings))
    return measure.value(see([doc_id for doc_id, _ in ordered], judgements, settings))


def tied_orders(retrieved: Sequence[tuple[str, float]], settings: Settings) -> Iterator[list[str]]:
    """Every order of a ranking's documents that its scores allow."""

    def score(item: tuple[str, float]) -> float:
        return -as_float32(item[1]) if settings.ties == "trec_eval" else -item[1]

    groups = [[doc_id for doc_id, _ in group] for _, group in groupby(sorted(retrieved, key=score), key=score)]
    for order in product(*(permutations(group) for group in groups)):
        yield [doc_id for group in order for doc_id in group]


def tie_range(
    measure: Measure, query_id: str, judgements: Judgements, retrieved: Retrieved, settings: Settings
) -> tuple[float, float]:
    """The lowest and highest value over all orders of tied documents."""
    orders = tied_orders(candidates(query_id, retrieved, settings), settings)
    values = [measure.value(see(order, judgements, settings)) for order in orders]
    return min(values, key=height(measure)), max(values, key=height(measure))


def height(measure: Measure) -> Callable[[float], float]:
    """The key by which values are ordered: the value itself, except that target_rank's 0 (no rank) is the lowest."""
    return (lambda value: value or inf) if measure.word == "target_rank" else float


def aggregate(word: str, values: Sequence[float]) -> float:
    """The mean (for ranks, only of actual ranks); for gm_map, the geometric mean of logarithms; for counts, the sum."""
    if word.startswith("num_"):
        return sum(values)
    if word == "target_rank":
        values = [value for value in values if value] or [0.0]
    mean = sum(values) / len(values)
    return exp(mean) if word == "gm_map" else mean
