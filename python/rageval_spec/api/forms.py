"""Converts judgements and runs from the forms that other programs use into those that the kernel reads."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Protocol, TypeAlias

from rageval_spec.errors import UsageError
from rageval_spec.kernels.bounds import check_bounds


class ArrowTable(Protocol):
    """A polars, pyarrow or pandas frame: anything with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow stream in a PyCapsule."""
        ...


Judgements: TypeAlias = Mapping[str, Mapping[str, int]] | ArrowTable | Mapping[str, Any] | str | PathLike[str]
Run: TypeAlias = Mapping[str, Mapping[str, float]] | ArrowTable | Mapping[str, Any] | str | PathLike[str]


def read_form(data: Any, table: str, number: str) -> object:
    """Return the data as a dict of dicts, an object with the Arrow PyCapsule interface, or a path.

    `table` ("qrels" or "run") is the name for errors; `number` is the name of the third column.

    Raises:
        UsageError: the data have another form, or lack a column.
        ValueError: a frame has no columns at all.
        DataError: the path is not a regular file, or the file expands to far more than its size.
    """
    if isinstance(data, dict):  # first, because a dict can hold a single query, which takes a few microseconds
        return _read_mapping(data, table, number)
    if isinstance(data, str | PathLike):
        check_bounds(data)
        return data
    if _is_lazy(data):
        raise UsageError(f"{table} is a polars LazyFrame, which holds no rows yet; call .collect() on it")
    if hasattr(data, "__arrow_c_stream__"):
        if len(getattr(data, "columns", [table])) == 0:
            raise ValueError(f"{table} is empty: it has no columns; give query_id, doc_id and {number}")
        return _select(data, number) if type(data).__module__.partition(".")[0] == "polars" else data
    if not isinstance(data, Mapping):
        raise UsageError(
            f"{table} is of type {type(data).__name__}; give a dict of dicts, a frame with the columns query_id, "
            f"doc_id and {number}, a mapping of arrays, or the path of a file"
        )
    return _read_mapping(data, table, number)


def _read_mapping(data: Mapping[str, Any], table: str, number: str) -> object:
    if "query_id" in data and not isinstance(data["query_id"], Mapping):
        return _as_frame(data, table, number)
    return nest(data)


def _is_lazy(data: object) -> bool:
    kind = type(data)
    return kind.__name__ == "LazyFrame" and kind.__module__.partition(".")[0] == "polars"


def nest(data: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping of mappings as a dict of dicts, without copying dicts. Other values stay; the kernel refuses them."""
    return {query: dict(docs) if _is_other_mapping(docs) else docs for query, docs in data.items()}


def _is_other_mapping(docs: object) -> bool:
    return not isinstance(docs, dict) and isinstance(docs, Mapping)


def _select(frame: Any, number: str) -> object:
    """A polars frame with only the columns to read. A column of type Null becomes text, which the kernel can read."""
    import polars as pl

    if not isinstance(frame, pl.DataFrame):
        return frame
    wanted = [name for name in ("query_id", "doc_id", number) if name in frame.columns]
    if len(wanted) < 3:
        return frame
    return frame.select(pl.col(name).cast(pl.String) if frame.schema[name] == pl.Null else name for name in wanted)


def _as_frame(columns: Mapping[str, Any], table: str, number: str) -> object:
    import polars as pl

    names = ("query_id", "doc_id", number)
    for name in names:
        if name not in columns:
            raise UsageError(f"{table} has no column '{name}'; its columns are {', '.join(map(str, columns))}")
    try:
        return _select(pl.DataFrame({name: _as_column(columns[name]) for name in names}), number)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise UsageError(f"{table}: the columns {', '.join(names)} do not form a table: {error}") from error


def _as_column(values: Any) -> Any:
    """A numpy array of strings or bytes as a list of `str`, which polars can read; other values unchanged."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "S":
        return [value.decode() for value in values.tolist()]
    return values.tolist() if kind in "UOT" and kind else values
