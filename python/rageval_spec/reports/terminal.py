"""`terminal`: the result as tables of text, for people. The verdict comes first, as a sentence.

Each dataset has a table with a row for each metric and a column for each system, and one for each baseline of a gate.
If a line is too wide, cells take several lines; if that is still too wide, some systems move to another table. A number
is never cut off. Marks have a shape for everything that a colour shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from rageval_spec.plugin import Report, ReportNode
from rageval_spec.wording import DIGITS

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

NARROWEST = 40


class TerminalNode(ReportNode):
    """Settings of the report `terminal`: tables and the outcome, for people."""

    digits: int = Field(default=DIGITS, ge=1, le=15, description="Digits after the point.")
    width: int | None = Field(
        default=None, ge=NARROWEST, description="Width in columns; the terminal's width by default."
    )


class TerminalReport(Report[TerminalNode]):
    """Renders an evaluation as tables in text, coloured on a terminal unless NO_COLOR is set."""

    node_type = TerminalNode
    known_as = ("console", "stdout", "text", "table")
    filename: ClassVar[str | None] = None

    def render(self, evaluation: Evaluation) -> bytes:
        """Text in UTF-8, with ANSI colours if standard output is a terminal."""
        from rageval_spec.drawing.evaluation_view import draw_evaluation
        from rageval_spec.drawing.view import write_text

        return write_text(draw_evaluation(evaluation, self.node.digits, self.context.output), self.node.width)


PLUGIN = TerminalReport
