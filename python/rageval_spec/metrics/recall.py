from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantAtCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="The share of a query's relevant documents that are among the first k.",
    formula="recall@k = relevant documents at ranks <= k / R, R = relevant documents in the qrels",
    edge_cases=(
        "no relevant document (R = 0): 0",
        "more relevant documents than k: 1 is out of reach (capped_recall divides by min(k, R))",
        "cutoff larger than the ranking: all ranks count",
        NEGATIVE_RELEVANCE,
    ),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, Cambridge University Press, 2008, "
    "section 8.3. Numbers: trec_eval v9.0.8 (d95ca64), recall. Whether any relevant document was retrieved is "
    "success@k, which some papers call recall@k",
    aliases=("r",),
)

PLUGIN = kernel_metric(__name__, RelevantAtCutoff, INFO)
