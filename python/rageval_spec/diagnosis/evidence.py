"""Chooses the metrics that a diagnosis is made from, and finds out whether contexts hold judged documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.data.diagnosis import JUDGED_DOCUMENTS

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.spec.nodes import DiagnosisNode, NamedMetric

RETRIEVAL = ("context_recall",)
CORRECTNESS = ("answer_correctness", "completeness", "token_f1")
FAITHFULNESS = ("faithfulness",)
"""The words of the metrics that decide each part, the best first."""


class Choice(NamedTuple):
    """The names of the metrics that decide; `retrieval` can be `JUDGED_DOCUMENTS`, `faithfulness` None."""

    retrieval: str
    correctness: str
    faithfulness: str | None


def choose_metrics(node: DiagnosisNode, metrics: Sequence[NamedMetric], *, has_judgements: bool) -> Choice | None:
    """The metrics of a spec that a diagnosis is made from; None if it has none for a part that every cause needs.

    A name in the node comes first, then the first metric of the spec with a fitting word. Without a metric that says
    what the contexts lack, judged documents do, if a dataset has judgements.
    """
    retrieval = node.retrieval or _find(metrics, RETRIEVAL) or (JUDGED_DOCUMENTS if has_judgements else None)
    correctness = node.correctness or _find(metrics, CORRECTNESS)
    if retrieval is None or correctness is None:
        return None
    return Choice(retrieval, correctness, node.faithfulness or _find(metrics, FAITHFULNESS))


def _find(metrics: Sequence[NamedMetric], words: Sequence[str]) -> str | None:
    return next((metric.name for word in words for metric in metrics if metric.node.use == word), None)


def find_judged_contexts(answers: pl.DataFrame, qrels: pl.DataFrame | None) -> pl.DataFrame:
    """For each answer, whether any relevant document is among its contexts: columns `query_id, found`.

    `found` is null if the answer does not name its documents, or if no document is relevant for its query.

    Args:
        answers: `query_id, context_ids`.
        qrels: `query_id, doc_id, relevance`; a relevance of 1 or more counts.
    """
    import polars as pl

    if qrels is None:
        return answers.select("query_id", found=pl.lit(None, dtype=pl.Boolean))
    relevant = qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id").unique()
    named = answers.select("query_id", doc_id="context_ids").explode("doc_id")
    hits = named.join(relevant, on=["query_id", "doc_id"], how="semi").select("query_id").unique()
    known = answers.select("query_id", is_known=pl.col("context_ids").is_not_null())
    is_judged = pl.col("query_id").is_in(relevant["query_id"].unique().implode())
    found = pl.when(pl.col("is_known") & is_judged).then(pl.col("query_id").is_in(hits["query_id"].implode()))
    return known.select("query_id", found=found)
