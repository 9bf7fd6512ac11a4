"""`csv`: relevance judgements, queries and documents, or questions with gold answers, in CSV or TSV files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from rageval_spec.datasets.shared.tabular import TabularDataset, TabularNode
from rageval_spec.diagnostics import FileFault
from rageval_spec.reading.delimited import header_of, read_delimited, separator_of
from rageval_spec.reading.records import Column, Records
from rageval_spec.reading.rows import read_rows


class CsvNode(TabularNode):
    """CSV or TSV files with a header line: judgements, and optionally queries and documents. Plain, `.gz` or `.zst`."""

    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description=(
            "The field separator. Default: a tab if the name ends in `.tsv`, otherwise a comma. With a tab, quotes "
            "are ordinary characters; otherwise they enclose fields."
        ),
    )


class Csv(TabularDataset[CsvNode]):
    """Reads CSV and TSV files. All values are text; an empty field is an empty text."""

    node_type = CsvNode
    known_as = ("tsv", "excel", "xlsx")

    def read(self, path: Path, columns: Sequence[Column]) -> Records:
        """The columns of one file."""
        return read_delimited(path, columns, self._separator(path))

    def header(self, path: Path) -> Sequence[str]:
        """The names of a file's columns."""
        return header_of(path, self._separator(path))

    def rows(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """The place and the values by name of each row, all of them text."""
        return read_rows(path, "csv", self._separator(path))

    def check_files(self) -> Iterator[FileFault]:
        """Check the files, and report a query that is listed twice."""
        faults = [*super().check_files()]
        yield from faults
        found = None if faults else self.ids_of_queries()
        if found is not None:
            key, column = found
            yield from self.check_ids(key, self.rows(self.context.resolve(getattr(self.node, key))), column)

    def _separator(self, path: Path) -> str:
        return self.node.separator or separator_of(path)


PLUGIN = Csv
