"""What the ranking metrics share: the keys that several of them have, and how a node becomes the kernel's measure.

A file of `metrics/` that the kernel computes picks the keys that make sense for it, and says what it means in `info`:

    class NdcgNode(OptionalCutoff, JudgedOnly):
        gain: Literal["linear", "exp"] = "linear"
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.plugin import MetricNode, RankingMetric
from rageval_spec.plugin.metric import name_metric

N = TypeVar("N", bound=MetricNode)

BEHIND_AT = ("cutoff", "recall")
"""Keys whose value stands behind the `@` of a measure's name; the others stand in parentheses."""

MISSING_QUERY = "query in the qrels and not in the run: 0, or left out, as `ranking.missing` says"
NEGATIVE_RELEVANCE = "negative relevance: not relevant"


class Cutoff(MetricNode):
    """A node of a measure that is defined at a cutoff alone."""

    cutoff: int = Field(ge=1, description="Look at the first so many documents of a ranking: the k of `@k`.")


class OptionalCutoff(MetricNode):
    """A node of a measure of the whole ranking that a cutoff may end earlier."""

    cutoff: int | None = Field(
        default=None,
        ge=1,
        description="Look at the first so many documents of a ranking: the k of `@k`. The whole ranking by default.",
    )


class RelevanceLevel(MetricNode):
    """A node of a measure that knows relevant and not relevant only."""

    rel: int | None = Field(
        default=None,
        ge=1,
        description="From which relevance on a document counts as relevant. As `ranking.relevance_level` by default.",
    )


class JudgedOnly(MetricNode):
    """A node of a measure whose value unjudged documents change by taking up ranks."""

    judged_only: bool = Field(
        default=False,
        description=(
            "Remove unjudged documents (and those of negative relevance, as trec_eval's -J) from the rankings first. "
            "On for all measures where `ranking.judged_only` is."
        ),
    )


class KernelMetric(RankingMetric[N]):
    """A ranking metric whose node says all that the kernel must know: `use` its word, the other keys its parameters."""

    def measure(self) -> str:
        """The kernel's canonical name of this measure.

        Raises:
            UsageError: the kernel knows no such measure, or not with these parameters.
        """
        return kernels.parse_measure(name_metric(self.node, behind_at=BEHIND_AT)).text

    @property
    def name(self) -> str:
        """The canonical name of the measure: `ndcg@10`, `precision(rel=2)@5`."""
        return self.measure()
