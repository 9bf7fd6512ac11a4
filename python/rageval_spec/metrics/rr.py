from __future__ import annotations

from rageval_spec.libraries import pl
from rageval_spec.metrics.shared import ranking_metrics
from rageval_spec.plugin import MetricInfo


class Rr(ranking_metrics.KernelMetric[ranking_metrics.RelevantInRanking]):
    info = MetricInfo(
        summary="Reciprocal rank: one over the rank of the first relevant document; its mean is MRR.",
        formula="rr@k = 1 / (rank of the first relevant document), 0 if that rank is above k",
        edge_cases=(
            "no relevant document, or none retrieved: 0",
            "first relevant document below the cutoff: 0",
            "cutoff larger than the ranking: all ranks count",
            ranking_metrics.NEGATIVE_RELEVANCE,
        ),
        source="Kantor and Voorhees, The TREC-5 confusion track: comparing retrieval methods for scanned text, "
        "Information Retrieval 2(2-3), 2000. Numbers: trec_eval v9.0.8 (d95ca64), recip_rank",
        aliases=("mrr", "recip_rank", "reciprocal_rank"),
    )

    def find_ranks(self, values: pl.DataFrame) -> pl.Series:
        value = pl.col("value")
        rank = pl.when(value > 0).then((1 / value).round()).otherwise(0)
        return values.filter(status="scored").select(rank.cast(pl.Int64).alias("rank")).to_series()


PLUGIN = Rr
