"""`rr`: reciprocal rank."""

from __future__ import annotations

from rageval_spec.metrics.shared import ranking_metrics
from rageval_spec.plugin import MetricInfo


class RrNode(ranking_metrics.OptionalCutoff, ranking_metrics.RelevanceLevel, ranking_metrics.JudgedOnly):
    """Measures one over the rank of the first relevant document (reciprocal rank)."""


class Rr(ranking_metrics.KernelMetric[RrNode]):
    """Reciprocal rank of the first relevant document; its mean is MRR."""

    node_type = RrNode
    info = MetricInfo(
        summary="One over the rank of the first relevant document; its mean is MRR.",
        formula="rr@k = 1 / (rank of the first relevant document), 0 if that rank is above k",
        edge_cases=(
            "no relevant document, or none retrieved: 0",
            "first relevant document below the cutoff: 0",
            "cutoff larger than the ranking: all ranks count",
            ranking_metrics.NEGATIVE_RELEVANCE,
            ranking_metrics.MISSING_QUERY,
        ),
        source=(
            "Kantor and Voorhees, The TREC-5 confusion track: comparing retrieval methods for scanned text, "
            "Information Retrieval 2(2-3), 2000. Numbers: trec_eval v9.0.8 (d95ca64), recip_rank"
        ),
        aliases=("mrr", "recip_rank", "reciprocal_rank"),
    )


PLUGIN = Rr
