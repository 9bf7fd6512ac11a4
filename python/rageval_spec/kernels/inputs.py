"""Checks arguments and reads run and qrels files, before the core gets them.

Files that cannot safely be read whole are refused: devices, named pipes, sockets and decompression bombs. A device
never ends, reading a named pipe without a writer never starts, and a compressed file of a few megabytes can expand to
more than the memory. Each is refused before its data are read. Regular files and anonymous pipes are fine.
"""

from __future__ import annotations

import os
import stat
import zlib
from array import array
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from rageval_spec import _core
from rageval_spec.errors import DataError
from rageval_spec.libraries import Floats, np, pl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import ArrayLike

    Numbers: TypeAlias = ArrayLike | array[float]


def read_run(path: str | PathLike[str]) -> pl.DataFrame:
    """Read a TREC run file (`query_id Q0 doc_id rank score tag`) into the columns query_id, doc_id, score.

    The file can be plain, .gz or .zst. Rows keep the order of the file; the rank column is ignored, as in trec_eval.

    Raises:
        DataError: a line has too few columns, a score is NaN or not a number, or an id is not UTF-8 (with `file:line`);
            or the file is empty or cannot be read.
    """
    check_bounds(path)
    return pl.DataFrame(_core.read_run(path))


def read_qrels(path: str | PathLike[str]) -> pl.DataFrame:
    """Read a qrels file into the columns query_id, doc_id, relevance.

    The file has TREC's four columns, or BEIR's three separated by tabs, and can be plain, .gz or .zst.

    Raises:
        DataError: a line has the wrong number of columns, a relevance is not a whole number, an id is not UTF-8, or a
            document is judged twice for a query (with `file:line`); or the file is empty or cannot be read.
    """
    check_bounds(path)
    return pl.DataFrame(_core.read_qrels(path))


GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
ALWAYS_READ = 2**28
"""The size in bytes to which any compressed file is allowed to expand."""
MOST_EXPANSION = 100
"""Above `ALWAYS_READ`, the allowed ratio of expanded to compressed size. Text rarely exceeds a ratio of 20."""
_GZIP_EXPANDS = 1032
_ZSTD_BLOCK = 2**17
_ZSTD_EXPANDS = _ZSTD_BLOCK // 4
_CHUNK = 2**16
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def check_bounds(path: str | os.PathLike[str]) -> None:
    """Refuse a file that would never end or would fill the memory. A missing file is left to the reader.

    Raises:
        DataError: the path is a device, a named pipe or a socket, or a gzip or Zstandard file that expands to more than
            256 MiB and to more than 100 times its size.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - a PathLike need not be a Path
    except (OSError, ValueError):
        return
    if stat.S_ISREG(status.st_mode):
        if status.st_size * _ZSTD_EXPANDS > ALWAYS_READ:
            _check_expansion(os.fspath(path), status.st_size, status.st_mtime_ns)
    elif (kind := name_special(path)) is not None:
        raise DataError(f"{os.fspath(path)}: this is {kind}, not a file; write its content to a file")


def name_special(path: str | os.PathLike[str]) -> str | None:
    """`a named pipe`, `a device` or `a socket`; None for files, folders, a shell's `<(...)` and missing paths."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return None
    if stat.S_ISFIFO(mode) and _is_open_already(path):
        return None
    return next((name for is_kind, name in _KINDS if is_kind(mode)), None)


def _is_open_already(path: str | os.PathLike[str]) -> bool:
    """Whether the path names a pipe that this process has inherited open, as for a shell's `<(...)`."""
    return os.path.realpath(path).startswith(("/proc/", "/dev/fd/"))


@lru_cache(maxsize=256)
def _check_expansion(path: str, size: int, changed: int) -> None:  # noqa: ARG001 - part of the cache's key
    most = max(ALWAYS_READ, MOST_EXPANSION * size)
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(4)
            stream.seek(0)
            if start.startswith(ZSTD):
                too_large = _zstd_exceeds(stream, size, most)
            else:
                may_exceed = start.startswith(GZIP) and size * _GZIP_EXPANDS > most
                too_large = may_exceed and _gzip_exceeds(stream, most)
    except OSError:
        return
    if too_large:
        times = "" if most == ALWAYS_READ else f" ({MOST_EXPANSION} times its size)"
        message = f"the compressed file expands to more than {most // 2**20} MiB{times}"
        raise DataError(f"{path}: {message}; if this is intended, decompress it first")


