"""Parquet: typed columns, no lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.errors import DataError
from rageval_spec.reading.files import check_file
from rageval_spec.reading.records import Column, Records, choose_keys, with_absent

if TYPE_CHECKING:
    import polars as pl


def read_parquet(path: Path, columns: Sequence[Column]) -> Records:
    """The columns of a Parquet file: ids and texts as String, numbers as they are typed there.

    Raises:
        DataError: no rows, not Parquet, a required column that is not there, a column of the wrong type.
    """
    import polars as pl

    check_file(path)
    try:
        schema = pl.read_parquet_schema(path)
        keys = choose_keys(str(path), columns, list(schema))
        chosen = [_typed(path, column, key, schema[key]) for column, key in keys.items()]
        frame = pl.scan_parquet(path, glob=False).select(chosen).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: not a Parquet file, or a damaged one ({reason})") from error
    if not frame.height:
        raise DataError(f"{path}: no rows")
    return Records(with_absent(frame, columns), lambda row: f"{path}: row {row + 1}")


def _typed(path: Path, column: Column, key: str, dtype: pl.DataType) -> pl.Expr:
    import polars as pl

    textual = dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)
    value = pl.col(key).alias(column.name)
    if column.kind == "number" and (textual or dtype.is_numeric()):
        return value.cast(pl.String) if textual else value
    if column.kind != "number" and (textual or dtype.is_integer()):
        return value.cast(pl.String)
    wanted = {"id": "text or integers", "text": "text", "number": "numbers"}[column.kind]
    raise DataError(f"{path}: the column '{key}' must hold {wanted}, not {dtype}")
