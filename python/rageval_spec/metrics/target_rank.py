"""`target_rank`: the rank of the one document that a query looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec.errors import DataError
from rageval_spec.plugin import MetricInfo, TableMetric
from rageval_spec.ranking_metric import OptionalCutoff, RelevanceLevel, measure_text

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.tables import Collection

MISSED = "missed"
"""The reason of a query whose target was not retrieved: counted, it is the miss share."""


class TargetRankNode(OptionalCutoff, RelevanceLevel):
    """Rank of the one target document."""


class TargetRank(TableMetric[TargetRankNode]):
    """Rank of the one target document."""

    node_type = TargetRankNode
    info = MetricInfo(
        summary="The rank of the one document that a query looks for, over the queries whose target was retrieved.",
        formula=(
            "target_rank = 1 + documents ranked before the target; match share = targets retrieved / queries with one "
            "target, miss share = 1 - match share"
        ),
        edge_cases=(
            "target not retrieved, below the cutoff, or query not in the run: no value, reason 'missed'; a mean of "
            "ranks says little without the share of misses beside it",
            "no relevant document, or several: the query has no one target; no value",
            "ties: trec_eval's order (score as float32 descending, then doc_id descending)",
            "negative relevance: not a target",
        ),
        source="Known-item search: Kantor and Voorhees, The TREC-5 confusion track: comparing retrieval methods for "
        "scanned text, Information Retrieval 2(2-3), 2000",
        higher_is_better=False,
        bounds=(1.0, None),
    )

    @property
    def name(self) -> str:
        """`target_rank`, with its parameters and cutoff."""
        return measure_text(self.node)

    def compute(self, collection: Collection, run: pl.DataFrame) -> pl.DataFrame:
        """`query_id, value, status, reason`, sorted by `query_id`; value is the rank, from 1.

        Raises:
            DataError: the dataset has no relevance judgements.
        """
        if collection.qrels is None:
            raise DataError(f"target_rank: dataset '{collection.name}' has no relevance judgements")
        targets = find_targets(collection.qrels, self.node.rel or 1)
        kept = run.filter(run["query_id"] != run["doc_id"]) if collection.drops_self_retrieval else run
        ranks = rank_targets(targets, kept, self.node.cutoff)
        return explain(targets.join(ranks, on="query_id", how="left", maintain_order="left"))


def find_targets(qrels: pl.DataFrame, relevance_level: int) -> pl.DataFrame:
    """`query_id, targets, target`: how many documents of each query are relevant, and the first of them."""
    import polars as pl

    relevant = pl.col("relevance") >= relevance_level
    return (
        qrels.group_by("query_id")
        .agg(relevant.sum().alias("targets"), pl.col("doc_id").filter(relevant).first().alias("target"))
        .sort("query_id")
    )


def rank_targets(targets: pl.DataFrame, run: pl.DataFrame, cutoff: int | None) -> pl.DataFrame:
    """`query_id, rank` of the queries with one target that was retrieved at a rank up to the cutoff."""
    import polars as pl

    scores = run.with_columns(pl.col("score").cast(pl.Float32))
    found = targets.filter(pl.col("targets") == 1).join(
        scores.rename({"score": "target_score"}), left_on=["query_id", "target"], right_on=["query_id", "doc_id"]
    )
    tied = (pl.col("score") == pl.col("target_score")) & (pl.col("doc_id") > pl.col("target"))
    before = (pl.col("score") > pl.col("target_score")) | tied
    ranks = scores.join(found, on="query_id").group_by("query_id").agg((before.sum() + 1).alias("rank"))
    return ranks if cutoff is None else ranks.filter(pl.col("rank") <= cutoff)


def explain(ranked: pl.DataFrame) -> pl.DataFrame:
    """Values with a status and, where there is none, the reason."""
    import polars as pl

    several = pl.format("{} relevant documents, not one target", pl.col("targets"))
    return ranked.select(
        "query_id",
        pl.col("rank").cast(pl.Float64).alias("value"),
        pl.when(pl.col("rank").is_null()).then(pl.lit("unscorable")).otherwise(pl.lit("scored")).alias("status"),
        pl.when(pl.col("rank").is_not_null())
        .then(pl.lit(None, pl.String))
        .when(pl.col("targets") == 0)
        .then(pl.lit("no relevant document"))
        .when(pl.col("targets") > 1)
        .then(several)
        .otherwise(pl.lit(MISSED))
        .alias("reason"),
    )


PLUGIN = TargetRank
