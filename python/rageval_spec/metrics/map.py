from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantInRanking, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="Average precision: the mean of the precision at the rank of each relevant document.",
    formula="map@k = sum over relevant documents at ranks i <= k of (relevant documents at ranks <= i / i) / R, R = "
    "relevant documents in the qrels",
    edge_cases=(
        "no relevant document (R = 0): 0",
        "relevant documents that were not retrieved, or are below the cutoff: count as precision 0; "
        "with a cutoff it is still divided by R, not by min(k, R)",
        NEGATIVE_RELEVANCE,
    ),
    source="Buckley and Voorhees, Retrieval system evaluation, in TREC: Experiment and Evaluation in Information "
    "Retrieval, MIT Press, 2005, chapter 3. Numbers: trec_eval v9.0.8 (d95ca64), map and map_cut",
    aliases=("ap", "map_cut", "average_precision"),
)

PLUGIN = kernel_metric(__name__, RelevantInRanking, INFO)
