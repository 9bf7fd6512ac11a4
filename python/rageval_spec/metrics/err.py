from pydantic import Field

from rageval_spec.metrics.shared.ranking_metrics import JudgedOnly, OptionalCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo


class ErrNode(OptionalCutoff, JudgedOnly):
    max_grade: int = Field(default=4, ge=1, le=62, description="The highest relevance on the judgements' scale.")


INFO = MetricInfo(
    summary="The expected reciprocal rank at which a reader stops; better documents are more likely to satisfy the "
    "reader.",
    formula="err@k = sum over ranks i <= k of 1/i * s(i) * product over j < i of (1 - s(j)), s = (2^relevance - 1) / "
    "2^max_grade",
    edge_cases=(
        "no document with a positive relevance: 0",
        "max_grade: is that of the scale, not the highest of a query, as in gdeval (4); set it for collections "
        "with another scale, or their values are not comparable",
        "relevance above max_grade: counts as max_grade (gdeval stops there)",
        "negative relevance and unjudged: s = 0",
    ),
    source="Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009. "
    "Definition: gdeval.pl of the TREC Web track, which prints five digits",
    aliases=("expected_reciprocal_rank",),
)

PLUGIN = kernel_metric(__name__, ErrNode, INFO)
