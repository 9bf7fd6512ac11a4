"""Parquet: typed columns, without line numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.errors import DataError
from rageval_spec.reading.formats.column_layouts import RecordColumn, Records, choose_keys, with_absent
from rageval_spec.reading.formats.text_files import ForeignFileError, check_file, find_separator, name_content

if TYPE_CHECKING:
    import polars as pl


def read_parquet(path: Path, columns: Sequence[RecordColumn]) -> Records:
    """Read columns of a Parquet file. Ids and texts become String; numbers keep their type.

    Raises:
        DataError: no rows, not Parquet, a missing required column, a column of the wrong type.
    """
    import polars as pl

    check_file(path)
    try:
        schema = pl.read_parquet_schema(path)
        keys = choose_keys(str(path), columns, list(schema))
        chosen = [_typed(path, column, key, schema[key]) for column, key in keys.items()]
        frame = pl.scan_parquet(path, glob=False).select(chosen).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error
    if not frame.height:
        raise DataError(f"{path}: no rows")
    return Records(with_absent(frame, columns), lambda row: f"{path}: row {row + 1}")


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns.

    Raises:
        DataError: not Parquet.
    """
    import polars as pl

    check_file(path)
    try:
        return list(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error


def parquet_objects(path: Path, names: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number (from 1) and the named values of each row; only the columns `names`, if given.

    Raises:
        DataError: no rows, not Parquet.
    """
    import polars as pl

    check_file(path)
    try:
        scan = pl.scan_parquet(path, glob=False)
        frame = (scan if names is None else scan.select(names)).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error
    if not frame.height:
        raise DataError(f"{path}: no rows")
    yield from enumerate(frame.iter_rows(named=True), 1)


def _damaged(path: Path, error: Exception) -> DataError:
    start = check_file(path)
    if not start.startswith(b"PAR1") and (found := _name_other(start)):
        return ForeignFileError(path, None, f"this is {found[0]}, not Parquet", found[1])
    reason = str(error).partition("\n")[0]
    return DataError(f"{path}: not a Parquet file, or a damaged one ({reason})")


def _name_other(start: bytes) -> tuple[str, str] | None:
    """What a file that is not Parquet is instead, and what to write; None if unknown."""
    found = name_content(start)
    if found is not None:
        return found
    first = start.decode("utf-8", "replace").lstrip("\ufeff").partition("\n")[0]
    if first.startswith("{"):
        return "JSON Lines", "write use: jsonl for a dataset, format: jsonl for a system"
    if find_separator(first) is not None and first.isprintable():
        return "CSV", "write use: csv for a dataset, format: csv for a system"
    return None


def _typed(path: Path, column: RecordColumn, key: str, dtype: pl.DataType) -> pl.Expr:
    import polars as pl

    textual = dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)
    value = pl.col(key).alias(column.name)
    if column.kind == "number" and (textual or dtype.is_numeric()):
        return value.cast(pl.String) if textual else value
    if column.kind != "number" and (textual or dtype.is_integer()):
        return value.cast(pl.String)
    wanted = {"id": "text or integers", "text": "text", "number": "numbers"}[column.kind]
    raise DataError(f"{path}: the column '{key}' must hold {wanted}, not {dtype}")
