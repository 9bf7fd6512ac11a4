from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantAtCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="The share of relevant documents among the first k.",
    formula="precision@k = relevant documents at ranks <= k / k",
    edge_cases=(
        "no relevant document: 0",
        "cutoff larger than the ranking: still divided by k, so a short ranking is not rewarded",
        NEGATIVE_RELEVANCE,
    ),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, Cambridge University Press, 2008, "
    "section 8.4. Numbers: trec_eval v9.0.8 (d95ca64), P",
    aliases=("p", "prec"),
)

PLUGIN = kernel_metric(__name__, RelevantAtCutoff, INFO)
