from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantAnywhere, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="Precision at rank R, the number of relevant documents, where precision and recall are equal.",
    formula="rprec = relevant documents at ranks <= R / R, R = relevant documents in the qrels",
    edge_cases=(
        "no relevant document (R = 0): 0",
        "fewer than R documents retrieved: still divided by R",
        NEGATIVE_RELEVANCE,
    ),
    source="Buckley and Voorhees, Retrieval system evaluation, in TREC: Experiment and Evaluation in Information "
    "Retrieval, MIT Press, 2005, chapter 3. Numbers: trec_eval v9.0.8 (d95ca64), Rprec",
    aliases=("r_precision",),
)

PLUGIN = kernel_metric(__name__, RelevantAnywhere, INFO)
