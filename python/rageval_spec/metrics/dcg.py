from typing import Literal

from pydantic import Field

from rageval_spec.metrics.shared.ranking_metrics import JudgedOnly, OptionalCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo


class DcgNode(OptionalCutoff, JudgedOnly):
    gain: Literal["linear", "exp"] = Field(
        default="linear", description="The gain of a document. linear: its relevance; exp: 2^relevance - 1."
    )


INFO = MetricInfo(
    summary="Discounted cumulative gain: the gain of the retrieved documents, with early ranks weighing most; not "
    "normalized, so queries with many relevant documents dominate a mean.",
    formula="dcg@k = sum over ranks i <= k of gain(i) / log2(i + 1); gain = relevance (linear) or 2^relevance - 1 "
    "(exp), 0 for relevance <= 0 and for unjudged documents.",
    edge_cases=(
        "no document with a positive relevance: 0",
        "cutoff larger than the ranking: all ranks count",
        "negative relevance: no gain",
        "relevance level (`ranking.relevance_level`, trec_eval's -l): has no effect",
    ),
    source="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4), 2002, with the "
    "discount log2(rank + 1) of Burges et al., Learning to rank using gradient descent, ICML 2005. It is the numerator "
    "of trec_eval v9.0.8's (d95ca64) ndcg",
    bounds=(0.0, None),
)

PLUGIN = kernel_metric(__name__, DcgNode, INFO)
