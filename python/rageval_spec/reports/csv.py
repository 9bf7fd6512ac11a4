"""`csv`: the value of every query, one row each, for spreadsheets and scripts.

Columns are those of the values table. Numbers have all their digits and no value is an empty field. Identifiers are
written as they are, so that they still join with other tables: a spreadsheet may take an identifier that starts with
`=`, `+`, `-` or `@` for a formula, so import the columns as text where identifiers come from people you do not trust.
Reasons are for people: control characters in them are escaped, and one that would be computed begins with `'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rageval_spec.plugin import Report, ReportNode
from rageval_spec.wording import make_visible, protect_cell

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
        import polars as pl

        texts = {"reason": protect_cell, "details": _escape_json}
        shown = [
            pl.col(name).map_elements(write, return_dtype=pl.String)
            for name, write in texts.items()
            if name in evaluation.values.columns
        ]
        return evaluation.values.with_columns(shown).write_csv().encode()


def _escape_json(text: str) -> str:
    """JSON that says the same in characters that a terminal shows."""
    if text.isprintable():
        return text
    return "".join(c if make_visible(c) == c else f"\\u{ord(c):04x}" for c in text)


PLUGIN = CsvReport
