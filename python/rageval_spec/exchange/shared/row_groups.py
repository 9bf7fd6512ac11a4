"""The base classes of sources whose rows are steps of traces, and of those whose tools keep spans trace by trace.

A tool's pages of rows cut through its traces: they come in any order and leave in groups. Until then they are kept on
disk. Reading ends even if a server's pages never would.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import Field

from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.contracts import PlacesNode, TraceSource, WindowNode
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import format_moment
from rageval_spec.exchange.shared.trace_store import TraceStore
from rageval_spec.reading.rows import read_rows
from rageval_spec.recorded import questions_and_answers
from rageval_spec.recorded.questions_and_answers import RecordedPaths
from rageval_spec.recorded.values import clean, open_text, read_time
from rageval_spec.store.disk import InputFile
from rageval_spec.wording import count_noun

_FILES = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")
LONGEST = timedelta(hours=1)
"""How long a trace may take; its later steps are not read."""


class SpooledNode(WindowNode, PlacesNode):
    """Which traces to read, and from where."""

    path: str | None = Field(
        default=None,
        description="An exported file, or a folder of them: JSON, JSONL, CSV or Parquet, plain or `.gz`. Default: ask "
        "the API.",
    )
    dataset: str | None = Field(default=None, description="Read the items of this dataset instead of traces.")


class TraceRow(NamedTuple):
    """A row of a trace: the trace, the row's name in it, when it was in nanoseconds since 1970, and its values."""

    trace_id: str
    key: str
    time: int | None
    row: Mapping[str, Any]


N = TypeVar("N", bound=SpooledNode)
W = TypeVar("W", bound=WindowNode)
Rows = Sequence[Mapping[str, Any]]


