"""Tables of texts that are too large to hold: their rows lie in a temporary file, in blocks.

A `StoredTable` takes the place of a data frame of answers. What is read of it are a few columns of all rows, or all
columns of a few rows. The file has no name, so nothing is left of it when the table is let go, or the process killed.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from threading import Lock
from typing import IO, TypeAlias

from rageval_spec.dataclass import dataclass, replace
from rageval_spec.errors import RagevalError
from rageval_spec.libraries import pl

ROWS = 4096
"""About how many rows a block has."""
_MOST_OPEN = 3
_ROWS_IN_ORDER = 16 * ROWS
"""How many rows are put in order at a time."""


class BlockFile:
    """Blocks of rows in a temporary file, compressed. The last few that were read stay in memory."""

    def __init__(self) -> None:
        """Start without blocks. The first one decides about the columns.

        Raises:
            RagevalError: the file cannot be made.
        """
        self.starts, self.height, self.schema = [0], 0, pl.Schema()
        self._places: list[tuple[int, int]] = []
        self._open: dict[int, pl.DataFrame] = {}
        self._lock = Lock()
        with _explained():
            self._file: IO[bytes] = tempfile.TemporaryFile(prefix="rageval-")  # noqa: SIM115 - closed below
        weakref.finalize(self, self._file.close)

    def append(self, block: pl.DataFrame) -> None:
        """Write a block. Raises `RagevalError` if there is no room for it."""
        buffer = BytesIO()
        block.write_ipc(buffer, compression="zstd")
        with self._lock, _explained():
            self._places.append((self._file.seek(0, os.SEEK_END), buffer.tell()))
            self._file.write(buffer.getbuffer())
            self._file.flush()
        self.height += block.height
        self.starts.append(self.height)
        self.schema = block.schema

    @cached_property
    def query_ids(self) -> pl.Series:
        """The column `query_id` of all blocks, which is often needed."""
        return pl.concat([self.read(number, ["query_id"]) for number in range(len(self))]).to_series()

    def read(self, number: int, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """A block, or some of its columns."""
        with self._lock:
            if number in self._open:
                return self._open[number] if columns is None else self._open[number].select(columns)
            start, size = self._places[number]
            self._file.seek(start)
            content = BytesIO(self._file.read(size))
            block = pl.read_ipc(content, columns=None if columns is None else list(columns))
            if columns is None:
                self._open[number] = block
                while len(self._open) > _MOST_OPEN:
                    del self._open[next(iter(self._open))]
            return block

    def __len__(self) -> int:
        """The number of blocks."""
        return len(self._places)


@dataclass(frozen=True)
class StoredTable:
    """Rows of a file of blocks: those with the numbers `rows`, in this order. `names` are its columns.

    `constants` are columns with one value for all rows.
    """

    blocks: BlockFile
    rows: pl.Series
    names: tuple[str, ...]
    constants: tuple[tuple[str, pl.Expr], ...] = ()

    @classmethod
    def write(cls, blocks: Iterable[pl.DataFrame]) -> StoredTable:
        """Store blocks, at least one, as a table."""
        written = BlockFile()
        for block in blocks:
            for part in block.iter_slices(ROWS):
                written.append(part)
        return cls(written, pl.int_range(written.height, dtype=pl.UInt32, eager=True), tuple(written.schema))

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return [*self.names, *(name for name, _ in self.constants)]

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def with_columns(self, **constants: pl.Expr) -> StoredTable:
        """The table with more columns, each with one value for all rows."""
        return replace(self, constants=(*self.constants, *constants.items()))

    def narrow(self, names: Iterable[str]) -> StoredTable:
        """The table with only these columns of the file; nothing is read."""
        return replace(self, names=tuple(name for name in names if name in self.names))

    def take(self, rows: pl.Series) -> StoredTable:
        """The table with only the rows of these numbers, in their order; nothing is read."""
        return replace(self, rows=self.rows.gather(rows))

    def drop(self, names: Iterable[str]) -> StoredTable:
        """The table without some columns; nothing is read."""
        left_out = {*names}
        return self.narrow(name for name in self.names if name not in left_out)

    def select(self, *names: str) -> pl.DataFrame:
        """A few columns of all rows, in memory."""
        if names == ("query_id",):
            return self.blocks.query_ids.gather(self.rows).to_frame()
        found = pl.concat([self.blocks.read(number, names) for number in range(len(self.blocks))])
        return found.select(pl.all().gather(self.rows))

    def gather(self, places: pl.Series) -> pl.DataFrame:
        """All columns of the rows with these numbers; nulls for a number that is null."""
        wanted = pl.DataFrame({"row": self.rows.gather(places)}).with_row_index("place")
        start = pl.Series("start", self.blocks.starts[:-1], dtype=pl.UInt32)
        block = start.search_sorted(wanted["row"].fill_null(0), side="right") - 1
        wanted = wanted.with_columns(block=block).with_columns(inside=pl.col("row") - start.gather(block))
        parts = []
        for (number,), of in wanted.drop_nulls("row").group_by("block", maintain_order=True):
            rows = self.blocks.read(int(str(number))).select(pl.col(self.names).gather(of["inside"]))
            parts.append(rows.with_columns(of["place"], **dict(self.constants)))
        empty = pl.DataFrame(schema={name: self.blocks.schema[name] for name in self.names})
        empty = empty.with_columns(**dict(self.constants))
        found = pl.concat(parts) if parts else empty.with_columns(pl.lit(0, pl.UInt32).alias("place"))
        if found.height < wanted.height or len(parts) > 1:
            found = wanted.select("place").join(found, on="place", how="left", maintain_order="left")
        return found.select(self.columns)

    def iter_slices(self, rows: int = ROWS) -> Iterator[pl.DataFrame]:
        """All rows in blocks."""
        for start in range(0, self.height, rows):
            yield self.gather(pl.int_range(start, min(start + rows, self.height), dtype=pl.UInt32, eager=True))

    def in_order(self) -> StoredTable:
        """The table with its rows in the order in which they lie in the file, so that reading them in order is fast.

        If they do not, the file is written anew.
        """
        if self.rows.is_sorted():
            return self
        return StoredTable.write(self.iter_slices(_ROWS_IN_ORDER))

    def load(self) -> pl.DataFrame:
        """The whole table, in memory."""
        return pl.concat([*self.iter_slices()])

    def __reduce__(self) -> tuple[Callable[..., pl.DataFrame], tuple[pl.DataFrame]]:
        """Another process gets a data frame."""
        return pl.DataFrame, (self.load(),)


AnyTable: TypeAlias = "pl.DataFrame | StoredTable"


def load_table(table: AnyTable) -> pl.DataFrame:
    """A data frame as it is, or a stored table in memory."""
    return table.load() if isinstance(table, StoredTable) else table


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where, told = tempfile.gettempdir(), error.strerror or error
        message = f"{where}: there is no room for texts: {told}; name another folder in the variable TMPDIR"
        raise RagevalError(message) from error
