"""Base classes of ranking metrics: common keys, and the translation of a node to the kernel's measure.

A metric that the kernel computes picks the keys that make sense for it, and describes itself:

    PLUGIN = kernel_metric(__name__, RelevantAtCutoff, MetricInfo(...))

One with a key of its own adds it in a node:

    class NdcgNode(OptionalCutoff, JudgedOnly):
        gain: Literal["linear", "exp"] = "linear"
"""

from typing import Any, TypeVar

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.plugin import MetricInfo, MetricNode, RankingMetric
from rageval_spec.plugin.metric import name_metric

N = TypeVar("N", bound=MetricNode)

BEHIND_AT = ("cutoff", "recall")
"""Keys whose value follows the `@` in a measure's name; the other keys are in parentheses."""

MISSING_QUERY = "query in the qrels but not in the run: 0, or left out, depending on `ranking.missing`"
NEGATIVE_RELEVANCE = "negative relevance: not relevant"


class Cutoff(MetricNode):
    """The keys of a measure that needs a cutoff."""

    cutoff: int = Field(ge=1, description="How many documents at the top of a ranking to look at: the k of `@k`.")


class OptionalCutoff(MetricNode):
    """The keys of a measure of the whole ranking, or of its top documents if there is a cutoff."""

    cutoff: int | None = Field(
        default=None,
        ge=1,
        description="How many documents at the top of a ranking to look at: the k of `@k`; by default all of them.",
    )


class RelevanceLevel(MetricNode):
    """The keys of a measure of binary relevance."""

    rel: int | None = Field(
        default=None,
        ge=1,
        description="The lowest relevance of a relevant document; by default `ranking.relevance_level`.",
    )


class JudgedOnly(MetricNode):
    """The keys of a measure whose value depends on the ranks of unjudged documents."""

    judged_only: bool = Field(
        default=False,
        description="First remove unjudged documents from the rankings, and those of negative relevance, as "
        "trec_eval's -J does. If `ranking.judged_only` is true, this applies to all measures.",
    )


class RelevantAnywhere(RelevanceLevel, JudgedOnly):
    """The keys of a measure of the relevant documents of a ranking, at any rank."""


class RelevantAtCutoff(Cutoff, RelevantAnywhere):
    """The keys of a measure of the relevant documents at the top of a ranking."""


class RelevantInRanking(OptionalCutoff, RelevantAnywhere):
    """The keys of a measure of the relevant documents of a ranking, or of its top documents."""


class KernelMetric(RankingMetric[N]):
    """A ranking metric that its node describes fully: `use` is the kernel's word, the other keys are its parameters."""

    always = (MISSING_QUERY,)

    def measure(self) -> str:
        return kernels.parse_measure(name_metric(self.node, behind_at=BEHIND_AT)).text

    @property
    def name(self) -> str:
        return self.measure()


def kernel_metric(
    module: str, node_type: type[MetricNode], info: MetricInfo, missing_query: str = MISSING_QUERY
) -> type[KernelMetric[Any]]:
    """The metric of a module, with the keys of a node, that the kernel computes and that needs no code of its own.

    `missing_query` is the edge case of a query that is in the qrels but not in the run.
    """
    members = {
        "node_type": node_type,
        "info": info,
        "always": (missing_query,),
        "__module__": module,
        "__qualname__": "PLUGIN",  # the name under which it is imported, for engines that send it to other processes
    }
    return type(module.rpartition(".")[2], (KernelMetric,), members)
