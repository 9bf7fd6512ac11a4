"""The base class of sources whose rows are steps of traces, read from an API or from files.

A tool's pages cut through its traces: rows come in any order and leave in groups. Until then they are kept on disk.
Reading ends even if a server's pages never would.
"""

from __future__ import annotations

import json
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from pydantic import Field

from rageval_spec.errors import DataError, RagevalError
from rageval_spec.exchange.shared.contracts import PlacesNode, TraceSource, WindowNode, parse_moment
from rageval_spec.exchange.shared.spans.spans import format_moment
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import sqlite3

    from rageval_spec.data.traces import Trace
    from rageval_spec.store.disk import InputFile


_FILES = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")
_LONGEST = timedelta(hours=1)
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
    """A row of a trace: the trace, the row's name in it, when it was, and its values."""

    trace_id: str
    key: str
    time: str
    row: Mapping[str, Any]


N = TypeVar("N", bound=SpooledNode)
Rows = Sequence[Mapping[str, Any]]


class SpooledSource(TraceSource[N]):
    """Reads rows in any order, sorts them by trace on disk, and makes a trace of each group."""

    loose: ClassVar[str] = "row"
    """What rows are called that belong to no trace."""

    def __init__(self, node: N, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self.now = datetime.now(UTC)
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
        """A row with its trace; None if it belongs to none.

        Raises:
            DataError: the row cannot be used; the message begins with `place`.
        """

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
        """The exported files."""
        from rageval_spec.store.disk import InputFile

        return [InputFile(file, ("path",)) for file in self._files()] if self.node.path is not None else ()

    def read(self) -> Iterator[Trace]:
        """The traces, newest first, or the items of the dataset in its order.

        Raises:
            UsageError: there is no key.
            DataError: a row or a file cannot be read, or there is no such dataset.
            ServiceError: the tool does not answer.
        """
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
        """What was left out, and why."""
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
        window = {}
        if self.node.since is not None:
            window["from"] = format_moment(parse_moment(self.node.since, self.now))
        if self.node.until is not None:
            window["to"] = format_moment(parse_moment(self.node.until, self.now) + _LONGEST)
        return window

    def _read_all(self) -> Iterator[Trace | None]:
        if self.node.dataset is not None and self.node.path is None:
            yield from self.read_items(self.node.dataset)
            return

        with RowSpool() as spool:
            for page in self.fetch() if self.node.path is None else self._load():
                rows = ((place, row) for place, found in page for row in self.spread(found))
                spool.add(entry for place, row in rows if (entry := self._prepare(place, row)) is not None)
            yield from self._assemble_all(spool)

    def _load(self) -> Iterator[Iterable[tuple[str, Any]]]:
        from rageval_spec.reading.rows import read_rows

        for file in self._files():
            yield read_rows(file)

    def _files(self) -> list[Path]:
        path = self.context.resolve(self.node.path or "")
        if not path.is_dir():
            return [path]
        files = [file for file in sorted(path.rglob("*")) if _is_export(file)]
        if not files:
            raise DataError(f"{path}: this folder has no exported files ({', '.join(_FILES)})")
        return files

    def _prepare(self, place: str, found: Any) -> TraceRow | None:
        if not isinstance(found, Mapping):
            raise DataError(f"{place}: this row is not an object")
        entry = self.prepare(place, found)
        self._loose += entry is None
        return entry

    def _assemble_all(self, spool: RowSpool) -> Iterator[Trace | None]:
        for rows in spool.groups():
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
        if trace.started is None:
            return True
        began, node = parse_moment(trace.started, self.now), self.node
        is_early = node.since is not None and began < parse_moment(node.since, self.now)
        return not is_early and (node.until is None or began < parse_moment(node.until, self.now))


def _is_export(file: Path) -> bool:
    return file.name.removesuffix(".gz").removesuffix(".zst").endswith(_FILES) and file.is_file()


class RowSpool:
    """Rows by group, in a temporary file that is gone after `close`.

    A row with the group and the key of an earlier one replaces it, so that a page that is read twice changes nothing.
    """

    def __init__(self) -> None:
        """Create the file.

        Raises:
            RagevalError: the folder for temporary files cannot be written to.
        """
        import sqlite3

        self._folder = tempfile.TemporaryDirectory(prefix="rageval-")
        try:
            self._database = sqlite3.connect(Path(self._folder.name) / "rows.sqlite", check_same_thread=False)
            self._database.execute("pragma journal_mode = off")
            self._database.execute("pragma synchronous = off")
            self._database.execute(
                "create table rows (name text, key text, time text, content text, primary key (name, key))"
                " without rowid"
            )
        except sqlite3.Error as error:
            raise self._explain(error) from error
        self._times: dict[str, str] = {}

    def add(self, rows: Iterable[tuple[str, str, str, Mapping[str, Any]]]) -> None:
        """Add rows: the group, the key in it, a time that orders rows and groups, and JSON types.

        Raises:
            RagevalError: the disk is full.
        """
        import sqlite3

        try:
            self._database.executemany("insert or replace into rows values (?, ?, ?, ?)", map(self._pack, rows))
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._times)

    def groups(self) -> Iterator[list[dict[str, Any]]]:
        """The rows of each group in the order of their times; of all groups, the one with the latest rows first."""
        for name in sorted(self._times, key=lambda name: (self._times[name], name), reverse=True):
            found = self._database.execute("select content from rows where name = ? order by time, key", (name,))
            yield [json.loads(content) for (content,) in found]

    def close(self) -> None:
        """Delete the file."""
        self._database.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        """The spool itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Delete the file."""
        self.close()

    def _pack(self, row: tuple[str, str, str, Mapping[str, Any]]) -> tuple[str, str, str, str]:
        group, key, time, content = row
        name = _encode(group)
        earlier = self._times.get(name)
        if not earlier or (time and time < earlier):
            self._times[name] = time
        return name, _encode(key), time, json.dumps(content)

    def _explain(self, error: sqlite3.Error) -> RagevalError:
        return RagevalError(
            f"{self._folder.name}: cannot keep what was read: {error}; set TMPDIR to a folder with room"
        )


def _encode(text: str) -> str:
    """A text that SQLite can store: half surrogate pairs are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def list_row_pages(fetch: Callable[[str | None], tuple[list[Any], str | None]], where: str) -> Iterator[list[Any]]:
    """The pages that `fetch` gives for a cursor, None for the first, with the next cursor. An empty page is the last.

    Raises:
        ServiceError: a cursor came twice, or a page came twice under another cursor: the pages would never end.
    """
    from rageval_spec.endpoints.service import ServiceError, list_pages

    earlier: list[Any] = []
    for page in list_pages(fetch, where):
        if not page:
            return
        if page == earlier:
            raise ServiceError(f"{where}: gave the same rows twice in a row, so its pages would never end")
        yield page
        earlier = page
