"""`json`: the whole result but for the tables of values and samples, for programs.

Its shape is `schemas/results.schema.json`; `data/results.py` says what holds of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rageval_spec.data.results import Results
from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class JsonNode(ReportNode):
    """`json`: the result for programs."""


class JsonReport(Report[JsonNode]):
    """Renders an evaluation as JSON."""

    node_type = JsonNode
    filename: ClassVar[str | None] = "results.json"

    def render(self, evaluation: Evaluation) -> bytes:
        """The JSON text, in UTF-8."""
        return Results.of(evaluation).dump()


PLUGIN = JsonReport
