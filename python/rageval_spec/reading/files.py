"""Text files, plain or compressed. Gzip and Zstandard are recognised by content, not by name."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path

from rageval_spec.errors import DataError
from rageval_spec.kernels.bounds import GZIP, ZSTD, check_bounds
from rageval_spec.reading.recognition import BEGINNING, refuse_foreign

COMPRESSED = (".gz", ".zst")
LONGEST_LINE = 256 << 20
"""The most bytes in a line. A longer line is not a row, and reading it would need several times its size in memory."""

_TOO_LONG = "this line is longer than {} MiB; is a line feed missing between the rows?"


def format_of(path: Path) -> str:
    """The suffix of a file's format, in lower case and without the dot: `jsonl` for `corpus.jsonl.gz`; "" if none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1][1:] if suffixes else ""


def find_file(path: Path) -> Path:
    """`path`, or `path` with `.gz` or `.zst` if only that exists; `path` itself if none exists."""
    candidates = (path, *(path.with_name(path.name + suffix) for suffix in COMPRESSED))
    return next((candidate for candidate in candidates if candidate.exists()), path)


def check_file(path: Path) -> bytes:
    """Check that a file can be read, and return its first bytes (still compressed if the file is).

    Raises:
        DataError: it is missing, a folder, a device or a named pipe, not permitted, empty, or a decompression bomb.
    """
    if path.is_dir():
        raise DataError(f"{path}: this is a folder, not a file")
    check_bounds(path)
    try:
        with path.open("rb") as stream:
            start = stream.read(BEGINNING)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except PermissionError as error:
        raise DataError(f"{path}: no permission to read it") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    if not start:
        raise DataError(f"{path}: the file is empty")
    return start


def find_encoding(path: Path) -> str | None:
    """The name of a text's encoding, if it is not UTF-8: `UTF-16`.

    Raises:
        DataError: whatever `check_file` raises; a file that is not text.
    """
    return None if refuse_foreign(path, check_file(path)) is None else "UTF-16"


def text_lines(path: Path, *, longest: int | None = LONGEST_LINE) -> Iterator[tuple[int, str]]:
    r"""Yield the number (from 1) and text of each line, without line breaks (`\n`, `\r\n`) and byte order mark.

    The text is UTF-8, or UTF-16 if the first bytes show that.

    Args:
        path: the file.
        longest: the most bytes a line may have; None if the whole file may be one line, as in JSON.

    Raises:
        DataError: whatever `check_file` raises; a file that is not text, such as a workbook; or, with the line number,
            a line that is too long, bytes that are not UTF-8, or damaged compressed data.
    """
    start = check_file(path)
    encoding = refuse_foreign(path, start)
    if encoding is not None:
        yield from _utf_16_lines(path, encoding, longest, compressed=start.startswith(GZIP))
        return
    if start.startswith(ZSTD):
        yield from enumerate(_zstd_lines(path), 1)
        return
    for number, line in enumerate(_byte_lines(path, longest, compressed=start.startswith(GZIP)), 1):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield number, content.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            where = f"{path}:{number}:{error.start + 1}"
            message = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8)"
            raise DataError(f"{where}: {message}") from error


def _utf_16_lines(path: Path, encoding: str, longest: int | None, *, compressed: bool) -> Iterator[tuple[int, str]]:
    number, most = 0, -1 if longest is None else longest // 2
    try:
        with (
            gzip.open(path) if compressed else path.open("rb") as stream,
            TextIOWrapper(stream, encoding, newline="\n") as text,
        ):
            while line := text.readline(most):
                number += 1
                if len(line) == most and not line.endswith("\n"):
                    raise DataError(f"{path}:{number}: {_TOO_LONG.format(LONGEST_LINE >> 20)}")
                yield number, line.removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{number + 1}: this is not UTF-16 text: {error.reason}; save it as UTF-8") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}:{number + 1}: the compressed file is damaged or cut off ({error})") from error


def _byte_lines(path: Path, longest: int | None, *, compressed: bool) -> Iterator[bytes]:
    number = 0
    try:
        with gzip.open(path) if compressed else path.open("rb") as stream:
            whole = longest is None or (not compressed and path.stat().st_size <= longest)
            lines = stream if whole else iter(partial(stream.readline, longest), b"")
            for number, line in enumerate(lines, 1):
                if not whole and len(line) == longest and not line.endswith(b"\n"):
                    raise DataError(f"{path}:{number}: {_TOO_LONG.format(longest >> 20)}")
                yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}:{number + 1}: the compressed file is damaged or cut off ({error})") from error


def _zstd_lines(path: Path) -> Iterable[str]:
    """Lines as decompressed by polars: Python itself can read zstd only from 3.14 on."""
    import polars as pl

    try:
        lines = pl.scan_lines(path).collect().to_series()
    except pl.exceptions.ComputeError as error:
        raise DataError(f"{path}: {error}; decompress the file to see on which line") from error
    except OSError as error:
        raise DataError(f"{path}: the compressed file is damaged or cut off ({error})") from error
    return (line.removeprefix("\ufeff") if number == 0 else line for number, line in enumerate(lines))
