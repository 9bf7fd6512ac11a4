from rageval_spec.metrics.shared.ranking_metrics import JudgedOnly, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="How many documents were retrieved; summed over queries.",
    formula="num_ret = length of the ranking, after `ranking.depth` and judged_only",
    edge_cases=(
        "no relevant document: does not matter",
        "duplicate documents: an error, or counted once, depending on `ranking.duplicates`",
    ),
    source="trec_eval v9.0.8 (d95ca64), num_ret",
    higher_is_better=None,
    bounds=(0.0, None),
    statistic="sum",
)

PLUGIN = kernel_metric(__name__, JudgedOnly, INFO, "query in the qrels but not in the run: 0")
