"""Text files, plain or compressed, and the recognition of files in an unexpected format.

Gzip and Zstandard are recognised by content, not by name. Unexpected formats are workbooks, UTF-16, JSON Lines and
CSV with other separators.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path

from rageval_spec.data.tables import bound_batches
from rageval_spec.errors import DataError
from rageval_spec.kernels.inputs import GZIP, ZSTD, check_bounds
from rageval_spec.libraries import compile_later, pl

COMPRESSED = (".gz", ".zst")
LONGEST_LINE = 256 << 20
"""The most bytes in a line. A longer line is not a row, and reading it would need several times its size in memory."""
BLOCK = 2**23
"""How many bytes of a file are parsed at once: enough for two cores, and few enough for their caches."""

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
    try:
        return next((candidate for candidate in candidates if candidate.exists()), path)
    except OSError:  # with the suffix, the name is too long
        return path


def check_file(path: Path) -> bytes:
    """A file's first bytes, still compressed if it is. Raises DataError: it cannot be read, is empty, or a bomb."""
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
    """The name of a text's encoding, if it is not UTF-8: `UTF-16`. Raises DataError: the file is not text."""
    return None if refuse_foreign(path, check_file(path)) is None else "UTF-16"


def text_lines(path: Path, *, longest: int | None = LONGEST_LINE) -> Iterator[tuple[int, str]]:
    r"""Yield the number (from 1) and text of each line, without line breaks (`\n`, `\r\n`) and byte order mark.

    The text is UTF-8, or UTF-16 if the first bytes show that.

    `longest` is the most bytes a line may have; None if the whole file may be one line, as in JSON. Raises DataError:
    whatever `check_file` raises; a file that is not text, such as a workbook; or, with the line number, a line that is
    too long, bytes that are not UTF-8, or damaged compressed data.
    """
    start = check_file(path)
    encoding = refuse_foreign(path, start)
    if encoding is not None:
        yield from _utf_16_lines(path, encoding, longest, compressed=start.startswith(GZIP))
        return
    if start.startswith(ZSTD):
        yield from enumerate(_zstd_lines(path), 1)
        return
    yield from decode_lines(path, _byte_lines(path, longest, compressed=start.startswith(GZIP)))


def decode_lines(path: Path, lines: Iterable[bytes], first: int = 1) -> Iterator[tuple[int, str]]:
    """Do what `text_lines` does for the lines of a UTF-8 file from the line `first` on."""
    for number, line in enumerate(lines, first):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield number, content.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            where = f"{path}:{number}:{error.start + 1}"
            message = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8)"
            raise DataError(f"{where}: {message}") from error


