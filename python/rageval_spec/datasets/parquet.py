"""`parquet`: relevance judgements, queries and documents in Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rageval_spec.file_dataset import TabularDataset, TabularNode
from rageval_spec.reading.parquet import read_parquet
from rageval_spec.reading.records import Column, Records


class ParquetNode(TabularNode):
    """Parquet files: judgements, and where wanted queries and documents. Ids are text or integers."""


class Parquet(TabularDataset[ParquetNode]):
    """Reads Parquet files."""

    node_type = ParquetNode

    def read(self, path: Path, columns: Sequence[Column]) -> Records:
        """The columns of one file."""
        return read_parquet(path, columns)


PLUGIN = Parquet
