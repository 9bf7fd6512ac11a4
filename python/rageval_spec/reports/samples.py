"""`samples`: what each system answered to each query, one row each, with what would have been right.

The file holds the texts of the datasets and the answers: keep it where you keep those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rageval_spec.data.tables import dump_parquet
from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class SamplesNode(ReportNode):
    """`samples`: questions, answers, contexts and references as a Parquet file."""


class SamplesReport(Report[SamplesNode]):
    """Renders the samples as Parquet."""

    node_type = SamplesNode
    filename: ClassVar[str | None] = "samples.parquet"

    def render(self, evaluation: Evaluation) -> bytes:
        """A Parquet file with the columns of the samples table; without rows where no system answers."""
        return dump_parquet(evaluation.samples)


PLUGIN = SamplesReport
