"""`csv`: relevance judgements, queries and documents, or questions with gold answers, in CSV or TSV files."""

from __future__ import annotations

from pydantic import Field

from rageval_spec.datasets.shared.row_dataset import RowDataset, TabularNode


class CsvDatasetNode(TabularNode):
    """CSV or TSV files with a header line: judgements, and optionally queries and documents. Plain, `.gz` or `.zst`."""

    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description=(
            "The field separator. Default: a tab if the name ends in `.tsv`, otherwise a comma; or, if the header has "
            "none of these, the semicolon, tab or vertical bar that it has. With a tab, quotes are ordinary "
            "characters; otherwise they enclose fields."
        ),
    )


class Csv(RowDataset[CsvDatasetNode]):
    """Reads CSV and TSV files. All values are text; an empty field is an empty text."""

    known_as = ("tsv",)
    form = "csv"


PLUGIN = Csv
