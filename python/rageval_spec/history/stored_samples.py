"""Reads the samples of a results folder: all of them, some columns, some rows, or block by block.

A file of an earlier version has fewer columns; those that it lacks are null. Most files have the numbers of documents
in place of the texts of contexts, which are in a file of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.data import tables
from rageval_spec.data.documents import NUMBERS, restore_contexts
from rageval_spec.errors import DataError
from rageval_spec.history.results_folder import DOCUMENTS, SAMPLES

if TYPE_CHECKING:
    import polars as pl

_ROWS_AT_ONCE = 4096
_FEW_ROWS = 100
"""Up to this number of rows, each is read by its place."""
_DERIVED = ("error", "status")
"""The status of a file of an earlier version comes from its errors."""


class StoredSamples:
    """The samples of a folder. Nothing is read until a method is called; without a file there are no rows.

    Every method raises `DataError` if a file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the folder."""
        self._path = folder / SAMPLES
        self._documents = folder / DOCUMENTS

    def load(self) -> pl.DataFrame:
        """The whole table: columns `tables.SAMPLES`."""
        import polars as pl

        if not self._columns:
            return tables.empty_samples()
        with self._explained():
            found = pl.read_parquet(self._path)
            documents = pl.read_parquet(self._documents) if NUMBERS in found.columns else None
            return _complete(found if documents is None else restore_contexts(found, documents))

    def select(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns, without reading the others."""
        import polars as pl

        known = [name for name in tables.SAMPLES if name in columns]
        if not self._columns or "contexts" in known:
            return self.load().select(known)
        with self._explained():
            names = [name for name in self._columns if name in (*known, *_DERIVED)]
            return _complete(pl.read_parquet(self._path, columns=names)).select(known)

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """The rows that share the columns of `wanted`, without holding the others."""
        import polars as pl

        if not self._columns:
            return tables.empty_samples()
        with self._explained():
            keys = pl.read_parquet(self._path, columns=wanted.columns).with_row_index("row")
            rows = keys.join(wanted, on=wanted.columns, how="semi", maintain_order="left").get_column("row").to_list()
            scan = pl.scan_parquet(self._path)
            if len(rows) > _FEW_ROWS:
                return self._restore(scan.with_row_index("row").filter(pl.col("row").is_in(rows)).drop("row").collect())
            return self._restore(pl.concat([scan.head(0).collect(), *(scan.slice(row, 1).collect() for row in rows)]))

    def blocks(self) -> Iterator[pl.DataFrame]:
        """All rows in blocks, with the texts of only these rows in memory."""
        import polars as pl

        if not self._columns:
            return
        scan = pl.scan_parquet(self._path)
        with self._explained():
            total = int(scan.select(pl.len()).collect().item())
            for start in range(0, total, _ROWS_AT_ONCE):
                yield self._restore(scan.slice(start, _ROWS_AT_ONCE).collect())

    def _restore(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of the file with the texts of their contexts."""
        import polars as pl

        if NUMBERS not in rows.columns:
            return _complete(rows)
        numbers = rows.get_column(NUMBERS).explode().drop_nulls().unique()
        texts = pl.scan_parquet(self._documents).filter(
            pl.col("document").is_between(numbers.min(), numbers.max()) & pl.col("document").is_in(numbers.implode())
        )
        return _complete(restore_contexts(rows, texts.collect()))

    @cached_property
    def _columns(self) -> list[str]:
        """The columns of the file; empty without one."""
        import polars as pl

        if not self._path.is_file():
            return []
        with self._explained():
            present = [*pl.read_parquet_schema(self._path)]
        missing = [name for name in tables.FIRST_SAMPLES if name not in present and name != "contexts"]
        if missing:
            raise DataError(f"{self._path}: the column {', '.join(map(repr, missing))} is missing")
        return present

    @contextmanager
    def _explained(self) -> Iterator[None]:
        import polars as pl

        try:
            yield
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(f"{self._path}: not a table of samples: {error}") from error


def _complete(found: pl.DataFrame) -> pl.DataFrame:
    """The rows with all columns of samples and their types."""
    import polars as pl

    empty = tables.empty_samples()
    added = [pl.lit(None).alias(name) for name in empty.columns if name not in found.columns]
    return tables.type_samples(found.with_columns(added))
