"""`markdown`: a comment for a pull request.

It shows the outcome, then the gates that did not pass, then a table for each dataset. Details are folded; details that
would make the comment longer than code hosts accept are only named. Names are shown as code, so that none of them acts
as Markdown, HTML or a mention of a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from rageval_spec.plugin import Report, ReportNode
from rageval_spec.wording import DIGITS

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class MarkdownNode(ReportNode):
    """Settings of the report `markdown`: a comment for a pull request."""

    digits: int = Field(default=DIGITS, ge=1, le=15, description="Digits after the point.")


class MarkdownReport(Report[MarkdownNode]):
    """Renders an evaluation as GitHub-flavoured Markdown."""

    node_type = MarkdownNode
    known_as = ("md", "github", "comment")
    filename: ClassVar[str | None] = "report.md"

    def render(self, evaluation: Evaluation) -> bytes:
        """Markdown text in UTF-8. Its first line is an HTML comment by which a bot finds its earlier report."""
        from rageval_spec.drawing.evaluation_view import draw_evaluation, write_comment

        blocks = draw_evaluation(evaluation, self.node.digits, verdicts_first=True)
        return write_comment(evaluation.name, blocks).encode("utf-8", "backslashreplace")


PLUGIN = MarkdownReport
