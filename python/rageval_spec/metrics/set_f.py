from pydantic import Field

from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, JudgedOnly, RelevanceLevel, kernel_metric
from rageval_spec.plugin import MetricInfo


class SetFNode(RelevanceLevel, JudgedOnly):
    beta: float = Field(
        default=1.0,
        ge=0,
        description="The weight of recall against precision: trec_eval's x, not squared (van Rijsbergen's beta^2).",
    )


INFO = MetricInfo(
    summary="The weighted harmonic mean of set_precision and set_recall.",
    formula="set_f = (beta + 1) * P * R / (beta * P + R), P = set_precision, R = set_recall",
    edge_cases=(
        "no relevant document, or none retrieved (P = R = 0): 0",
        "beta: is not squared; beta=4 is what others call F2, beta=0 is set_precision",
        NEGATIVE_RELEVANCE,
        "ties: the order matters only with `ranking.depth`; with judged_only too, the tie range is from relevant "
        "documents first to relevant documents last among tied ones, and other orders can give values outside it",
    ),
    source="van Rijsbergen, Information Retrieval, 2nd edition, Butterworths, 1979, chapter 7 (1 - E). Numbers: "
    "trec_eval v9.0.8 (d95ca64), set_F",
)

PLUGIN = kernel_metric(__name__, SetFNode, INFO)
