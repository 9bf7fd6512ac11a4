"""`golden`: questions with gold answers in a file of any format, which its content tells."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from rageval_spec.datasets.shared.row_dataset import QuestionsDataset, QuestionsNode
from rageval_spec.reading.row_sources import RowFile
from rageval_spec.reading.rows import recognise_format


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


class Golden(QuestionsDataset[GoldenNode]):
    """Reads a golden set."""

    node_type = GoldenNode
    known_as = ("file", "goldenset", "golden_set", "ragas", "deepeval")

    def find_source(self, path: Path) -> RowFile:
        """The file in the format that its content shows."""
        node = self.node
        return RowFile(path, recognise_format(path), node.separator, node.sheet, node.layout)


PLUGIN = Golden
