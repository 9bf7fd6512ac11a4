"""`golden`: questions with gold answers in a file of any format, which its content tells."""

from __future__ import annotations

from pydantic import Field

from rageval_spec.datasets.shared.row_dataset import QuestionsNode, RowDataset


class GoldenNode(QuestionsNode):
    """A golden set: JSON, JSON Lines, YAML, CSV, Excel (`.xlsx`) or Parquet, with one question per row.

    The format is recognised by the file's content, and the tool that wrote it by its columns; `validate` shows both.
    """

    sheet: str | None = Field(
        default=None,
        description=(
            "The sheet of a workbook. Default: the only visible sheet with rows, or the only one with a column of "
            "questions."
        ),
    )
    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="The field separator of CSV. Default: as the header shows.",
    )


class Golden(RowDataset[GoldenNode]):
    """Reads a golden set."""

    known_as = ("file", "goldenset", "golden_set", "ragas", "deepeval")
    form = None


PLUGIN = Golden
