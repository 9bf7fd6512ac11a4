"""`xlsx`: labels in a sheet of an Excel workbook."""

from pydantic import Field

from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode


class XlsxLabelsNode(FileLabelsNode):
    """What people judged, in a sheet of an Excel workbook whose first row has the names of the columns.

    Needs the extra `xlsx`: `pip install 'rageval-spec[xlsx]'`.
    """

    sheet: str | None = Field(default=None, min_length=1, description="The name of the sheet. Default: the first.")


class XlsxLabels(FileLabels[XlsxLabelsNode]):
    """Reads a row for each judgement of each person. Formulas count with the value that they had when saved."""

    known_as = ("excel", "xls")
    form = "xlsx"
    options = ("sheet",)


PLUGIN = XlsxLabels
