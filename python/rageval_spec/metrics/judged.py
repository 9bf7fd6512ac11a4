from rageval_spec.metrics.shared.ranking_metrics import OptionalCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="The share of the first k documents that are judged: how far the other numbers can be trusted.",
    formula="judged@k = documents at ranks <= k that are in the qrels / min(k, number retrieved)",
    edge_cases=(
        "cutoff larger than the ranking: divided by the number retrieved",
        "nothing retrieved: 0",
        "negative relevance: judged, because it is in the qrels",
    ),
    source="MacAvaney, Macdonald and Ounis, Streamlining evaluation with ir-measures, ECIR 2022 (Judged@k)",
    higher_is_better=None,
)

PLUGIN = kernel_metric(__name__, OptionalCutoff, INFO)