def expanded_size(path: Path) -> int:
    """The bytes of a file once it is decompressed: of gzip by its first megabyte, of Zstandard as its frames say."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = stream.read(2**20)
        if start.startswith(GZIP):
            return round(size * len(zlib.decompressobj(wbits=31).decompress(start)) / len(start))
        if not start.startswith(ZSTD):
            return size
        stream.seek(0)
        return _measure_zstd(stream, size, 2**63)


def _gzip_exceeds(stream: BinaryIO, most: int) -> bool:
    """Whether the members of a gzip file expand to more than `most` bytes; damaged data end the count."""
    total, engine, waiting = 0, zlib.decompressobj(wbits=31), b""
    while waiting or (waiting := stream.read(_CHUNK)):
        try:
            total += len(engine.decompress(waiting, 16 * _CHUNK))
        except zlib.error:
            return False
        if total > most:
            return True
        waiting = engine.unconsumed_tail
        if engine.eof:
            waiting, engine = engine.unused_data, zlib.decompressobj(wbits=31)
    return False


def _zstd_exceeds(stream: BinaryIO, size: int, most: int) -> bool:
    """Whether the frames of a Zstandard file could expand to more than `most` bytes; damaged data end the count.

    If a frame's header gives its size, decoders enforce it. Otherwise, each block holds at most 128 KiB.
    """
    return _measure_zstd(stream, size, most) > most


def _measure_zstd(stream: BinaryIO, size: int, most: int) -> int:
    """The most bytes in the frames of a file, counted until they exceed `most`."""
    total = 0
    while total <= most and stream.tell() < size:
        magic = int.from_bytes(stream.read(4), "little")
        if magic & 0xFFFFFFF0 == 0x184D2A50:
            stream.seek(int.from_bytes(stream.read(4), "little"), os.SEEK_CUR)
        elif magic == 0xFD2FB528:
            total += _measure_frame(stream, size, most - total)
        else:
            break
    return total


def _measure_frame(stream: BinaryIO, size: int, most: int) -> int:
    """The largest number of bytes that a frame can hold. Reads to its end, or until the number exceeds `most`."""
    descriptor = int.from_bytes(stream.read(1), "little")
    is_single = bool(descriptor & 32)
    stream.seek((not is_single) + (0, 1, 2, 4)[descriptor & 3], os.SEEK_CUR)
    length = (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
    told = int.from_bytes(stream.read(length), "little") + (256 if length == 2 else 0) if length else None
    total, is_last = 0, False
    while not is_last and total <= most and stream.tell() < size:
        header = int.from_bytes(stream.read(3), "little")
        is_last, kind, content = bool(header & 1), header >> 1 & 3, header >> 3
        total += _ZSTD_BLOCK if kind == 2 else content
        stream.seek(1 if kind == 1 else content, os.SEEK_CUR)
    stream.seek(4 if descriptor & 4 else 0, os.SEEK_CUR)
    return total if told is None else min(told, total)


_LARGEST_SEED = 2**64 - 1
_LARGEST_COUNT = 2**63 - 1


def as_vector(name: str, values: Numbers) -> Floats | array[float]:
    """Return one-dimensional values in a form that the core can copy.

    An `array.array` of doubles is returned unchanged, without numpy, which takes a tenth of a second to load.
    """
    if isinstance(values, array) and values.typecode == "d":
        return values
    vector = np.require(values, np.float64, ["C", "A"]) if np.ndim(values) else None
    if vector is None or vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {np.ndim(values)}")
    return vector


def as_vectors(name: str, rows: Sequence[Numbers] | Floats) -> list[Floats | array[float]]:
    """Apply `as_vector` to each row. An error names the number of the row."""
    return [as_vector(f"{name} {number}", row) for number, row in enumerate(rows)]


def check_between(name: str, value: int, low: int, high: int) -> int:
    """Return `value` if it is between `low` and `high`, both included; otherwise raise `ValueError`."""
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}, not {value}")
    return value


def check_count(name: str, value: int) -> int:
    """Return `value` if it is at least 1 and fits in 63 bits; otherwise raise `ValueError`."""
    return check_between(name, value, 1, _LARGEST_COUNT)


def check_seed(value: int) -> int:
    """Return `value` if it fits in an unsigned 64-bit integer; otherwise raise `ValueError`."""
    return check_between("seed", value, 0, _LARGEST_SEED)


def check_threads(value: int | None) -> int | None:
    """Return `value` if it is at least 1, or None, which means one thread for each core."""
    return None if value is None else check_count("threads", value)
