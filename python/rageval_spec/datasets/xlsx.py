"""`xlsx`: questions with gold answers in a sheet of an Excel workbook, one per row."""

from __future__ import annotations

from pydantic import Field

from rageval_spec.datasets.shared.row_dataset import QuestionsNode, RowDataset


class XlsxNode(QuestionsNode):
    """An Excel workbook (`.xlsx`) with one question per row, below a row with the names of the columns."""

    sheet: str | None = Field(
        default=None,
        description=(
            "The sheet with the questions. Default: the only visible sheet with rows, or the only one with a column "
            "of questions."
        ),
    )


class Xlsx(RowDataset[XlsxNode]):
    """Reads a sheet of a workbook."""

    known_as = ("excel", "xls", "spreadsheet", "workbook")
    form = "xlsx"


PLUGIN = Xlsx
