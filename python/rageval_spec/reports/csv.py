"""`csv`: the value of every query, in one row each, for spreadsheets and scripts.

The columns are those of the values table; if the spec has clusters or weights, those of each question follow. Numbers
have all their digits, and a missing value is an empty field. Identifiers are written unchanged, so that they still join
with other tables. A spreadsheet can take an identifier that starts with `=`, `+`, `-` or `@` for a formula; import the
columns as text if you do not trust the source of the
identifiers. In reasons, control characters are escaped, and a reason that looks like a formula gets a leading `'`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, ClassVar

from rageval_spec.diagnostics import make_json_visible
from rageval_spec.drawing.escaping import escape_column, is_plain
from rageval_spec.libraries import pl
from rageval_spec.plugin import Report, ReportNode
from rageval_spec.wording import protect_cell

if TYPE_CHECKING:
    from rageval_spec.data.datasets import Design
    from rageval_spec.data.evaluation import Evaluation

_TEXTS: Mapping[str, Callable[[str], str]] = {
    **dict.fromkeys(("dataset", "system", "metric", "query_id", "cluster", "reason"), protect_cell),
    "details": make_json_visible,
}


class CsvReportNode(ReportNode):
    """Settings of the report `csv`: the value of every query as comma-separated text."""


class CsvReport(Report[CsvReportNode]):
    """Renders the per-query values as CSV."""

    filename: ClassVar[str | None] = "values.csv"

    def render(self, evaluation: Evaluation) -> bytes:
        """CSV text (RFC 4180) in UTF-8, with a header and lines that end with a line feed."""
        values, stream = evaluation.values, BytesIO()
        values = _add_design(values, evaluation.question_designs)
        texts = {name: write for name, write in _TEXTS.items() if name in values.columns}
        shown = [
            escape_column(values[name], write)
            for name, write in texts.items()
            if name != "details" or not is_plain(values[name])
        ]
        values.with_columns(shown).write_csv(stream)
        return stream.getvalue()


def _add_design(values: pl.DataFrame, designs: Mapping[str, Design]) -> pl.DataFrame:
    """The values with the columns `cluster` and `weight` of their questions, if any dataset has clusters or weights."""
    if not designs:
        return values
    schema, frames = {"query_id": pl.String, "cluster": pl.String, "weight": pl.Float64}, []
    for dataset, design in designs.items():
        query_ids = values.filter(pl.col("dataset") == dataset)["query_id"].unique(maintain_order=True).to_list()
        clusters = None if (of := design.list_clusters(query_ids)) is None else list(map(str, of))
        parts = {"query_id": query_ids, "cluster": clusters, "weight": design.list_weights(query_ids)}
        frames.append(pl.DataFrame(parts, schema=schema).with_columns(dataset=pl.lit(dataset)))
    return values.join(pl.concat(frames), on=["dataset", "query_id"], how="left", maintain_order="left")


PLUGIN = CsvReport
