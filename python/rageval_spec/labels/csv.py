"""`csv`: labels in a CSV or TSV file."""

from collections.abc import Sequence

from pydantic import Field

from rageval_spec.data.labels import Label
from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode
from rageval_spec.reading.label_files import SETTING, read_label_file


class CsvLabelsNode(FileLabelsNode):
    """What people judged, in a CSV or TSV file with a header line. Plain, `.gz` or `.zst`."""

    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="The field separator. Default: a tab if the name ends in `.tsv`, otherwise a comma.",
    )


class CsvLabels(FileLabels[CsvLabelsNode]):
    """Reads a row for each judgement of each person. All values are text."""

    node_type = CsvLabelsNode
    known_as = ("tsv",)

    def read_file(self) -> Sequence[Label]:
        path = self.context.resolve(self.node.path)
        return read_label_file(path, self.columns, "csv", separator=self.node.separator, setting=SETTING)


PLUGIN = CsvLabels
