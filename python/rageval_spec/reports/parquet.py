"""`parquet`: the value of every query, in one row each. A later comparison reads it together with the JSON report."""

from __future__ import annotations

from typing import ClassVar

from rageval_spec.data.datasets import FINGERPRINTS_KEY
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import dump_parquet
from rageval_spec.plugin import Report, ReportNode


class ParquetReportNode(ReportNode):
    """Settings of the report `parquet`: the value of every query as a Parquet file."""


class ParquetReport(Report[ParquetReportNode]):
    """Renders the per-query values as Parquet."""

    known_as = ("arrow",)
    filename: ClassVar[str | None] = "values.parquet"
    is_part_of_results: ClassVar[bool] = True

    def render(self, evaluation: Evaluation) -> bytes:
        """A Parquet file with the columns of the values table, and the queries' fingerprints in its metadata."""
        return dump_parquet(evaluation.values, {FINGERPRINTS_KEY: evaluation.fingerprints.dump()})


PLUGIN = ParquetReport
