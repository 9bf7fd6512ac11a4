from pydantic import Field

from rageval_spec.metrics.shared.ranking_metrics import RelevantInRanking, kernel_metric
from rageval_spec.plugin import MetricInfo


class RbpNode(RelevantInRanking):
    p: float = Field(
        default=0.8, gt=0, lt=1, description="Persistence: the probability that a reader goes on to the next document."
    )


INFO = MetricInfo(
    summary="Rank-biased precision: the expected gain of a reader who goes on from each document to the next with "
    "probability p.",
    formula="rbp = (1 - p) * sum over relevant documents at ranks i (<= k) of p^(i - 1)",
    edge_cases=(
        "no relevant document: 0",
        "perfect ranking of few documents: below 1; the missing part (p^n after n documents) is the residual, "
        "which is not reported",
        "graded relevance: relevant from the relevance level up; negative relevance is not relevant",
    ),
    source="Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, ACM TOIS 27(1), 2008. "
    "The same as RBP(rel=1) of ir_measures, whose default p it shares",
    aliases=("rank_biased_precision",),
)

PLUGIN = kernel_metric(__name__, RbpNode, INFO)
