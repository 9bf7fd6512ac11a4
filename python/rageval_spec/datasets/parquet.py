"""`parquet`: relevance judgements, queries and documents, or questions with gold answers, in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.datasets.shared.tabular_dataset import TabularDataset, TabularNode
from rageval_spec.reading.formats.column_layouts import RecordColumn, Records
from rageval_spec.reading.formats.parquet import parquet_objects, read_parquet
from rageval_spec.reading.row_sources import RowFile


class ParquetDatasetNode(TabularNode):
    """Parquet files: judgements, and optionally queries and documents. Ids are text or integers."""


class Parquet(TabularDataset[ParquetDatasetNode]):
    """Reads Parquet files with polars. Integer ids become text."""

    node_type = ParquetDatasetNode
    known_as = ("arrow", "feather", "hf", "huggingface")

    def find_source(self, path: Path) -> RowFile:
        """A file."""
        return RowFile(path, "parquet", layout=self.node.layout)

    def read_whole(self, path: Path, columns: Sequence[RecordColumn]) -> Records:
        """The columns of one file."""
        return read_parquet(path, columns)

    def rows_with(self, path: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The values of some columns in each row. The others are not read."""
        if not self.source(path).is_direct(self.named(path)):
            return super().rows_with(path, names)
        return (row for _, row in parquet_objects(path, names))


PLUGIN = Parquet
