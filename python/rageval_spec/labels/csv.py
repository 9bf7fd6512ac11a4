"""`csv`: labels in a CSV or TSV file."""

from pydantic import Field

from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode


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

    known_as = ("tsv",)
    form = "csv"
    options = ("separator",)


PLUGIN = CsvLabels
