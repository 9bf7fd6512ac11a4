from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantAtCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="Whether there is a relevant document among the first k; its mean is the hit rate.",
    formula="success@k = 1 if a document at a rank <= k is relevant, else 0",
    edge_cases=("no relevant document: 0", "cutoff larger than the ranking: all ranks count", NEGATIVE_RELEVANCE),
    source="Craswell and Hawking, Overview of the TREC-2004 Web track, TREC 2004 (success at 1, 5 and 10). Numbers: "
    "trec_eval v9.0.8 (d95ca64), success",
    aliases=("hit", "hit_rate", "hits", "accuracy", "top_k_accuracy"),
)

PLUGIN = kernel_metric(__name__, RelevantAtCutoff, INFO)
