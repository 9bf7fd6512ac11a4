"""`set_precision`: the share of relevant documents among all that were retrieved."""

from __future__ import annotations

from rageval_spec.metrics.shared import ranking_metrics
from rageval_spec.plugin import MetricInfo


class SetPrecisionNode(ranking_metrics.RelevanceLevel, ranking_metrics.JudgedOnly):
    """Measures the share of relevant documents among all that were retrieved."""


class SetPrecision(ranking_metrics.KernelMetric[SetPrecisionNode]):
    """Precision of the retrieved set."""

    node_type = SetPrecisionNode
    info = MetricInfo(
        summary="The share of relevant documents among all that were retrieved; ranks do not matter.",
        formula="set_precision = relevant documents retrieved / documents retrieved",
        edge_cases=(
            "no relevant document: 0",
            "nothing retrieved, or nothing judged with judged_only: 0",
            ranking_metrics.NEGATIVE_RELEVANCE,
            "ties: the order matters only with `ranking.depth`; with judged_only too, the tie range is from relevant "
            "documents first to relevant documents last among tied ones, and other orders can give values outside it",
            ranking_metrics.MISSING_QUERY,
        ),
        source="van Rijsbergen, Information Retrieval, 2nd edition, Butterworths, 1979, chapter 7. "
        "Numbers: trec_eval v9.0.8 (d95ca64), set_P",
        aliases=("set_p",),
    )


PLUGIN = SetPrecision
