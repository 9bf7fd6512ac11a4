"""Reads traces and datasets from Langfuse's API, or from the files that it exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from rageval_spec.data.trace import Trace
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse.connection import LangfuseConnection
from rageval_spec.exchange.shared.source import Source, WindowNode
from rageval_spec.exchange.shared.windows import format_moment, parse_moment
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.endpoints.service import Service
    from rageval_spec.exchange.langfuse.api import Api
    from rageval_spec.exchange.langfuse.traces import Places
    from rageval_spec.exchange.shared.spool import Spool
    from rageval_spec.plugin import InputFile

_LONGEST = timedelta(hours=1)
"""How long a trace may take; its later steps are not read."""
_FILES = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")


class LangfuseSourceNode(LangfuseConnection, WindowNode):
    """Which traces, or which dataset, to read from Langfuse."""

    path: str | None = Field(
        default=None,
        description="A file that Langfuse exported, or a folder of them: JSON, JSONL, CSV or Parquet, plain or `.gz`. "
        "Default: ask the API.",
    )
    dataset: str | None = Field(default=None, description="Read the items of this dataset instead of traces.")
    environment: str | None = Field(default=None, description="Only traces of this environment: `production`.")
    name: str | None = Field(default=None, description="Only traces with this name.")
    scores: bool = Field(default=True, description="Whether to read the scores of the traces, as feedback.")
    question: str | None = Field(
        default=None,
        description="The path of the question in a trace's input: `$.messages[0].content`. Default: the usual places.",
    )
    answer: str | None = Field(
        default=None, description="The path of the answer in a trace's output. Default: the usual places."
    )

    @field_validator("question", "answer")
    @classmethod
    def _check_path(cls, text: str | None) -> str | None:
        from rageval_spec.reading.json_path import parse_path

        if text is not None:
            parse_path(text)
        return text

    @model_validator(mode="after")
    def _check_choice(self) -> LangfuseSourceNode:
        if self.path is not None and self.dataset is not None:
            raise ValueError("name either a file or a dataset of the API, not both")
        return self


class LangfuseSource(Source[LangfuseSourceNode]):
    """Traces of Langfuse: of version 3 by its older endpoints, of later ones by observations."""

    node_type = LangfuseSourceNode
    summary = "Read traces and datasets of Langfuse, from its API or from exported files."
    examples = (
        "import langfuse --since 7d -o traces.jsonl",
        "import langfuse --dataset golden -o golden.jsonl",
        "import langfuse export/ -o traces.jsonl",
    )

    def __init__(self, node: LangfuseSourceNode, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self._service: Service | None = None
        self._skipped = 0
        self._loose = 0
        self._cut = 0

    def inputs(self) -> Sequence[InputFile]:
        """The exported files."""
        from rageval_spec.plugin import InputFile

        return [InputFile(file, ("path",)) for file in self._files()] if self.node.path is not None else ()

    def read(self) -> Iterator[Trace]:
        """The traces, newest first, or the items of the dataset in its order.

        Raises:
            UsageError: there are no keys.
            DataError: a row has no id, a file cannot be read, or there is no such dataset.
            ServiceError: Langfuse does not answer.
        """
        if self.node.dataset is not None:
            yield from self._read_items(self.node.dataset)
            return
        from rageval_spec.exchange.shared.spool import Spool

        with Spool() as spool:
            if self.node.path is None:
                self._fetch(spool)
            else:
                self._load(spool)
            yield from self._make_traces(spool)

    def remarks(self) -> Sequence[str]:
        """How many traces have no question, and how many scores belong to no trace that was read."""
        found = []
        if self._skipped:
            found.append(
                f"{count_noun(self._skipped, 'trace')} without a question in the input left out; "
                "if the question has an unusual place, name it with --question"
            )
        if self._cut:
            found.append(
                f"{count_noun(self._cut, 'trace')} without a beginning in what was read left out; read from earlier on"
            )
        if self._loose:
            found.append(f"{count_noun(self._loose, 'score')} of sessions or of traces that were not read left out")
        return found

    def close(self) -> None:
        """Close the connections."""
        if self._service is not None:
            self._service.close()

    def _places(self) -> Places:
        from rageval_spec.exchange.langfuse.traces import Places
        from rageval_spec.reading.json_path import parse_path

        question, answer = (text and parse_path(text) for text in (self.node.question, self.node.answer))
        return Places(question or None, answer or None)

    def _api(self) -> Api:
        from rageval_spec.exchange.langfuse.api import Api
        from rageval_spec.exchange.langfuse.connection import connect

        if self._service is None:
            self._service = connect(self.node, self.context.name)
        return Api(self._service, self.context.name)

    def _window(self) -> dict[str, str]:
        """The window to ask for. It ends later than `until`, for the last steps of a trace that began before it."""
        now = datetime.now(UTC)
        window = {}
        if self.node.since is not None:
            window["from"] = format_moment(parse_moment(self.node.since, now))
        if self.node.until is not None:
            window["to"] = format_moment(parse_moment(self.node.until, now) + _LONGEST)
        return window

    def _fetch(self, spool: Spool) -> None:
        """Put everything in the window into the spool: observations first, then the scores of their traces."""
        api, window = self._api(), self._window()
        filters = {"environment": self.node.environment} if self.node.environment else {}
        for number, page in enumerate(api.observations(window, filters), 1):
            self._add(spool, ((f"{self.context.name}: page {number}, row {i}", row) for i, row in enumerate(page, 1)))
        if self.node.scores and len(spool):
            for number, page in enumerate(api.scores(window), 1):
                rows = (
                    (f"{self.context.name}: page {number} of the scores, row {i}", row) for i, row in enumerate(page, 1)
                )
                self._add(spool, rows)

    def _load(self, spool: Spool) -> None:
        from rageval_spec.reading.rows import read_rows

        for file in self._files():
            self._add(spool, read_rows(file))

    def _files(self) -> list[Path]:
        path = self.context.resolve(self.node.path or "")
        if not path.is_dir():
            return [path]
        files = [file for file in sorted(path.rglob("*")) if _is_export(file)]
        if not files:
            raise DataError(f"{path}: this folder has no exported files ({', '.join(_FILES)})")
        return files

    def _add(self, spool: Spool, rows: Iterable[tuple[str, Any]]) -> None:
        spool.add(entry for place, row in rows if (entry := self._prepare(place, row)) is not None)

    def _prepare(self, place: str, found: Any) -> tuple[str, str, str, Mapping[str, Any]] | None:
        from rageval_spec.exchange.langfuse.rows import normalise, tell_kind, trace_of
        from rageval_spec.exchange.shared.payloads import clean, read_time, write_time

        if not isinstance(found, Mapping):
            raise DataError(f"{place}: this is not an object with the fields of an observation, a trace or a score")
        row = normalise(found, place)
        kind, trace_id = tell_kind(row), trace_of(row)
        if trace_id is None:
            self._loose += 1
            return None
        time = read_time(row.get("starttime" if kind == "observation" else "timestamp"))
        # Scores can come much later than what they judge, and must not make a trace seem newer.
        return trace_id, f"{kind}:{row['id']}", "" if kind == "score" else write_time(time) or "", clean(row)

    def _make_traces(self, spool: Spool) -> Iterator[Trace]:
        from rageval_spec.exchange.langfuse.traces import is_cut, make_trace

        places, made = self._places(), 0
        for rows in spool.groups():
            trace = make_trace(rows, places)
            if trace is None or is_cut(rows):
                self._count_unusable(rows)
            elif self._is_wanted(trace):
                made += 1
                yield trace
            if made == self.node.limit:
                return

    def _count_unusable(self, rows: Sequence[Mapping[str, Any]]) -> None:
        from rageval_spec.exchange.langfuse.rows import tell_kind
        from rageval_spec.exchange.langfuse.traces import is_cut

        if all(tell_kind(row) == "score" for row in rows):
            self._loose += len(rows)
        elif is_cut(rows):
            self._cut += 1
        else:
            self._skipped += 1

    def _is_wanted(self, trace: Trace) -> bool:
        """Whether a trace passes the filters that exported files, or older endpoints, do not know."""
        node = self.node
        if node.name is not None and trace.metadata.get("trace_name") != node.name:
            return False
        if node.environment is not None and trace.metadata.get("environment") not in (None, node.environment):
            return False
        now = datetime.now(UTC)
        return trace.started is None or not (
            (node.since is not None and parse_moment(trace.started, now) < parse_moment(node.since, now))
            or (node.until is not None and parse_moment(trace.started, now) >= parse_moment(node.until, now))
        )

    def _read_items(self, dataset: str) -> Iterator[Trace]:
        from rageval_spec.exchange.langfuse.items import read_item

        places, made = self._places(), 0
        for page in self._api().dataset_items(dataset):
            for row in page:
                trace = read_item(row, dataset, places, self.context.name)
                if trace is None:
                    self._skipped += 1
                else:
                    made += 1
                    yield trace
                if made == self.node.limit:
                    return


def _is_export(file: Path) -> bool:
    return file.name.removesuffix(".gz").removesuffix(".zst").endswith(_FILES) and file.is_file()
