"""`html`: one page that shows every answer behind the numbers. It opens from a file and needs no server.

The page makes no request. Its policy allows only its own script and style, and it shows texts of datasets, systems and
models as text, never as markup. It contains the questions, answers and documents, so protect it as you protect those.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

DIGITS = 3


class HtmlNode(ReportNode):
    """Settings of the report `html`: one page for people, with every question and answer."""

    digits: int = Field(default=DIGITS, ge=1, le=15, description="Digits after the point.")
    title: str | None = Field(default=None, description="The page's title; the spec's name by default.")


class HtmlReport(Report[HtmlNode]):
    """Renders an evaluation as an HTML page."""

    node_type = HtmlNode
    known_as = ("page", "web")
    filename: ClassVar[str | None] = "report.html"

    def render(self, evaluation: Evaluation) -> bytes:
        """The page with its data inside. Of more than 50,000 answers it shows the worst and some of every kind."""
        from rageval_spec.drawing.page.page import write_page

        return write_page(evaluation, self.node.digits, self.node.title)

    def render_files(self, evaluation: Evaluation) -> Iterator[tuple[str, bytes]]:
        """One page; above 25 MB, the parts of its data, each a script that the page loads when it needs it."""
        from rageval_spec.drawing.page.page import write_files

        return write_files(evaluation, self.node.digits, self.node.title)


PLUGIN = HtmlReport
