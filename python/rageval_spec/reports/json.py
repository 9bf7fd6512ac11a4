"""`json`: the result for programs, without the tables of values and samples.

Its schema is `schemas/results.schema.json`; `data/results.py` describes its guarantees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class JsonReportNode(ReportNode):
    """Settings of the report `json`: the result for programs."""


class JsonReport(Report[JsonReportNode]):
    """Renders an evaluation as JSON."""

    filename: ClassVar[str | None] = "results.json"
    is_part_of_results: ClassVar[bool] = True

    def render(self, evaluation: Evaluation) -> bytes:
        """The results as JSON text, in UTF-8."""
        from rageval_spec.data.results import dump_results

        return dump_results(evaluation)


PLUGIN = JsonReport
