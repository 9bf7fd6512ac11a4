from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevanceLevel, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="How many relevant documents the qrels have, retrieved or not; summed over queries.",
    formula="num_rel = R = documents in the qrels whose relevance is at least the relevance level",
    edge_cases=("no relevant document: 0", NEGATIVE_RELEVANCE),
    source="trec_eval v9.0.8 (d95ca64), num_rel",
    higher_is_better=None,
    bounds=(0.0, None),
    statistic="sum",
)

PLUGIN = kernel_metric(
    __name__,
    RelevanceLevel,
    INFO,
    "query in the qrels but not in the run: counts too, or is left out, depending on `ranking.missing`",
)
