"""`xlsx`: labels in a sheet of an Excel workbook."""

from collections.abc import Sequence

from pydantic import Field

from rageval_spec.data.labels import Label
from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode
from rageval_spec.reading.label_files import SETTING, read_label_file


class XlsxLabelsNode(FileLabelsNode):
    """What people judged, in a sheet of an Excel workbook whose first row has the names of the columns.

    Needs the extra `xlsx`: `pip install 'rageval-spec[xlsx]'`.
    """

    sheet: str | None = Field(default=None, min_length=1, description="The name of the sheet. Default: the first.")


class XlsxLabels(FileLabels[XlsxLabelsNode]):
    """Reads a row for each judgement of each person. Formulas count with the value that they had when saved."""

    node_type = XlsxLabelsNode
    known_as = ("excel", "xls", "ods")

    def read_file(self) -> Sequence[Label]:
        path = self.context.resolve(self.node.path)
        return read_label_file(path, self.columns, "xlsx", sheet=self.node.sheet, setting=SETTING)


PLUGIN = XlsxLabels
