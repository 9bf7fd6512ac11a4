from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, RelevantAnywhere, kernel_metric
from rageval_spec.plugin import MetricInfo

INFO = MetricInfo(
    summary="Average precision with a geometric mean over queries, so that the worst queries weigh most.",
    formula="gm_map = exp(mean over queries of ln(max(AP, 0.00001))), AP as in map; a query's own value is ln(max(AP, "
    "0.00001))",
    edge_cases=(
        "value of a query: a logarithm, from -11.513 (AP = 0) to 0 (AP = 1); only the mean is in [0.00001, 1]",
        "no relevant document, or none retrieved: ln(0.00001)",
        NEGATIVE_RELEVANCE,
    ),
    source="Robertson, On GMAP: and other transformations, CIKM 2006; Voorhees, Overview of the TREC 2004 Robust "
    "retrieval track, TREC 2004. Numbers: trec_eval v9.0.8 (d95ca64), gm_map",
    aliases=("gmap",),
    bounds=(0.00001, 1.0),
    statistic="geometric mean",
)

PLUGIN = kernel_metric(
    __name__,
    RelevantAnywhere,
    INFO,
    "query in the qrels but not in the run: ln(0.00001), or left out, depending on `ranking.missing`",
)
