"""Feeds: where a monitor gets traces from, and where it goes on reading after a kill.

A feed gives traces in batches, each with a cursor. The ledger writes both in one transaction, so nothing is lost and
nothing counts twice, wherever a monitor was killed. A feed may give a trace again; the ledger knows it.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from rageval_spec.data.traces import Trace
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.exchange.shared.row_files import build_trace, translate_known
from rageval_spec.monitoring.ledger import SeenTrace
from rageval_spec.reading.formats.row_shapes import ask_last_turn
from rageval_spec.recorded.answers_and_steps import UnusableReplyError
from rageval_spec.recorded.values import read_time

BATCH = 2000
"""The most traces of one batch."""
PATIENCE = 300.0
"""Seconds after which a trace is judged although its root has not ended."""


class Batch(NamedTuple):
    """Traces, where the feed goes on after them, and how many rows could not be read."""

    traces: list[SeenTrace]
    cursor: Any
    unread: int = 0


class Feed(ABC):
    """Gives traces as they come. `name` is its name in the ledger: that of its system in the spec."""

    def __init__(self, name: str, settle: float) -> None:
        """Open nothing. A trace is due `settle` seconds after the last that came of it."""
        self.name = name
        self.settle = settle

    @abstractmethod
    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        """What has come since the cursor, which is None at the beginning; nothing if there is nothing new.

        Raises:
            RagevalError: the traces cannot be read at the moment; what was given until then stays.
        """

    def explain_unread(self) -> str | None:
        """Why the last row that could not be read was left out; None if all were read."""
        return None

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Release what was opened."""

    def see(self, trace: Trace, now: float, *, is_whole: bool = True) -> SeenTrace:
        """A trace that came just now."""
        moment = read_time(trace.started)
        started = now if moment is None else moment.timestamp()
        return SeenTrace(trace, started, now + (self.settle if is_whole else max(self.settle, PATIENCE)), is_whole)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where reading a file goes on. `beginning` is a digest of its first bytes: another file has another one."""

    offset: int = 0
    beginning: str = ""
    length: int = 0


_BEGINNING = 256


class FileFeed(Feed):
    """Reads a file, or a folder of files, that grows: JSON Lines, one trace a line.

    A line counts when its newline is there. A file that was replaced, or became shorter, is read from its beginning.
    """

    def __init__(self, name: str, settle: float, path: Path) -> None:
        """Follow a file, or all files below a folder that end in `.jsonl` or `.ndjson`."""
        super().__init__(name, settle)
        self._path = path
        self._unread: str | None = None

    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        places: dict[str, list[Any]] = dict(cursor or {})
        for path in self._files():
            name = str(path.relative_to(self._path)) if path != self._path else path.name
            yield from self._read(path, name, places, now)

    def explain_unread(self) -> str | None:
        return self._unread

    def _files(self) -> list[Path]:
        if not self._path.is_dir():
            return [self._path] if self._path.exists() else []
        return sorted(file for file in self._path.rglob("*") if file.suffix in (".jsonl", ".ndjson"))

    def _read(self, path: Path, name: str, places: dict[str, list[Any]], now: float) -> Iterator[Batch]:
        try:
            with path.open("rb") as stream:
                place = _find_place(stream, _Place(*places[name]) if name in places else _Place())
                stream.seek(place.offset)
                while lines := _take_lines(stream):
                    start, place = place.offset, _Place(
                        place.offset + sum(map(len, lines)), *_digest_beginning(stream, place)
                    )  # fmt: skip
                    traces, unread = self._read_lines(path, start, lines, now)
                    places[name] = [place.offset, place.beginning, place.length]
                    yield Batch(traces, {**places}, unread)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error

    def _read_lines(self, path: Path, start: int, lines: list[bytes], now: float) -> tuple[list[SeenTrace], int]:
        traces, unread = [], 0
        for line in lines:
            if line.strip():
                try:
                    traces.append(self.see(read_line(line, f"{path}: byte {start:,}"), now))
                except RagevalError as error:
                    self._unread = make_visible(str(error))
                    unread += 1
            start += len(line)
        return traces, unread


def _find_place(stream: IO[bytes], place: _Place) -> _Place:
    """The place to go on from: the beginning if this is another file, or if it is shorter than what was read."""
    size = os.fstat(stream.fileno()).st_size
    stream.seek(0)
    if size < place.offset or hashlib.sha256(stream.read(place.length)).hexdigest()[:16] != place.beginning:
        return _Place()
    return place


def _digest_beginning(stream: IO[bytes], place: _Place) -> tuple[str, int]:
    if place.length == _BEGINNING:
        return place.beginning, place.length
    at = stream.tell()
    stream.seek(0)
    begin = stream.read(min(_BEGINNING, at))
    stream.seek(at)
    return hashlib.sha256(begin).hexdigest()[:16], len(begin)


def _take_lines(stream: IO[bytes]) -> list[bytes]:
    """The next lines that are complete, at most a batch; the stream is then behind them."""
    lines: list[bytes] = []
    while len(lines) < BATCH and (line := stream.readline()):
        if not line.endswith(b"\n"):
            stream.seek(-len(line), os.SEEK_CUR)
            break
        lines.append(line)
    return lines


def read_line(line: bytes, place: str) -> Trace:
    """The trace of a line: as `import` writes it, or in any layout of questions and answers that files have.

    A line without an id gets one from its content, so that the same line is the same trace.

    Raises:
        DataError: the line is not JSON, or has no question.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not valid JSON: {error}") from None
    if not isinstance(found, Mapping):
        raise DataError(f"{place}: write an object with a question and an answer, not {type(found).__name__}")
    try:
        if isinstance(found.get("trace"), Mapping):
            return Trace.from_row(found)
        return build_trace(
            "file", place, hashlib.sha256(line).hexdigest()[:32], translate_known(ask_last_turn({**found}))
        )
    except (UnusableReplyError, ValueError, TypeError) as error:
        raise DataError(f"{place}: {error}") from None
