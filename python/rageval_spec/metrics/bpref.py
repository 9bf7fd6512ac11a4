from rageval_spec.metrics.shared.ranking_metrics import RelevanceLevel, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="Binary preference: how often judged relevant documents come before judged non-relevant ones; ignores "
    "unjudged documents.",
    formula="bpref = 1/R * sum over retrieved relevant documents d of 1 - min(n(d), R) / min(N, R), where n(d) = "
    "judged non-relevant documents ranked above d, R and N = relevant and non-relevant documents in the qrels; the "
    "term is 1 if n(d) = 0",
    edge_cases=(
        "no relevant document (R = 0): 0",
        "no judged non-relevant document: the share of relevant documents that were retrieved",
        "only the first R judged non-relevant documents count: relevant documents after them add 0",
        "negative relevance: treated as unjudged, in the ranking and in N",
    ),
    source="Buckley and Voorhees, Retrieval evaluation with incomplete information, SIGIR 2004. Numbers: trec_eval "
    "v9.0.8 (d95ca64), bpref, whose denominator min(N, R) differs from the paper's R",
)

PLUGIN = kernel_metric(__name__, RelevanceLevel, INFO)
