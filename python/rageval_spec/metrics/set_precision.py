from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantAnywhere, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="The share of relevant documents among all that were retrieved; ranks do not matter.",
    formula="set_precision = relevant documents retrieved / documents retrieved",
    edge_cases=(
        "no relevant document: 0",
        "nothing retrieved, or nothing judged with judged_only: 0",
        NEGATIVE_RELEVANCE,
        "ties: the order matters only with `ranking.depth`; with judged_only too, the tie range is from relevant "
        "documents first to relevant documents last among tied ones, and other orders can give values outside it",
    ),
    source="van Rijsbergen, Information Retrieval, 2nd edition, Butterworths, 1979, chapter 7. Numbers: trec_eval "
    "v9.0.8 (d95ca64), set_P",
    aliases=("set_p",),
)

PLUGIN = kernel_metric(__name__, RelevantAnywhere, INFO)
