"""`parquet`: relevance judgements, queries and documents, or questions with gold answers, in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.datasets.shared.tabular import TabularDataset, TabularNode
from rageval_spec.reading.parquet import parquet_columns, parquet_objects, read_parquet
from rageval_spec.reading.records import Column, Records
from rageval_spec.reading.rows import read_rows


class ParquetNode(TabularNode):
    """Parquet files: judgements, and optionally queries and documents. Ids are text or integers."""


class Parquet(TabularDataset[ParquetNode]):
    """Reads Parquet files with polars. Integer ids become text."""

    node_type = ParquetNode
    known_as = ("arrow", "feather", "hf", "huggingface")

    def read(self, path: Path, columns: Sequence[Column]) -> Records:
        """The columns of one file."""
        return read_parquet(path, columns)

    def header(self, path: Path) -> Sequence[str]:
        """The names of a file's columns."""
        return parquet_columns(path)

    def rows(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """The place and the values by name of each row."""
        return read_rows(path, "parquet")

    def rows_with(self, path: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The values of some columns in each row. The others are not read."""
        return (row for _, row in parquet_objects(path, names))


PLUGIN = Parquet
