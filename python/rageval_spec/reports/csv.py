"""`csv`: the value of every query, one row each, for spreadsheets and scripts.

Columns are those of the values table. Numbers have all their digits and no value is an empty field. Identifiers are
written as they are, so that they still join with other tables: a spreadsheet may take an identifier that starts with
`=`, `+`, `-` or `@` for a formula, so import the columns as text where identifiers come from people you do not trust.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class CsvNode(ReportNode):
    """`csv`: the value of every query as comma-separated text."""


class CsvReport(Report[CsvNode]):
    """Renders the per-query values as CSV."""

    node_type = CsvNode
    filename: ClassVar[str | None] = "values.csv"

    def render(self, evaluation: Evaluation) -> bytes:
        """RFC 4180 text in UTF-8 with a header, lines ended by a line feed."""
        return evaluation.values.write_csv().encode()


PLUGIN = CsvReport
