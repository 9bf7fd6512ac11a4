"""`rprec`: precision at rank R."""

from __future__ import annotations

from rageval_spec.metrics.shared import ranking_metrics
from rageval_spec.plugin import MetricInfo


class RprecNode(ranking_metrics.RelevanceLevel, ranking_metrics.JudgedOnly):
    """Measures precision at rank R, the number of relevant documents (R-precision)."""


class Rprec(ranking_metrics.KernelMetric[RprecNode]):
    """Precision at rank R, the number of relevant documents."""

    node_type = RprecNode
    info = MetricInfo(
        summary="Precision at rank R, the number of relevant documents, where precision and recall are equal.",
        formula="rprec = relevant documents at ranks <= R / R, R = relevant documents in the qrels",
        edge_cases=(
            "no relevant document (R = 0): 0",
            "fewer than R documents retrieved: still divided by R",
            ranking_metrics.NEGATIVE_RELEVANCE,
            ranking_metrics.MISSING_QUERY,
        ),
        source=(
            "Buckley and Voorhees, Retrieval system evaluation, in TREC: Experiment and Evaluation in Information "
            "Retrieval, MIT Press, 2005, chapter 3. Numbers: trec_eval v9.0.8 (d95ca64), Rprec"
        ),
        aliases=("r_precision",),
    )


PLUGIN = Rprec
