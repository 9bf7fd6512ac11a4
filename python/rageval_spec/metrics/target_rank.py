"""`target_rank`: the rank of the one document that a query looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.errors import DataError
from rageval_spec.plugin import MetricInfo, TableMetric
from rageval_spec.ranking_metric import OptionalCutoff, measure_text

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.tables import Collection

MISSED = "missed"
"""The reason of a query whose target was not retrieved: counted, it is the miss share."""


class TargetRankNode(OptionalCutoff):
    """Rank of the one target document."""

    rel: int = Field(default=1, ge=1, description="From which relevance on a document is a target.")


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
            "ties: trec_eval's order, score as float32 descending and then doc_id descending",
            "negative relevance: not a target",
            "of `ranking:` only self_retrieval applies: cutoff and rel take the place of depth and relevance_level",
            "duplicate documents: the first counts",
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
        import polars as pl

        if collection.qrels is None:
            raise DataError(f"target_rank: dataset '{collection.name}' has no relevance judgements")
        reciprocal = "rr" if self.node.cutoff is None else f"rr@{self.node.cutoff}"
        ranked = kernels.evaluate_ranking(
            collection.qrels,
            run,
            [reciprocal, "num_rel"],
            relevance_level=self.node.rel,
            duplicates="first",
            threads=self.context.threads,
        )
        columns = {"query_id": ranked.query_ids, "reciprocal": ranked.values[0], "targets": ranked.values[1]}
        return explain(pl.DataFrame(columns, schema_overrides={"query_id": pl.String}))


def explain(ranked: pl.DataFrame) -> pl.DataFrame:
    """The rank of the one target, or why there is none."""
    import polars as pl

    targets = pl.col("targets")
    reason = (
        pl.when(targets == 0)
        .then(pl.lit("no relevant document"))
        .when(targets > 1)
        .then(pl.format("{} relevant documents, not one target", targets.cast(pl.Int64)))
        .when(pl.col("reciprocal") == 0)
        .then(pl.lit(MISSED))
    )
    return ranked.with_columns(reason.alias("reason")).select(
        "query_id",
        pl.when(pl.col("reason").is_null()).then((1 / pl.col("reciprocal")).round()).alias("value"),
        pl.when(pl.col("reason").is_null()).then(pl.lit("scored")).otherwise(pl.lit("unscorable")).alias("status"),
        "reason",
    )


PLUGIN = TargetRank
