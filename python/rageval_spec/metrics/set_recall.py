from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevanceLevel, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="The share of a query's relevant documents that were retrieved at any rank.",
    formula="set_recall = relevant documents retrieved / R, R = relevant documents in the qrels",
    edge_cases=("no relevant document (R = 0): 0", NEGATIVE_RELEVANCE),
    source="van Rijsbergen, Information Retrieval, 2nd edition, Butterworths, 1979, chapter 7. Numbers: trec_eval "
    "v9.0.8 (d95ca64), set_recall",
    aliases=("set_r",),
)

PLUGIN = kernel_metric(__name__, RelevanceLevel, INFO)
