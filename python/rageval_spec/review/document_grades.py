"""Pairs of a query and a document for people to grade, drawn so that means over all pairs can be estimated.

The pairs are all that a system found to some depth, or that are judged. A pair at rank r is drawn with a probability in
proportion to 1/sqrt(r), and each query is expected to get the same number of pairs. The draw is systematic (Madow, On
the theory of systematic sampling, II, 1949): along the queries, and along the ranks of each, so that every query and
every range of ranks gets its share, one more or less. The probabilities are exact, and stand in every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rageval_spec.data.labels import Label
from rageval_spec.dataclass import replace
from rageval_spec.errors import DataError, UsageError
from rageval_spec.libraries import Floats, np, pl
from rageval_spec.review.criteria import ReviewCriterion, make_criterion
from rageval_spec.review.tasks import ReviewSheet, ReviewTask

RELEVANCE = "document_relevance"
"""What the labels of documents are on, until they are in a file of their own."""
_PAIR = ["query_id", "doc_id"]
_GRADES = """3: It is about the query and answers it in full.
2: It answers the query, but not clearly, or among much else.
1: It is on the topic, but does not answer the query.
0: It has nothing to do with the query."""
_GUIDELINES = (
    "Grade the document by its own text, not by what you know.\nA document that repeats another is as relevant."
)


def pool_pairs(ranked: Iterable[pl.DataFrame], qrels: pl.DataFrame | None, depth: int) -> pl.DataFrame:
    """Each pair once: `query_id, doc_id, rank, relevance`, the best rank of any system, and the grade so far or null.

    A judged pair that no system found to this depth comes behind all others. Where there is no system at all, all
    pairs have the same rank.
    """
    schema = {"query_id": pl.String, "doc_id": pl.String, "rank": pl.Int64}
    found = pl.concat([pl.DataFrame(schema=schema), *(one.select([*schema]) for one in ranked)])
    best = found.drop_nulls("doc_id").group_by(_PAIR).agg(pl.min("rank"))
    judged = pl.DataFrame(schema={**schema, "relevance": pl.Int64}).drop("rank") if qrels is None else qrels
    pool = best.join(judged.select([*_PAIR, "relevance"]), on=_PAIR, how="full", coalesce=True)
    return pool.with_columns(pl.col("rank").fill_null(depth + 1)).sort(_PAIR)


def draw_pairs(pool: pl.DataFrame, count: int, seed: int) -> pl.DataFrame:
    """`count` pairs of the pool, each with its `probability`, by query in a random order, and at random within it.

    Raises DataError: there is no pair.
    """
    if not pool.height:
        raise DataError("no system found a document and none is judged, so there is nothing to grade")
    random = np.random.default_rng(seed)
    queries = pool["query_id"].unique(maintain_order=True)
    turn = pl.DataFrame({"query_id": queries, "turn": random.permutation(len(queries))})
    shuffled = pool.sample(fraction=1, shuffle=True, seed=seed).join(turn, on="query_id", maintain_order="left")
    ordered = shuffled.sort("turn", "rank", maintain_order=True)
    weight = ordered.select((1 / pl.col("rank").sqrt()) / (1 / pl.col("rank").sqrt()).sum().over("query_id"))
    chances = find_chances(weight.to_series().to_numpy(), count)
    ends = np.round(np.cumsum(chances) + random.random(), 9)
    taken = np.floor(ends) > np.floor(np.round(ends - chances, 9))
    drawn = ordered.with_columns(probability=pl.Series(chances)).filter(pl.Series(taken))
    return drawn.sample(fraction=1, shuffle=True, seed=seed).sort("turn", maintain_order=True).drop("turn")


def find_chances(weights: Floats, count: int) -> Floats:
    """Probabilities in proportion to positive weights, none above 1, whose sum is `count`; all 1 for that many."""
    if count >= len(weights):
        return np.ones(len(weights))
    certain = np.zeros(len(weights), dtype=bool)
    while True:
        scale = (count - certain.sum()) / weights[~certain].sum()
        chances = np.where(certain, 1.0, weights * scale)
        if not (above := chances > 1).any():
            return chances
        certain |= above


def build_document_sheet(
    name: str, pairs: pl.DataFrame, texts: Mapping[str, str], queries: Mapping[str, str], scale: str, annotator: str
) -> ReviewSheet:
    """The sheet on which people grade pairs of `draw_pairs`; a grade that a pair has is told once people gave theirs.

    Raises UsageError: the scale is not one of grades.
    """
    asked = make_criterion(RELEVANCE, scale)
    if asked.kind != "rating" or asked.low < 0:
        raise UsageError(f"--scale {scale}: documents are graded from 0 up; write 0..3")
    told = f"{_GRADES}\n{_GUIDELINES}" if asked.scale == "0..3" else _GUIDELINES
    criterion: ReviewCriterion = replace(asked, question="How relevant is the document to the query?", guidelines=told)
    tasks = (
        ReviewTask(
            name, doc_id, query_id, queries[query_id], texts[doc_id], judged={RELEVANCE: relevance},
            probability=probability,
        )
        for query_id, doc_id, relevance, probability in pairs.select(*_PAIR, "relevance", "probability").iter_rows()
    )  # fmt: skip
    return ReviewSheet(name, "", "", tuple(tasks), (criterion,), "", annotator, subject="documents")


def take_grades(labels: Sequence[Label]) -> Sequence[Label]:
    """Labels of a page's documents as those of files of grades: of a document, and not of a system's answer.

    Other labels stay as they are. Raises UsageError: there are both.
    """
    if len({label.metric == RELEVANCE for label in labels}) > 1:
        raise UsageError("some labels are of documents and some of answers; import them into files of their own")
    if not labels or labels[0].metric != RELEVANCE:
        return labels
    return [
        replace(label, document=label.system, dataset="", system="", metric="", answer="", reason="")
        for label in labels
    ]
