"""Reads files that grow, are rotated, compressed or truncated, each byte once.

What identifies a file is what was read of it, not its name: a file that was renamed, copied or compressed goes on
where reading stopped, and a new file under its old name begins at its beginning.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

from rageval_spec.errors import DataError

LARGEST = 20 * 1024 * 1024
"""The most bytes of one line or message; longer ones are passed over and counted."""
_BATCH, _BATCH_BYTES = 2000, 32 * 1024 * 1024
STILL = 60.0
"""Seconds without a change after which a last line needs no newline."""
_PROOF = 1024
"""How many bytes at the beginning, and before the place where reading stopped, identify a file."""
_SKIPPED = 65_536
"""How much identifies a file that was there, rotated already, when reading began."""
_MOST_LOST = 20
_LENGTH = 4
_ROTATED = r"[._-]?\d[\dTZtz:._-]*"
"""What programs that rotate files put into a name: a number, or a time."""
_LOST = "/lost"
"""Where the places of files are kept that were not found again, until they are; no file is called so."""


class Record(NamedTuple):
    """A line or a message: where it begins, what it holds (None if it is too long), and how many bytes it takes."""

    start: int
    content: bytes | None
    length: int
    is_line: bool = True


class Piece(NamedTuple):
    """What was read of a file, or no records if only places changed; the places are then behind it.

    `beginning` is that of the file's first line, which stays the same whatever the file is called.
    """

    path: Path
    records: list[Record]
    beginning: bytes = b""


Place = list[Any]
"""Where reading goes on, a digest of what was read, and whether the rest is not wanted."""
End = Literal["open", "still", "final"]
"""Whether more may come to a file; a still one was not written to for a while."""
Take = Callable[[IO[bytes], int, bytes, End], list[Record]]
"""Takes the next complete records: the stream, its place, the file's beginning, and its end."""


class GrowingFiles:
    """A file with its rotated predecessors, or all files below a folder whose names have a suffix."""

    def __init__(self, path: Path, suffixes: tuple[str, ...], take: Take) -> None:
        self._path = path
        self._take = take
        ends = "|".join(map(re.escape, suffixes))
        self._in_folder = re.compile(rf".+(?:{ends})(?:{_ROTATED})?(?:\.gz)?")
        stem, suffix = re.escape(path.stem), re.escape(path.suffix)
        self._sibling = re.compile(rf"{stem}(?:{suffix}{_ROTATED}|{_ROTATED}{suffix})(?:\.gz)?")
        self._unchanged: dict[Path, tuple[int, ...]] = {}

    def read(self, places: dict[str, Any], now: float) -> Iterator[Piece]:
        """What is new in each file. `places` says where reading goes on, and is kept up to date.

        Raises:
            DataError: the path is not there, or a file cannot be read; all others were.
        """
        fault: DataError | None = None
        before = {**places}
        is_folder = self._path.is_dir()
        is_first = not is_folder and places.keys() <= {_LOST}
        for path in self._list(is_folder=is_folder):
            try:
                state = path.stat()
                is_still = now - state.st_mtime >= STILL
                key = (state.st_ino, state.st_size, state.st_mtime_ns, is_still)
                if self._unchanged.get(path) != key:
                    is_wanted = path == self._path or not is_first
                    for piece in self._read_file(path, places, is_wanted=is_wanted, is_still=is_still):
                        yield piece
                        before = {**places}
                    self._unchanged[path] = key
            except EOFError:  # it is being compressed; its beginning is in the file that it replaces
                continue
            except FileNotFoundError:
                continue
            except (gzip.BadGzipFile, zlib.error) as error:
                fault = DataError(f"{path}: damaged gzip data: {error}")
            except OSError as error:
                fault = DataError(f"{path}: cannot be read: {error.strerror or error}")
        if places != before:
            yield Piece(self._path, [])
        if not self._path.exists():
            fault = DataError(f"{self._path}: there is no such file or folder yet")
        if fault is not None:
            raise fault

    def _list(self, *, is_folder: bool) -> list[Path]:
        if is_folder:
            return sorted(file for file in self._path.rglob("*") if self._in_folder.fullmatch(file.name))
        siblings = [] if not self._path.parent.is_dir() else self._path.parent.iterdir()
        rotated = sorted(file for file in siblings if self._sibling.fullmatch(file.name))
        return [self._path, *rotated] if self._path.exists() else rotated

    def _read_file(self, path: Path, places: dict[str, Any], *, is_wanted: bool, is_still: bool) -> Iterator[Piece]:
        name = path.name if path.parent == self._path.parent else str(path.relative_to(self._path))
        with _open(path) as (stream, is_compressed):
            offset, _, is_done = places[name] = self._find_place(stream, name, places)
            if not is_wanted or is_done:
                stream.seek(0)
                start = len(stream.read(_SKIPPED))
                places[name] = [start, _identify(stream, start), True]
                return
            stream.seek(0)
            beginning = stream.readline(_PROOF).rstrip(b"\r\n")
            stream.seek(offset)
            end: End = "final" if is_compressed else "still" if is_still else "open"
            while records := self._take(stream, offset, beginning, end):
                offset = records[-1].start + records[-1].length
                places[name] = [offset, _identify(stream, offset), False]
                stream.seek(offset)
                yield Piece(path, records, beginning)

    def _find_place(self, stream: IO[bytes], name: str, places: dict[str, Any]) -> Place:
        """The place of the file under this name, or of the one that had the same content under another name."""
        own, lost = places.get(name), places.setdefault(_LOST, [])
        if own is not None:
            if _is_at(stream, own):
                return list(own)
            places[_LOST] = lost = [*lost, own][-_MOST_LOST:]
        others = [*lost, *(place for key, place in places.items() if key not in (_LOST, name))]
        found = [place for place in others if place[0] and _is_at(stream, place)]
        if not found:
            return [0, "", False]
        best = max(found, key=lambda place: (not place[2], place[0]))
        places[_LOST] = [place for place in lost if place is not best]
        return list(best)


