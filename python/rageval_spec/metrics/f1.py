"""`f1`: the harmonic mean of precision and recall at a cutoff."""

from __future__ import annotations

from rageval_spec.metrics.shared import ranking_metrics
from rageval_spec.plugin import MetricInfo


class F1Node(ranking_metrics.Cutoff, ranking_metrics.RelevanceLevel, ranking_metrics.JudgedOnly):
    """Measures the harmonic mean of precision and recall at a cutoff."""


class F1(ranking_metrics.KernelMetric[F1Node]):
    """F1 at a cutoff."""

    node_type = F1Node
    info = MetricInfo(
        summary="The harmonic mean of precision@k and recall@k.",
        formula=(
            "f1@k = 2 * P * R / (P + R), P = relevant documents at ranks <= k / k, "
            "R = relevant documents at ranks <= k / relevant documents in the qrels"
        ),
        edge_cases=(
            "no relevant document, or none in the first k (P + R = 0): 0",
            "cutoff larger than the ranking: P is still divided by k (set_f divides by the number retrieved)",
            ranking_metrics.NEGATIVE_RELEVANCE,
            ranking_metrics.MISSING_QUERY,
        ),
        source="van Rijsbergen, Information Retrieval, 2nd edition, Butterworths, 1979, chapter 7 (1 - E)",
    )


PLUGIN = F1
