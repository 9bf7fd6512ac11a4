"""`samples`: each system's answer to each query, in one row each, with the contexts and references.

The file contains the texts of the datasets and the answers, so protect it as you protect those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rageval_spec.data.tables import dump_parquet
from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class SamplesNode(ReportNode):
    """Settings of the report `samples`: questions, answers, contexts and references as a Parquet file."""


class SamplesReport(Report[SamplesNode]):
    """Renders the samples as Parquet."""

    node_type = SamplesNode
    filename: ClassVar[str | None] = "samples.parquet"

    def render(self, evaluation: Evaluation) -> bytes:
        """A Parquet file with the columns of the samples table. It has no rows if no system answers."""
        return dump_parquet(evaluation.samples)


PLUGIN = SamplesReport
