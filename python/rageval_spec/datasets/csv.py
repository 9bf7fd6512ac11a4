"""`csv`: relevance judgements, queries and documents, or questions with gold answers, in CSV or TSV files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from rageval_spec.datasets.shared.tabular_dataset import TabularDataset, TabularNode
from rageval_spec.diagnostics import FileFault
from rageval_spec.reading.formats.column_layouts import RecordColumn, Records
from rageval_spec.reading.formats.delimited import choose_separator, read_delimited
from rageval_spec.reading.row_sources import RowFile


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


class Csv(TabularDataset[CsvDatasetNode]):
    """Reads CSV and TSV files. All values are text; an empty field is an empty text."""

    node_type = CsvDatasetNode
    known_as = ("tsv",)

    def find_source(self, path: Path) -> RowFile:
        """A file with the separator that the spec names or its header shows."""
        return RowFile(path, "csv", self.node.separator, layout=self.node.layout)

    def read_whole(self, path: Path, columns: Sequence[RecordColumn]) -> Records:
        """The columns of one file."""
        return read_delimited(path, columns, self.node.separator or choose_separator(path))

    def check_files(self) -> Iterator[FileFault]:
        """Check the files, and report a query that is listed twice."""
        faults = [*super().check_files()]
        yield from faults
        found = None if faults else self.ids_of_queries()
        if found is not None:
            key, column = found
            yield from self.check_ids(key, self.rows(self.context.resolve(getattr(self.node, key))), column)


PLUGIN = Csv
