"""Files of vectors that grow while texts are embedded, and that are searched where they lie.

A file is a folder, `vectors/<key of the model>-<form>/`:

- `vectors.json`: the format's version, the form and the dimension.
- `values`: the vectors, one after another, little-endian: float32, float16 or int8. `signs`, beside int8, has a bit for
  each value, 1 if it is above 0, and is made from `values` when it is needed.
- `rows`: a record of 32 bytes for each vector: 16 bytes of the digest of its text, its scale (float32), the CRC-32 of
  the rest and the values, one byte, 1 if the text was cut, and 7 zeros.
- `checked.json`: the number of rows whose checksums were right, and the size, time and inode of the files then.

A row's values are written before its record, so a process that is killed loses at most the batch that it was writing.
What follows the last whole record is cut off. A file that is not as it was checked is checked again: damaged rows are
left out, and their texts are embedded again. One process writes at a time; others can read meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec.errors import RagevalError, StoreWarning
from rageval_spec.libraries import np
from rageval_spec.store.disk import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

VectorForm = Literal["float32", "float16", "int8", "binary"]
VECTORS_FOLDER = "vectors"
MISSING = -1
"""The row of a text without a vector."""
_VERSION = 1
_DESCRIPTION, _VALUES, _SIGNS, _ROWS, _CHECKED = "vectors.json", "values", "signs", "rows", "checked.json"
_DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "i1", "binary": "i1"}
_RECORD = [("digest", "<u8", 2), ("scale", "<f4"), ("checksum", "<u4"), ("cut", "u1"), ("zeros", "V7")]
_DIGEST = 16
_DAMAGED = 255
"""In place of `cut`: a row that is left out."""
_AGAIN = "their texts are embedded again"
_LARGEST = 127
_BLOCK = 2**26
"""About as many bytes of vectors are read at a time."""
_CHECKED_AT_ONCE = 2**15
_NEW = 2**18
"""So many new rows are found by a dict before all are sorted again."""


class UnusableVectorError(ValueError):
    """A vector that cannot be stored: which one of those given, and what is wrong with it, after its name."""

    def __init__(self, row: int, complaint: str) -> None:
        super().__init__(f"the vector of text {row} {complaint}")
        self.row = row
        self.complaint = complaint


class VectorFile:
    """Vectors of one model in one form, found by the digests of their texts. Rows keep their numbers.

    - float32: as the model gives them.
    - float16: rounded to the nearest.
    - int8: each vector has a scale, its largest magnitude / 127; values are divided by it and rounded to the nearest.
    - binary: as int8, with the signs of its values.
    """

    def __init__(self, folder: Path, form: VectorForm, claim: Callable[[], Any]) -> None:
        """Open a file or begin one. `claim` gives a context in which no other process writes to it."""
        self.form = form
        self._folder = folder
        self._claim = claim
        self.is_claimed = False
        self._signs_are_right = True
        self._dimension = 0
        self._count = 0
        self._open()

    @property
    def dimension(self) -> int:
        """The number of values of a vector; 0 if there are no vectors yet."""
        return self._dimension

    def __len__(self) -> int:
        """The number of rows, damaged ones included."""
        return self._count

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """A context in which no other process writes to this file, and what others wrote before is known."""
        if self.is_claimed:
            yield
            return
        with self._claim():
            if not self._dimension:
                self._open()
            self._read_new()
            self.is_claimed = True
            try:
                yield
            finally:
                self.is_claimed = False

    def find(self, digests: Sequence[bytes]) -> Rows:
        """The rows of texts by their digests; `MISSING` for those without one."""
        wanted = _as_numbers(digests)
        found = np.full(len(digests), MISSING, np.int64)
        if len(self._sorted):
            places = np.minimum(np.searchsorted(self._sorted, wanted[:, 0]), len(self._sorted) - 1)
            rows = self._order[places].astype(np.int64)
            same = (self._sorted[places] == wanted[:, 0]) & (self._map_rows()["digest"][rows, 1] == wanted[:, 1])
            found[same] = rows[same]
        if self._new:
            for place in np.flatnonzero(found == MISSING).tolist():
                found[place] = self._new.get(digests[place][:_DIGEST], MISSING)
        return found

    def is_cut(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether the text of each row was cut."""
        if not len(rows):
            return np.zeros(0, np.bool_)
        cut: NDArray[np.bool_] = np.asarray(self._map_rows()["cut"][rows] == 1)
        return cut

    def append(self, digests: Sequence[bytes], vectors: NDArray[np.float32], cut: NDArray[np.bool_]) -> Rows:
        """Store the vectors [n, dimension] of new texts; returns their rows. Call it within `claimed`.

        Raises:
            UnusableVectorError: a value is not finite, or float16 cannot hold it.
            RagevalError: the vectors have another dimension than those in the file, or cannot be written.
        """
        values, scales = self._reduce(vectors)
        records = np.zeros(len(digests), _RECORD)
        records["digest"], records["scale"], records["cut"] = _as_numbers(digests), scales, cut
        records["checksum"] = _compute_checksums(records, values)
        try:
            self._describe(vectors.shape[1])
            for name, content, width in ((_VALUES, values, values.itemsize * self._dimension), (_ROWS, records, 32)):
                with (self._folder / name).open("r+b" if (self._folder / name).exists() else "w+b") as stream:
                    stream.truncate(self._count * width)
                    stream.seek(0, os.SEEK_END)
                    stream.write(content.tobytes())
        except OSError as error:
            raise RagevalError(
                f"store: cannot write to {self._folder}: {error}; choose another folder with --store, or use --no-store"
            ) from error
        first = self._count
        self._read_new()
        return np.arange(first, self._count, dtype=np.int64)

    def blocks(self) -> Iterator[tuple[int, NDArray[Any], NDArray[np.float32] | None, NDArray[np.uint8] | None]]:
        """The number of the first row, the values [n, dimension], the scales and the signs of blocks of rows.

        All are mapped into memory, not read. There are scales for int8 and binary, and signs for binary.
        """
        if not self._count:
            return
        values, scales = self._map_values(), self._map_rows()["scale"]
        signs = self._map_signs() if self.form == "binary" else None
        size = max(1, _BLOCK // (values.shape[1] * values.itemsize))
        for start in range(0, self._count, size):
            some = slice(start, start + size)
            scaled = np.ascontiguousarray(scales[some]) if values.dtype == np.int8 else None
            yield start, values[some], scaled, None if signs is None else signs[some]

    def take(self, rows: Rows) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The values [n, dimension] and the scales [n] of some rows."""
        return self._map_values()[rows], self._map_rows()["scale"][rows]

    def seal(self) -> None:
        """Record that all rows are as they were written, so that they need not be checked when they are read again."""
        with suppress(OSError):  # without the record, the next check takes longer
            content = {"rows": self._count, "identity": self._identify()}
            (self._folder / _CHECKED).write_text(json.dumps(content), encoding="utf-8")

    def _open(self) -> None:
        self._sorted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._order: NDArray[np.uint32] = np.empty(0, np.uint32)
        self._new: dict[bytes, int] = {}
        path = self._folder / _DESCRIPTION
        if not path.is_file():
            if (self._folder / _ROWS).is_file():
                self._warn(f"{path} is missing; the texts of its vectors are embedded again")
                shutil.rmtree(self._folder, ignore_errors=True)
            return
        try:
            found = json.loads(path.read_bytes())
            if (found["version"], found["form"]) != (_VERSION, _DTYPES[self.form]) or int(found["dimension"]) < 1:
                raise ValueError("it has another format")
            self._dimension = int(found["dimension"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._warn(f"{path} cannot be used ({error}); its texts are embedded again")
            shutil.rmtree(self._folder, ignore_errors=True)
            return
        self._count = self._count_rows()
        self._check()
        self._sort()

    def _count_rows(self) -> int:
        sizes = [(_VALUES, np.dtype(_DTYPES[self.form]).itemsize * self._dimension), (_ROWS, 32)]
        counts = [path.stat().st_size // width if path.is_file() else 0 for path, width in self._locate(sizes)]
        return min(counts)

    def _locate(self, sizes: Sequence[tuple[str, int]]) -> list[tuple[Path, int]]:
        return [(self._folder / name, width) for name, width in sizes]

    def _check(self) -> None:
        """Leave out the rows whose checksums are wrong, unless the files are as they were when all were right."""
        kept: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            kept = json.loads((self._folder / _CHECKED).read_bytes())
        if not isinstance(kept, dict) or kept.get("identity") != self._identify():
            self._signs_are_right = False
            with suppress(OSError):
                (self._folder / _SIGNS).unlink(missing_ok=True)
            if len(damaged := self._find_damaged()):
                self._leave_out(damaged)
                self._warn(f"{len(damaged)} of {self._count} vectors in {self._folder} are damaged; {_AGAIN}")
            self.seal()
        if isinstance(kept, dict) and isinstance(kept.get("rows"), int) and kept["rows"] > self._count:
            lost = kept["rows"] - self._count
            self._warn(f"{lost} of {kept['rows']} vectors are missing at the end of {self._folder}; {_AGAIN}")

    def _leave_out(self, damaged: Rows) -> None:
        try:
            records = np.memmap(self._folder / _ROWS, _RECORD, "r+", shape=(self._count,))
        except OSError as error:
            told = f"{len(damaged)} vectors in {self._folder} are damaged, and cannot be marked: {error.strerror}"
            raise RagevalError(f"store: {told}; choose another folder with --store, or use --no-store") from error
        records["cut"][damaged] = _DAMAGED
        records.flush()

    def _find_damaged(self) -> Rows:
        """The rows whose checksums are wrong, without those that are left out already."""
        found = [np.empty(0, np.int64)]
        for start in range(0, self._count, _CHECKED_AT_ONCE):
            some = slice(start, start + _CHECKED_AT_ONCE)
            records = np.array(self._map_rows()[some])
            wrong = records["checksum"] != _compute_checksums(records, self._map_values()[some])
            found.append(start + np.flatnonzero(wrong & (records["cut"] != _DAMAGED)))
        return np.concatenate(found)

    def _identify(self) -> list[list[int]]:
        paths = (self._folder / name for name in (_DESCRIPTION, _VALUES, _ROWS, _SIGNS))
        states = [path.stat() for path in paths if path.is_file()]
        return [[state.st_size, state.st_mtime_ns, state.st_ino] for state in states]

    def _warn(self, message: str) -> None:
        warnings.warn(f"store: {message}", StoreWarning, 2)

    def _sort(self) -> None:
        """Sort the digests of all rows, of which equal ones keep their order."""
        self._new = {}
        if not self._count:
            return
        records = self._map_rows()
        usable = np.flatnonzero(records["cut"] != _DAMAGED)
        firsts = records["digest"][usable, 0]
        order = np.argsort(firsts, kind="stable")
        self._sorted, self._order = firsts[order], usable[order].astype(np.uint32)

    def _read_new(self) -> None:
        """Take in the rows that were appended, here or by another process."""
        first, self._count = self._count, self._count_rows() if self._dimension else 0
        if self._count <= first:
            return
        digests = self._map_rows()["digest"][first:].tobytes()
        self._new.update((digests[_DIGEST * n : _DIGEST * (n + 1)], first + n) for n in range(self._count - first))
        if len(self._new) > _NEW:
            self._sort()

    def _reduce(self, vectors: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The values as they are stored, and the scales."""
        scales = np.ones(len(vectors), np.float32)
        values: NDArray[Any] = vectors
        if self.form == "float16":
            with np.errstate(over="ignore"):
                values = vectors.astype(np.float16)
        _refuse_infinite(vectors, values)
        if self.form in ("int8", "binary"):
            scales = (np.abs(vectors).max(axis=1, initial=0) / np.float32(_LARGEST)).astype(np.float32)
            divided = vectors / np.where(scales > 0, scales, 1)[:, None]
            values = np.clip(np.rint(divided), -_LARGEST, _LARGEST)
        return np.ascontiguousarray(values, np.dtype(_DTYPES[self.form])), scales

    def _describe(self, dimension: int) -> None:
        """Create the folder with its description, if there is none; else check the dimension."""
        if self._dimension == 0:
            self._folder.mkdir(parents=True, exist_ok=True)
            content = {"version": _VERSION, "form": _DTYPES[self.form], "dimension": dimension}
            write_atomically(self._folder / _DESCRIPTION, json.dumps(content).encode())
            self._dimension = dimension
        if dimension != self._dimension:
            raise RagevalError(
                f"the model gives vectors of {dimension} values, but those in {self._folder} have {self._dimension}: "
                "another model may now have this name; choose another folder with --store, or use --no-store"
            )

    def _map_rows(self) -> NDArray[Any]:
        return np.memmap(self._folder / _ROWS, _RECORD, "r", shape=(self._count,))

    def _map_values(self) -> NDArray[Any]:
        return np.memmap(self._folder / _VALUES, _DTYPES[self.form], "r", shape=(self._count, self._dimension))

    def _map_signs(self) -> NDArray[np.uint8]:
        """The signs; those of rows that were appended since are added first."""
        path, width = self._folder / _SIGNS, -(-self._dimension // 8)
        if self._signs_are_right and path.is_file() and path.stat().st_size == width * self._count:
            return np.memmap(path, np.uint8, "r", shape=(self._count, width))
        values, size = self._map_values(), max(1, _BLOCK // self._dimension)
        try:
            with self._claim(), path.open("ab") as stream:
                done = min(stream.tell() // width, self._count) if self._signs_are_right else 0
                stream.truncate(done * width)
                for start in range(done, self._count, size):
                    stream.write(np.packbits(values[start : start + size] > 0, axis=1).tobytes())
        except OSError as error:
            told = f"store: cannot write to {self._folder}: {error.strerror}"
            raise RagevalError(f"{told}; choose another folder with --store, or use --no-store") from error
        self._signs_are_right = True
        self.seal()
        return np.memmap(path, np.uint8, "r", shape=(self._count, width))


def count_vectors(folder: Path) -> int:
    """How many rows a file of vectors has, damaged ones included."""
    with suppress(OSError):
        return (folder / _ROWS).stat().st_size // 32
    return 0


def _as_numbers(digests: Sequence[bytes]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(digest[:_DIGEST] for digest in digests), "<u8").reshape(-1, 2)


def _compute_checksums(records: NDArray[Any], values: NDArray[Any]) -> NDArray[np.uint32]:
    """The CRC-32 of each record, without its own checksum, and its values."""
    bare = records.copy()
    bare["checksum"] = 0
    heads, bodies, width = memoryview(bare.tobytes()), memoryview(values.tobytes()), values[:1].nbytes
    places = range(len(records))
    return np.array(
        [zlib.crc32(bodies[n * width : (n + 1) * width], zlib.crc32(heads[n * 32 : (n + 1) * 32])) for n in places],
        np.uint32,
    )


def _refuse_infinite(vectors: NDArray[np.float32], values: NDArray[Any]) -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    row, column = (int(place) for place in np.argwhere(~finite)[0])
    value = vectors[row, column]
    shown = "NaN" if np.isnan(value) else str(value)
    hint = ", which float16 cannot hold; write `vectors: float32` or `vectors: int8`" if np.isfinite(value) else ""
    raise UnusableVectorError(row, f"has the value {shown} in column {column}{hint}")
