from rageval_spec.metrics.shared.ranking_metrics import RelevanceLevel, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="Inferred average precision, estimated where only a sample of the pool was judged.",
    formula="infap = 1/R * sum over relevant documents at ranks k of 1/k + (k-1)/k * (p/(k-1)) * (r + e) / (r + n + "
    "2e), where r, n, p = relevant, non-relevant and pooled documents above rank k, e = 0.00001, R = relevant "
    "documents in the qrels; the term is 1 at rank 1",
    edge_cases=(
        "no relevant document (R = 0): 0",
        "negative relevance: in the pool but not judged, assumed to be relevant as often as judged documents",
        "documents that are not in the qrels: outside the pool, not relevant",
        "ties: the range is from relevant documents first to relevant documents last among tied ones; if tied "
        "documents have a negative relevance, other orders can give values outside it",
    ),
    source="Yilmaz and Aslam, Estimating average precision with incomplete and imperfect judgments, CIKM 2006. "
    "Numbers: trec_eval v9.0.8 (d95ca64), infAP",
)

PLUGIN = kernel_metric(__name__, RelevanceLevel, INFO)