def text_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number of the first line, from 1, and the bytes of whole lines, about `BLOCK` bytes at a time.

    They are decompressed, and not checked otherwise. Raises DataError: whatever `text_lines` raises about the file as a
    whole, a line that is too long, or damaged compressed data.
    """
    number, rest = 1, b""
    for part in _zstd_parts(path) if check_file(path).startswith(ZSTD) else _byte_parts(path):
        end = part.rfind(b"\n") + 1
        if end:
            block, rest = rest + part[:end], part[end:]
            yield number, block
            number += block.count(b"\n")
        elif len(rest := rest + part) > LONGEST_LINE:
            raise DataError(f"{path}:{number}: {_TOO_LONG.format(LONGEST_LINE >> 20)}")
    if rest:
        yield number, rest


def _byte_parts(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if check_file(path).startswith(GZIP) else path.open("rb") as stream:
            yield from iter(partial(stream.read, BLOCK), b"")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        for _ in text_lines(path):  # raises at the line where the data end
            pass
        raise


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


def _zstd_lines(path: Path) -> Iterator[str]:
    lines = (line for batch in _zstd_batches(path) for line in batch)
    return (line.removeprefix("\ufeff") if number == 0 else line for number, line in enumerate(lines))


def _zstd_parts(path: Path) -> Iterator[bytes]:
    part: list[bytes] = []
    for batch in _zstd_batches(path):
        part.append(f"{batch.str.join(chr(10)).item()}\n".encode())
        if sum(map(len, part)) >= BLOCK:
            yield b"".join(part)
            part = []
    yield b"".join(part)


def _zstd_batches(path: Path) -> Iterator[pl.Series]:
    """Lines as decompressed by polars: Python itself can read zstd only from 3.14 on."""
    try:
        for found in pl.scan_lines(path).collect_batches(maintain_order=True):
            yield from (batch.to_series() for batch in bound_batches(found, BLOCK))
    except pl.exceptions.ComputeError as error:
        raise DataError(f"{path}: {error}; decompress the file to see on which line") from error
    except OSError as error:
        raise DataError(f"{path}: the compressed file is damaged or cut off ({error})") from error


BEGINNING = 4096
"""How many bytes to read to recognise a format."""
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
_SIGNS: tuple[tuple[bytes, str, str], ...] = (
    (b"PAR1", "a Parquet file", "write use: parquet for a dataset, format: parquet for a system"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook (XLS, or one with a password)", "save it as .xlsx without a password"),
    (b"%PDF", "a PDF file", "name the file with the data"),
    (b"SQLite format 3\0", "a SQLite database", "export the table as CSV"),
    (b"ARROW1", "an Arrow file", "convert it to Parquet"),
    (b"FEA1", "a Feather file", "convert it to Parquet"),
    (b"BZh", "a bzip2 file", "decompress it, or use gzip or Zstandard"),
    (b"\xfd7zXZ\0", "an xz file", "decompress it, or use gzip or Zstandard"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "extract the file from it"),
    (b"version https://git-lfs", "a Git LFS pointer", "fetch the file itself: git lfs pull"),
)
_HTML = compile_later(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html[\s>])", re.IGNORECASE)
_MOST_NAMES = 6
_SEPARATOR_LINE = compile_later(r'"?sep=.?"?')
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class ForeignFileError(DataError):
    """A file in another format than expected: `finding` is its name and what it is, `hint` what to do."""

    def __init__(self, path: Path, line: int | None, message: str, hint: str) -> None:
        """Join place, message and hint."""
        super().__init__(f"{path}{'' if line is None else f':{line}'}: {message}; {hint}")
        self.finding = f"{path.name}: {message}"
        self.hint = hint


def refuse_foreign(path: Path, start: bytes) -> str | None:
    """The encoding if a text is UTF-16, else None. Raises ForeignFileError: the first bytes are of no text."""
    content = _open_gzip(start) if start.startswith(GZIP) else start
    encoding = find_utf_16(content)
    found = None if encoding is not None else name_content(content)
    if found is not None:
        name, hint = found
        raise ForeignFileError(path, None, f"this is {name}, not text", hint)
    return encoding


def name_content(start: bytes) -> tuple[str, str] | None:
    """What a file is, judged by its first bytes, and what to do about it; None if it may be UTF-8 text."""
    if start.startswith(b"PK\x03\x04"):
        if b"opendocument.spreadsheet" in start:
            return "an OpenDocument spreadsheet", "save it as CSV (UTF-8)"
        if b"[Content_Types].xml" in start or b"xl/" in start:
            return "an Excel workbook (XLSX)", "write use: xlsx for a dataset or labels, format: xlsx for a system"
        return "a ZIP archive", "extract the file from it"
    for sign, name, advice in _SIGNS:
        if start.lstrip(b" \t\r\n").startswith(sign):
            return name, advice
    if _HTML.match(start):
        return "an HTML page", "download the data, not the page about it"
    if find_utf_16(start) is not None:
        return "UTF-16 text", "save it as UTF-8"
    return None


def decode_beginning(start: bytes) -> str:
    """The text at the beginning of a file, decompressed if it is gzip. What is not text becomes a replacement mark."""
    content = _open_gzip(start) if start.startswith(GZIP) else start
    encoding = find_utf_16(content)
    return content.decode(encoding or "utf-8-sig", "replace").lstrip("\ufeff")


def find_utf_16(start: bytes) -> str | None:
    """The encoding of UTF-16 text, by its byte order mark or by the NUL in each of its first characters; else None."""
    if start.startswith(_UTF_16):
        return "utf-16"
    pairs = start[: len(start) // 2 * 2][:64]
    if len(pairs) < 4:
        return None
    first, second = pairs[::2], pairs[1::2]
    if not any(second) and all(first):
        return "utf-16-le"
    return "utf-16-be" if not any(first) and all(second) else None


def refuse_header(path: Path, line: int, text: str, separator: str) -> None:
    """Raise ForeignFileError for a first line of a table that is JSON or uses another separator."""
    first = text.strip()
    if _SEPARATOR_LINE.fullmatch(first):
        raise ForeignFileError(path, line, f"the line {first!r} is for Excel only", "delete it")
    if first.startswith(("{", "[")) and (is_json(first) or first.startswith(("[{", '{"')) or len(first) == 1):
        what = "JSON Lines" if first.startswith("{") else "a JSON list"
        place = "" if first.startswith("{") else ", and give the file a name that ends in .json"
        advice = (
            f"write use: jsonl for a dataset or labels, format: {'jsonl' if not place else 'json'} for a system{place}"
        )
        raise ForeignFileError(path, line, f"this is {what}, not CSV", advice)
    other = None if separator in text else find_separator(first)
    if other is not None:
        names = ", ".join(repr(name.strip().strip('"')) for name in first.split(other)[:_MOST_NAMES])
        expected = SEPARATORS.get(separator, repr(separator))
        message = f"the columns {names} are separated by {SEPARATORS[other]}, not by {expected}"
        raise ForeignFileError(path, line, message, f"write separator: {json.dumps(other)}")


def refuse_line(path: Path, line: int, text: str) -> None:
    """Raise ForeignFileError for a first line of JSON Lines that is a table's header or begins a JSON list."""
    first = text.strip()
    if first in ("[", "{") or first.startswith("[{"):
        what = "one JSON document" if first == "{" else "a JSON list"
        hint = "give the file a name that ends in .json"
        raise ForeignFileError(path, line, f"this is {what}, not JSON Lines", hint)
    separator = None if first.startswith(("{", "[", '"')) else find_separator(first)
    if separator is not None:
        names = ", ".join(repr(name.strip()) for name in first.split(separator)[:_MOST_NAMES])
        advice = "write use: csv for a dataset or labels, format: csv for a system"
        raise ForeignFileError(path, line, f"this is CSV with the columns {names}, not JSON Lines", advice)


def find_separator(header: str) -> str | None:
    """The separator of a header line; None if the line is a single name or a sentence."""
    counts = {mark: header.count(mark) for mark in SEPARATORS}
    best = max(counts, key=lambda mark: counts[mark])
    names = [name.strip().strip('"') for name in header.split(best)]
    is_header = counts[best] > 0 and all(0 < len(name) <= 60 for name in names) and len(set(names)) == len(names)
    return best if is_header and "\n" not in header else None


def _open_gzip(start: bytes) -> bytes:
    """Decompress the beginning of a gzip file, as far as possible."""
    try:
        return zlib.decompressobj(wbits=31).decompress(start, BEGINNING)
    except zlib.error:
        return b""


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
