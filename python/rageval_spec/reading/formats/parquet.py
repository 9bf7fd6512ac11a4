"""Parquet: typed columns, without line numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rageval_spec.errors import DataError
from rageval_spec.kernels.inputs import ALWAYS_READ, MOST_EXPANSION
from rageval_spec.libraries import pl
from rageval_spec.reading.column_names import RecordColumn
from rageval_spec.reading.formats.records import Records, collect_batches, join_records, with_absent
from rageval_spec.reading.formats.text_files import ForeignFileError, check_file, find_separator, name_content
from rageval_spec.reading.missing_columns import choose_keys


def read_parquet(path: Path, columns: Sequence[RecordColumn]) -> Records:
    """Read columns at once: the batches of `read_parquet_batches` together."""
    return join_records([*read_parquet_batches(path, columns)])


def read_parquet_batches(path: Path, columns: Sequence[RecordColumn]) -> Iterator[Records]:
    """Read columns, some megabytes at a time; ids and texts become String.

    Raises DataError: no rows, not Parquet, too much for the memory, or a column is missing or of another type.
    """

    def choose(schema: Mapping[str, pl.DataType]) -> list[pl.Expr]:
        keys = choose_keys(str(path), columns, list(schema))
        return [_typed(path, column, key, schema[key]) for column, key in keys.items()]

    done = 0
    for frame in _collect(path, choose):
        yield Records(with_absent(frame, columns), partial(_locate, path, done))
        done += frame.height


def _locate(path: Path, start: int, row: int) -> str:
    return f"{path}: row {start + row + 1}"


def _collect(
    path: Path, choose: Callable[[Mapping[str, pl.DataType]], Sequence[str | pl.Expr]]
) -> Iterator[pl.DataFrame]:
    """The chosen columns of a file, in batches. Raises DataError: no rows, not Parquet, or too much for the memory."""
    check_file(path)
    refuse_bomb(path)
    expanded, is_empty = 0, True
    try:
        scan = pl.scan_parquet(path, glob=False).select(choose(pl.read_parquet_schema(path)))
        for frame in collect_batches(scan):
            expanded, is_empty = expanded + _measure_texts(frame), is_empty and not frame.height
            _refuse_expanded(path, expanded)
            yield frame
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error
    if is_empty:
        raise DataError(f"{path}: no rows")


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns. Raises DataError: not Parquet."""
    check_file(path)
    try:
        return list(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error


def parquet_objects(path: Path, names: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number (from 1) and the values of each row, of the columns `names` only, if given."""
    frames = _collect(path, lambda schema: list(schema) if names is None else names)
    yield from enumerate((row for frame in frames for row in frame.iter_rows(named=True)), 1)


def count_rows(path: Path) -> int:
    """How many rows a file has, by its footer. Raises DataError: not Parquet."""
    check_file(path)
    try:
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(path, error) from error


def refuse_bomb(path: Path, *, beside: Path | None = None) -> None:
    """Refuse a file that would take much more memory than it is large, before its columns are read.

    A column of equal values takes a few bytes in the file, and 16 for each value in memory. What the footer says is
    not checked against the pages; a file without a readable footer is left to the reader, which says what is wrong.

    The size of a file `beside` it, which was a part of it in earlier versions, counts as its own if it is there.

    Raises DataError: it expands too far.
    """
    try:
        chunks = list(_list_chunks(_read_footer(path)))
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError, OSError):
        return
    more = beside.stat().st_size if beside is not None and beside.is_file() else 0
    _refuse_expanded(path, sum(values * _VALUE + size for values, size in chunks), more)


def _measure_texts(frame: pl.DataFrame) -> int:
    """The bytes of all texts, were each there as often as rows have it: in memory, a text in a dictionary is once."""
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    lists = [name for name, dtype in frame.schema.items() if dtype == pl.List(pl.String)]
    sizes = frame.select(
        *(pl.col(name).str.len_bytes().cast(pl.UInt64).sum().alias(name) for name in texts),
        *(pl.col(name).explode().str.len_bytes().cast(pl.UInt64).sum().alias(name) for name in lists),
    )
    return sum(size or 0 for row in sizes.iter_rows() for size in row)


def _refuse_expanded(path: Path, size: int, more: int = 0) -> None:
    most = max(ALWAYS_READ, MOST_EXPANSION * (path.stat().st_size + more))
    if size > most:
        raise DataError(
            f"{path}: the file expands to more than {most // 2**20} MiB; save it with less in it, or as CSV"
        )


_VALUE = 16
"""Bytes that a value takes in memory, at most; those of a longer text come on top."""
_MAGIC = b"PAR1"
_LONGEST_FOOTER = 2**24
_DEEPEST = 32
_ROW_GROUPS, _CHUNKS, _META, _VALUES, _SIZE = 4, 1, 3, 5, 6
"""The fields that count in the footer's structures `FileMetaData`, `RowGroup`, `ColumnChunk` and `ColumnMetaData`."""


def _list_chunks(footer: dict[int, Any]) -> Iterator[tuple[int, int]]:
    """The number of values of each column chunk, and their bytes in the pages once they are decompressed."""
    for group in footer.get(_ROW_GROUPS, ()):
        for chunk in group[_CHUNKS]:
            meta = chunk[_META]
            yield max(0, meta[_VALUES]), max(0, meta[_SIZE])


def _read_footer(path: Path) -> dict[int, Any]:
    """The footer of a Parquet file, by the numbers of its fields."""
    with path.open("rb") as stream:
        end = stream.seek(0, 2)
        stream.seek(max(0, end - 8))
        tail = stream.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length > min(end - 8, _LONGEST_FOOTER):
            raise ValueError("no footer")
        stream.seek(end - 8 - length)
        return _CompactReader(stream.read(length)).read_struct()


class _CompactReader:
    """Reads structures in Thrift's compact protocol, in which Parquet's footer is written."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def read_struct(self, depth: int = 0) -> dict[int, Any]:
        """A structure as its fields by number. Texts are left out."""
        if depth > _DEEPEST:
            raise ValueError("too deep")
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            found[number] = kind == 1 if kind in (1, 2) else self._read(kind, depth)
        return found

    def _read(self, kind: int, depth: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (7, 8):
            return self._skip(8 if kind == 7 else self._unsigned())
        if kind in (9, 10):
            head = self._byte()
            count = self._unsigned() if head >> 4 == 15 else head >> 4
            return [self._read(head & 15, depth + 1) for _ in range(min(count, len(self._content)))]
        if kind == 12:
            return self.read_struct(depth + 1)
        raise ValueError(f"kind {kind}")

    def _skip(self, count: int) -> None:
        self._at += count

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _unsigned(self) -> int:
        found = shift = 0
        while (byte := self._byte()) >= 128:
            found |= (byte & 127) << shift
            shift += 7
        return found | byte << shift

    def _signed(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)


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
    textual = dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)
    value = pl.col(key).alias(column.name)
    if column.kind == "number" and (textual or dtype.is_numeric()):
        return value.cast(pl.String) if textual else value
    if column.kind != "number" and (textual or dtype.is_integer()):
        return value.cast(pl.String)
    wanted = {"id": "text or integers", "text": "text", "number": "numbers"}[column.kind]
    raise DataError(f"{path}: the column '{key}' must hold {wanted}, not {dtype}")
