"""`parquet`: relevance judgements, queries and documents, or questions with gold answers, in Parquet files."""

from __future__ import annotations

from rageval_spec.datasets.shared.row_dataset import RowDataset, TabularNode


class ParquetDatasetNode(TabularNode):
    """Parquet files: judgements, and optionally queries and documents. Ids are text or integers."""


class Parquet(RowDataset[ParquetDatasetNode]):
    """Reads Parquet files with polars. Integer ids become text."""

    known_as = ("arrow", "feather", "hf", "huggingface")
    form = "parquet"


PLUGIN = Parquet
