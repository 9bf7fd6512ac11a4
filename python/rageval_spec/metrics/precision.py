"""`precision`: the share of relevant documents in the top k."""

from __future__ import annotations

from rageval_spec.metrics.shared import ranking_metrics
from rageval_spec.plugin import MetricInfo


class PrecisionNode(ranking_metrics.Cutoff, ranking_metrics.RelevanceLevel, ranking_metrics.JudgedOnly):
    """Measures the share of relevant documents in the top k."""


class Precision(ranking_metrics.KernelMetric[PrecisionNode]):
    """Precision at a cutoff."""

    node_type = PrecisionNode
    info = MetricInfo(
        summary="The share of relevant documents among the first k.",
        formula="precision@k = relevant documents at ranks <= k / k",
        edge_cases=(
            "no relevant document: 0",
            "cutoff larger than the ranking: still divided by k, so a short ranking is not rewarded",
            ranking_metrics.NEGATIVE_RELEVANCE,
            ranking_metrics.MISSING_QUERY,
        ),
        source=(
            "Manning, Raghavan and Schütze, Introduction to Information Retrieval, Cambridge University Press, 2008, "
            "section 8.4. Numbers: trec_eval v9.0.8 (d95ca64), P"
        ),
        aliases=("p", "prec"),
    )


PLUGIN = Precision
