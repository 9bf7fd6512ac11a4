from typing import Literal

from pydantic import Field

from rageval_spec.metrics.shared.ranking_metrics import JudgedOnly, OptionalCutoff, kernel_metric
from rageval_spec.plugin import MetricInfo


class NdcgNode(OptionalCutoff, JudgedOnly):
    gain: Literal["linear", "exp"] = Field(
        default="linear",
        description="The gain of a document. linear: its relevance, as in trec_eval; exp: 2^relevance - 1.",
    )


INFO = MetricInfo(
    summary="Normalized discounted cumulative gain: how close a ranking comes to the best order of all judged "
    "documents, with early ranks weighing most.",
    formula="ndcg@k = dcg@k / ideal dcg@k, dcg@k = sum over ranks i <= k of gain(i) / log2(i + 1); gain = relevance "
    "(linear) or 2^relevance - 1 (exp), 0 for relevance <= 0 and for unjudged documents; the ideal ranking holds all "
    "judged documents of the query by descending gain.",
    edge_cases=(
        "no document with a positive relevance: 0",
        "cutoff larger than the ranking: all ranks count; the ideal ranking is still cut at k, so a "
        "short ranking loses what it did not retrieve",
        "negative relevance: no gain, in the ranking and in the ideal one",
        "relevance level (`ranking.relevance_level`, trec_eval's -l): has no effect",
    ),
    source="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4), 2002; gain=exp: "
    "Burges et al., Learning to rank using gradient descent, ICML 2005. Numbers: trec_eval v9.0.8 (d95ca64), ndcg and "
    "ndcg_cut",
    aliases=("ndcg_cut",),
)

PLUGIN = kernel_metric(__name__, NdcgNode, INFO)
