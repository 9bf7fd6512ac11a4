from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantAtCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="Recall for queries that can have more than k relevant documents: 1 if the first k are as good as "
    "possible.",
    formula="capped_recall@k = relevant documents at ranks <= k / min(k, R), R = relevant documents in the qrels",
    edge_cases=(
        "no relevant document (R = 0): 0 (BEIR's code divides by zero there)",
        "at most k relevant documents: the same as recall@k",
        "cutoff larger than the ranking: all ranks count",
        NEGATIVE_RELEVANCE,
    ),
    source="Thakur et al., BEIR: a heterogeneous benchmark for zero-shot evaluation of information retrieval models, "
    "NeurIPS Datasets and Benchmarks, 2021 (R_cap@k)",
    aliases=("r_cap", "recall_cap"),
)

PLUGIN = kernel_metric(__name__, RelevantAtCutoff, INFO)