class SpooledSource(TraceSource[N]):
    """Reads rows in any order, sorts them by trace on disk, and makes a trace of each group."""

    loose: ClassVar[str] = "row"
    """What rows are called that belong to no trace."""

    tool: ClassVar[str]

    def __init__(self, node: N, context: Any) -> None:
        super().__init__(node, context)
        self._skipped = self._loose = self._cut = 0

    @abstractmethod
    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """Pages of the API: the place and the content of each row."""

    @abstractmethod
    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        """The items of a dataset of the API; None for those without a question."""

    def spread(self, found: Any) -> Iterator[Any]:
        """The rows in what a page or a file lists as one; by default it is one."""
        yield found

    @abstractmethod
    def prepare(self, place: str, row: Mapping[str, Any]) -> TraceRow | None:
        """A row with its trace; None if it belongs to none."""

    @abstractmethod
    def assemble(self, rows: Rows) -> Trace | None:
        """The trace of some rows; None if it has no question."""

    def is_cut(self, rows: Rows) -> bool:  # noqa: ARG002 - most tools name the beginning of a trace
        """Whether the rows are only the later part of a trace."""
        return False

    def is_wanted(self, trace: Trace) -> bool:  # noqa: ARG002 - by default all are
        """Whether a trace passes the filters of the node."""
        return True

    def inputs(self) -> Sequence[InputFile]:
        return [InputFile(file, ("path",)) for file in self._files()] if self.node.path is not None else ()

    def read(self) -> Iterator[Trace]:
        """The traces, newest first, or the items of the dataset in its order."""
        made = 0
        for trace in self._read_all():
            if trace is None:
                self._skipped += 1
                continue
            yield trace
            made += 1
            if made == self.node.limit:
                return

    def remarks(self) -> Sequence[str]:
        found = []
        if self._skipped:
            found.append(
                f"{count_noun(self._skipped, 'trace')} without a question in the input left out; "
                "if the question has an unusual place, name it with --question"
            )
        if self._cut:
            cut = count_noun(self._cut, "trace")
            found.append(f"{cut} without a beginning in what was read left out; read from earlier on")
        if self._loose:
            found.append(f"{count_noun(self._loose, self.loose)} of no trace that was read left out")
        return found

    @property
    def window(self) -> dict[str, str]:
        """The window to ask for, `from` and `to`. It ends later than `until`, for the last steps of a trace."""
        since, until = self.node.window
        begin = {} if since is None else {"from": format_moment(since)}
        return begin if until is None else {**begin, "to": format_moment(until + LONGEST)}

    def place_rows(self, number: int, page: Iterable[Any], what: str = "") -> list[tuple[str, Any]]:
        """The rows of a page, each with its place for messages."""
        return [(f"{self.tool}: page {number}{what}, row {i}", row) for i, row in enumerate(page, 1)]

    def _read_all(self) -> Iterator[Trace | None]:
        if self.node.dataset is not None and self.node.path is None:
            yield from self.read_items(self.node.dataset)
            return

        with closing(TraceStore()) as store:
            for page in self.fetch() if self.node.path is None else map(read_rows, self._files()):
                rows = ((place, row) for place, found in page for row in self.spread(found))
                store.add(entry for place, row in rows if (entry := self._prepare(place, row)) is not None)
            yield from self._assemble_all(store)

    def _files(self) -> list[Path]:
        path = self.context.resolve(self.node.path or "")
        if not path.is_dir():
            return [path]
        plain = {file: file.name.removesuffix(".gz").removesuffix(".zst") for file in sorted(path.rglob("*"))}
        files = [file for file, name in plain.items() if name.endswith(_FILES) and file.is_file()]
        if not files:
            raise DataError(f"{path}: this folder has no exported files ({', '.join(_FILES)})")
        return files

    def _prepare(self, place: str, found: Any) -> TraceRow | None:
        if not isinstance(found, Mapping):
            raise DataError(f"{place}: this row is not an object")
        entry = self.prepare(place, found)
        self._loose += entry is None
        return entry

    def _assemble_all(self, store: TraceStore) -> Iterator[Trace | None]:
        for rows in map(store.read, store.list_traces()):
            if not any(self.is_step(row) for row in rows):
                self._loose += len(rows)
            elif self.is_cut(rows):
                self._cut += 1
            elif (trace := self.assemble(rows)) is None:
                yield None
            elif self._is_within(trace) and self.is_wanted(trace):
                yield trace

    def is_step(self, row: Mapping[str, Any]) -> bool:  # noqa: ARG002 - by default all are
        """Whether a row is a part of a trace, and not feedback on it."""
        return True

    def _is_within(self, trace: Trace) -> bool:
        """Whether a trace began in the window; exported files, and steps after `until`, may be of others."""
        if (began := read_time(trace.started)) is None:
            return True
        since, until = self.node.window
        return not (since is not None and began < since) and (until is None or began < until)


class SpanSource(TraceSource[W]):
    """Reads traces from spans, and counts what of them could not be read."""

    tool: ClassVar[str]

    def __init__(self, node: W, context: Any) -> None:
        super().__init__(node, context)
        self.reader = SpanReader(self.tool)

    @abstractmethod
    def read_all(self) -> Iterator[Trace]:
        """The traces, newest first, or the rows of a dataset as traces; more than the limit if there are more."""

    def read(self) -> Iterator[Trace]:
        return islice(self.read_all(), self.node.limit)

    def remarks(self) -> Sequence[str]:
        return self.reader.remarks()


def make_item(
    link: TraceLink, query_id: str, question: str, places: RecordedPaths, given: Any, gold: Any, metadata: Any
) -> Trace:
    """The question of a dataset's item: what was given, the gold answer, and what else is known of it."""
    gold, metadata = open_text(gold), open_text(metadata)
    return Trace(
        link,
        question,
        query_id=query_id,
        documents=questions_and_answers.find_contexts(given),
        references=places.references(gold),
        relevant=questions_and_answers.read_relevant(gold, metadata),
        messages=questions_and_answers.find_messages(given),
        metadata=clean(metadata) if isinstance(metadata, Mapping) else {},
    )


def add_known(numbers: Iterable[Any]) -> Any:
    """The sum of the numbers that are known; None if none is."""
    known = [number for number in numbers if number is not None]
    return round(sum(known), 12) if known else None
