from pydantic import Field

from rageval_spec.metrics.shared.ranking_metrics import NEGATIVE_RELEVANCE, JudgedOnly, RelevanceLevel, kernel_metric
from rageval_spec.plugin import MetricInfo


class IprecNode(RelevanceLevel, JudgedOnly):
    recall: float = Field(ge=0, le=1, description="The recall level, such as 0.1; `iprec@0.1` for short.")


INFO = MetricInfo(
    summary="Interpolated precision: the best precision of the ranking at a recall level or beyond; eleven such values "
    "make a recall-precision graph.",
    formula="iprec@x = max over ranks i of (relevant documents at ranks <= i / i) among those with at least int(x * R "
    "+ 0.9) relevant documents at ranks <= i, R = relevant documents in the qrels",
    edge_cases=(
        "no relevant document, or the recall level not reached: 0",
        "ranking without any judged document, with judged_only: 0 (trec_eval prints nan)",
        "recall level 0: the highest precision at any rank",
        "x * R between two documents: rounded up from .1 (int(x * R + 0.9)), as in trec_eval 9; "
        "version 10 rounds to the nearest",
        NEGATIVE_RELEVANCE,
    ),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, Cambridge University Press, 2008, "
    "section 8.4. Numbers: trec_eval v9.0.8 (d95ca64), iprec_at_recall",
    aliases=("iprec_at_recall",),
)

PLUGIN = kernel_metric(__name__, IprecNode, INFO)
