from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantAtCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="The harmonic mean of precision@k and recall@k.",
    formula="f1@k = 2 * P * R / (P + R), P = relevant documents at ranks <= k / k, R = relevant documents at ranks <= "
    "k / relevant documents in the qrels",
    edge_cases=(
        "no relevant document, or none in the first k (P + R = 0): 0",
        "cutoff larger than the ranking: P is still divided by k (set_f divides by the number retrieved)",
        NEGATIVE_RELEVANCE,
    ),
    source="van Rijsbergen, Information Retrieval, 2nd edition, Butterworths, 1979, chapter 7 (1 - E)",
)

PLUGIN = kernel_metric(__name__, RelevantAtCutoff, INFO)
