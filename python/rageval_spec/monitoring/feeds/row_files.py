"""The feed of a growing file, or folder of files, of rows: JSON Lines, one question and its answer a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rageval_spec.data.traces import Trace
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.exchange.shared.contracts import load, words
from rageval_spec.exchange.shared.row_files import RowFileSource, RowsNode, translate_known
from rageval_spec.monitoring.feeds.contract import Batch, Feed, replace_nul
from rageval_spec.monitoring.feeds.growing_files import LARGEST, GrowingFiles, Piece, take_lines
from rageval_spec.monitoring.ledger import SeenTrace, digest_question
from rageval_spec.recorded.answers_and_steps import UnusableReplyError
from rageval_spec.recorded.json_path import parse_path
from rageval_spec.recorded.tool_layouts import find_layout
from rageval_spec.wording import count_noun

SUFFIXES = (".jsonl", ".ndjson")
FindQuestions = Callable[[Sequence[str]], Mapping[str, str]]
"""The digests of the questions that the ledger knows, of some ids."""


class FileFeed(Feed):
    """Reads rows in any layout that `import` reads. A line counts when it is complete.

    Two rows with one id are one trace if they ask the same: the later one is what became of it. If they ask different
    questions, the later one gets an id of its own, and is counted.
    """

    def __init__(self, name: str, settle: float, path: Path, reader: RowReader, find_questions: FindQuestions) -> None:
        """Follow a file with its rotated predecessors, or the files below a folder that end in `.jsonl`, `.ndjson`."""
        super().__init__(name, settle)
        self._files = GrowingFiles(path, SUFFIXES, take_lines)
        self._reader = reader
        self._find_questions = find_questions
        self._renamed = 0

    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        places: dict[str, Any] = dict(cursor or {})
        for piece in self._files.read(places, now):
            traces, unread = self._read_records(piece, now)
            yield Batch(traces, {**places}, unread)

    def remarks(self) -> Sequence[str]:
        said = [*super().remarks(), *map(make_visible, self._reader.remarks())]
        if self._renamed:
            some = count_noun(self._renamed, "row has", "rows have")
            said.append(f"{some} the id of another question; they are kept under ids that end in '#' and a digest")
        return said

    def _read_records(self, piece: Piece, now: float) -> tuple[list[SeenTrace], int]:
        traces: list[Trace] = []
        unread = 0
        for one in piece.records:
            place = f"{piece.path}: byte {one.start:,}"
            try:
                if one.content is None:
                    raise DataError(f"{place}: a line of {one.length:,} bytes; at most {LARGEST:,} are read")
                if line := one.content.strip(b"\0 \t\r\n"):
                    identity = b"%b\n%d\n" % (piece.beginning, one.start)
                    traces.append(replace_nul(self._reader.read(line, place, identity)))
            except RagevalError as error:
                self._unread = make_visible(str(error))
                unread += 1
        due = max(now, _find_last_write(piece.path, now) + self.settle)
        return [self.see(trace, now, due=due) for trace in self._tell_apart(traces)], unread

    def _tell_apart(self, traces: Sequence[Trace]) -> Iterator[Trace]:
        """The traces, where those that ask another question under a known id have one of their own."""
        found = self._find_questions([self.prefix + trace.id for trace in traces])
        known = {name.removeprefix(self.prefix): asked for name, asked in found.items()}
        for trace in traces:
            asked = digest_question(trace.question)
            if known.setdefault(trace.id, asked) == asked:
                yield trace
            else:
                self._renamed += 1
                yield replace(trace, query_id=f"{trace.id}#{asked}")


def _find_last_write(path: Path, now: float) -> float:
    """When something came to a file last; now, if it is gone. Rows of a file that rests need not wait."""
    try:
        return min(now, path.stat().st_mtime)
    except OSError:
        return now


class RowReader:
    """Reads a row as `import` does: in the layout of a tool, or with the usual names of columns."""

    def __init__(self, layout: str = "auto", columns: Mapping[str, str] | None = None) -> None:
        """`columns` are the names or JSONPaths of parts, such as `{"answer": "$.outputs.text"}`."""
        self._layout = layout
        named = columns or {}
        self._plain = {_PARTS.get(part, part): name for part, name in named.items() if not name.startswith("$")}
        self._paths = {_PARTS.get(p, p): parse_path(name) for p, name in named.items() if name.startswith("$")}
        self._sources: dict[str, RowFileSource] = {}

    def read(self, line: bytes, place: str, identity: bytes = b"") -> Trace:
        """The trace of a line. One without an id gets one from its content, and from what tells its place apart.

        Raises:
            DataError: the line is not JSON, or has no question.
        """
        try:
            found = json.loads(line)
        except UnicodeDecodeError as error:
            raise DataError(f"{place}: not UTF-8: {error.reason}; write the file in UTF-8") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not valid JSON: {error}") from None
        if not isinstance(found, Mapping):
            raise DataError(f"{place}: write an object with a question and an answer, not {type(found).__name__}")
        try:
            if isinstance(found.get("trace"), Mapping):
                return Trace.from_row(found)
            number = hashlib.sha256(identity + line).hexdigest()[:32]
            return self._source_of(found).read_row(place, number, found, self._list_named(found))
        except (UnusableReplyError, ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{place}: {error}") from None

    def remarks(self) -> list[str]:
        """What is doubtful about rows that were read, such as a time that could not be understood."""
        return [remark for one in self._sources.values() for remark in one.remarks()]

    def _list_named(self, row: Mapping[str, Any]) -> dict[str, Any]:
        plain = {part: row[name] for part, name in self._plain.items() if name in row}
        found = {part: path.find_or(row, None) for part, path in self._paths.items()}
        return plain | {part: value for part, value in found.items() if value is not None}

    def _source_of(self, row: Mapping[str, Any]) -> RowFileSource:
        word = _find_word(tuple(row)) if self._layout == "auto" else self._layout
        if word not in self._sources:
            kind: Any = load(word).source if word in words() else None
            reader: Any = kind if isinstance(kind, type) and issubclass(kind, RowFileSource) else _KnownRows
            self._sources[word] = reader(RowsNode(path=""), None)
        return self._sources[word]


_PARTS = {"query_id": "id"}


@lru_cache(maxsize=256)
def _find_word(names: tuple[str, ...]) -> str:
    layout = find_layout(names, keeps_lists=True)
    return "none" if layout is None else layout.word


class _KnownRows(RowFileSource):
    """Rows with the usual names of columns. `answer` is the system's: production has no gold answers by that name."""

    tool = "file"

    def translate(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        found = translate_known(row)
        if "answer" in row and found["answer"] is None:
            found |= {"answer": row["answer"], "reference": None}
        return found
