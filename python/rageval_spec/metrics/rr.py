"""`rr`: reciprocal rank."""

from __future__ import annotations

from rageval_spec.metrics.shared.ranking_metrics import (
    MISSING_QUERY,
    NEGATIVE_RELEVANCE,
    JudgedOnly,
    KernelMetric,
    OptionalCutoff,
    RelevanceLevel,
)
from rageval_spec.plugin import MetricInfo


class RrNode(OptionalCutoff, RelevanceLevel, JudgedOnly):
    """Measures one over the rank of the first relevant document (reciprocal rank)."""


class Rr(KernelMetric[RrNode]):
    """Reciprocal rank of the first relevant document; its mean is MRR."""

    node_type = RrNode
    info = MetricInfo(
        summary="One over the rank of the first relevant document; its mean is MRR.",
        formula="rr@k = 1 / (rank of the first relevant document), 0 if that rank is above k",
        edge_cases=(
            "no relevant document, or none retrieved: 0",
            "first relevant document below the cutoff: 0",
            "cutoff larger than the ranking: all ranks count",
            NEGATIVE_RELEVANCE,
            MISSING_QUERY,
        ),
        source=(
            "Kantor and Voorhees, The TREC-5 confusion track: comparing retrieval methods for scanned text, "
            "Information Retrieval 2(2-3), 2000. Numbers: trec_eval v9.0.8 (d95ca64), recip_rank"
        ),
        aliases=("mrr", "recip_rank", "reciprocal_rank"),
    )


PLUGIN = Rr