def _is_at(stream: IO[bytes], place: Place) -> bool:
    return bool(_identify(stream, place[0]) == place[1])


def _identify(stream: IO[bytes], offset: int) -> str:
    """A digest of a file's beginning and of what stands before an offset; another one if the file is shorter."""
    if offset == 0:
        return ""
    stream.seek(0)
    begin = stream.read(min(_PROOF, offset))
    stream.seek(max(0, offset - _PROOF))
    end = stream.read(min(_PROOF, offset))
    return hashlib.sha256(b"%d:" % len(begin + end) + begin + end).hexdigest()[:16]


@contextmanager
def _open(path: Path) -> Iterator[tuple[IO[bytes], bool]]:
    with path.open("rb") as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file, False
            return
        with gzip.GzipFile(fileobj=file) as inner:
            yield cast(IO[bytes], inner), True


def take_lines(stream: IO[bytes], offset: int, beginning: bytes, end: End) -> list[Record]:  # noqa: ARG001
    """The next lines that have their newline, and the last line of a file that grows no more.

    The last line of a still file counts if it is an object of JSON, to which nothing can be added.
    """
    records: list[Record] = []
    size = 0
    while len(records) < _BATCH and size < _BATCH_BYTES and (line := stream.readline(LARGEST + 1)):
        length, is_complete = len(line), line.endswith(b"\n")
        content: bytes | None = line
        if length > LARGEST and not is_complete:
            content = None
            while not is_complete and (part := stream.readline(LARGEST)):
                length, is_complete = length + len(part), part.endswith(b"\n")
        if not is_complete and end != "final" and not (end == "still" and content is line and _is_object(line)):
            break
        records.append(Record(offset, content, length))
        offset, size = offset + length, size + length
    return records


def _is_object(line: bytes) -> bool:
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(line), dict)
    return False


def take_requests(stream: IO[bytes], offset: int, beginning: bytes, end: End) -> list[Record]:
    """The next requests of a file of spans: lines of JSON, or protobuf after its length in four bytes."""
    if beginning[:1] != b"\0":
        return take_lines(stream, offset, beginning, end)
    records: list[Record] = []
    size = 0
    while len(records) < _BATCH and size < _BATCH_BYTES and len(begin := stream.read(_LENGTH)) == _LENGTH:
        length = int.from_bytes(begin, "big")
        content = stream.read(length) if length <= LARGEST else None
        at = stream.tell() if content is not None else stream.seek(length, os.SEEK_CUR)
        if at < offset + _LENGTH + length or (content is None and not _has_byte_before(stream)):
            break
        records.append(Record(offset, content, _LENGTH + length, is_line=False))
        offset, size = at, size + _LENGTH + length
    return records


def _has_byte_before(stream: IO[bytes]) -> bool:
    """Whether the file reaches as far as the stream was moved."""
    stream.seek(-1, os.SEEK_CUR)
    return bool(stream.read(1))
