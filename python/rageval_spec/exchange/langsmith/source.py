"""Reads traces and datasets from LangSmith's API, or from exported files.

Runs become traces. The examples of datasets become questions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from rageval_spec.data.traces import Feedback, Trace, TraceLink
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.connections import (
    ABSENT,
    Connection,
    ToolApi,
    describe_key,
    describe_url,
    read_object,
    require_key,
)
from rageval_spec.exchange.shared.delivery import make_uuid
from rageval_spec.exchange.shared.row_groups import Rows, SpooledNode, SpooledSource, TraceRow, make_item
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import Span, make_span, nanoseconds_of
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded import values
from rageval_spec.recorded.questions_and_answers import RecordedPaths

FIELDS = (
    "id", "name", "run_type", "status", "start_time", "end_time", "error", "inputs", "outputs", "extra",
    "parent_run_ids", "trace_id", "thread_id", "tags", "prompt_tokens", "completion_tokens", "total_cost",
    "feedback_stats", "reference_example_id",
)  # fmt: skip
"""What is read of each run, as the newer endpoint calls it, in lower case."""
_PAGE, _OLD_PAGE, _LIST = 1000, 100, 100
_RUNS_AT_ONCE = 50
_BEGINNING = "2000-01-01T00:00:00Z"
"""Before the first run of all; the newer endpoint gives only the last day without a beginning."""


class LangSmithConnection(Connection):
    url_variables = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
    usual_url = "https://api.smith.langchain.com"
    url: str | None = describe_url("LangSmith's API", url_variables, usual_url)
    api_key: Secret | None = describe_key("API key", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
    workspace: str | None = Field(
        default=None,
        description="The id of the workspace, if the key has several. Default: `$LANGSMITH_WORKSPACE_ID`.",
    )


def split_url(url: str) -> tuple[str, str]:
    """The URL of the host, and what the older paths begin with: a self-hosted API is below `/api` or `/api/v1`."""
    for suffix in ("/api/v1", "/api"):
        if urlsplit(url).path.endswith(suffix):
            return url[: -len(suffix)], suffix
    return url, ""


class LangSmithApi(ToolApi):
    """One workspace; asks the older endpoint for runs where the newer one is absent."""

    product = "LangSmith"
    following = ("next_cursor", "cursors.next")

    def __init__(self, node: LangSmithConnection, where: str) -> None:
        host, self.older = split_url(node.find_url())
        headers = {"X-Api-Key": require_key(node.api_key, where, "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")}
        if workspace := node.workspace or os.environ.get("LANGSMITH_WORKSPACE_ID", ""):
            headers["X-Tenant-Id"] = Secret(workspace, workspace)
        super().__init__(host, where, headers)
        self.is_old = False

    def find_project(self, name: str) -> str:
        return self._find("sessions", name, "tracing project")

    def find_dataset(self, name: str) -> str:
        return self._find("datasets", name, "dataset")

    def runs(self, project: str, window: Mapping[str, str]) -> Iterator[list[Any]]:
        """Pages of the runs of a project that began in the window: `from` and `to`, which may be absent."""
        asked: dict[str, Any] = {
            "project_ids": [project],
            "min_start_time": window.get("from", _BEGINNING),
            "selects": [*map(str.upper, FIELDS), "PROJECT_ID"],
            "page_size": _PAGE,
        }
        if "to" in window:
            asked["max_start_time"] = window["to"]
        try:
            yield from self.pages("/api/v2/runs/query", asked, "items", posts=True)
        except ServiceError as error:
            if self.is_old or error.status not in ABSENT:
                raise
            self.is_old = True
            yield from self._old_runs(project, window)

    def feedback(self, runs: Sequence[str]) -> Iterator[Any]:
        for begin in range(0, len(runs), _RUNS_AT_ONCE):
            yield from self._list("/feedback", [("run", run) for run in runs[begin : begin + _RUNS_AT_ONCE]])

    def examples(self, dataset: str) -> Iterator[Any]:
        yield from self._list("/examples", [("dataset", dataset)])

    def _old_runs(self, project: str, window: Mapping[str, str]) -> Iterator[list[Any]]:
        asked: dict[str, Any] = {"session": [project], "limit": _OLD_PAGE}
        asked["select"] = [*(name for name in FIELDS if name != "thread_id"), "session_id", "parent_run_id"]
        asked |= {name: window[end] for end, name in (("from", "start_time"), ("to", "end_time")) if end in window}
        yield from self.pages(f"{self.older}/runs/query", asked, "runs", posts=True)

    def _find(self, path: str, name: str, what: str) -> str:
        for row in self._read_list(f"/{path}", [("name", name), ("limit", "1")]):
            if isinstance(row, Mapping) and row.get("name") == name and isinstance(row.get("id"), str):
                return str(row["id"])
        raise DataError(f"{self.where}: there is no {what} '{name}' in this workspace")

    def _list(self, path: str, asked: Sequence[tuple[str, str]]) -> Iterator[Any]:
        """The rows of a path with offsets; a row that comes again ends it, for servers that ignore the offset."""
        offset, seen = 0, set[str]()
        while True:
            rows = self._read_list(path, [*asked, ("limit", str(_LIST)), ("offset", str(offset))])
            fresh = [row for row in rows if not isinstance(row, Mapping) or str(row.get("id")) not in seen]
            yield from fresh
            seen.update(str(row.get("id")) for row in fresh if isinstance(row, Mapping))
            if len(rows) < _LIST or not fresh:
                return
            offset += len(rows)

    def _read_list(self, path: str, asked: Sequence[tuple[str, str]]) -> list[Any]:
        found = self.service.get(f"{self.older}{path}", asked)
        if not isinstance(found, list):
            raise ServiceError(f"{self.where}: {path}: the reply is not a list, as LangSmith's replies are")
        return found


TOOL = "langsmith"


class LangSmithSourceNode(LangSmithConnection, SpooledNode):
    project: str | None = Field(default=None, description="Read the traces of this tracing project.")
    feedback: bool = Field(default=True, description="Whether to read the feedback on the answers.")
    one_of = ("project", "dataset", "path")


class LangSmithSource(SpooledSource[LangSmithSourceNode]):
    node_type = LangSmithSourceNode
    summary = "Read traces and datasets of LangSmith, from its API or from exported files."
    examples = (
        "import langsmith --project support --since 7d -o traces.jsonl",
        "import langsmith --dataset golden -o golden.jsonl",
        "import langsmith runs.jsonl -o traces.jsonl",
    )
    tool = TOOL
    loose = "feedback row"
    api: LangSmithApi
    api_type = LangSmithApi

    def __init__(self, node: LangSmithSourceNode, context: Any) -> None:
        super().__init__(node, context)
        self._trace_of: dict[str, str] = {}
        self._examples = 0

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """Everything in the window: runs first, then the feedback on those that have any."""
        project = self.api.find_project(self.node.project or "")
        for number, page in enumerate(self.api.runs(project, self.window), 1):
            yield self.place_rows(number, page)
            said = [row for row in page if isinstance(row, Mapping) and row.get("feedback_stats")]
            self._trace_of |= {str(row.get("id")): str(row.get("trace_id") or row.get("id")) for row in said}
        if self.node.feedback and self._trace_of:
            yield ((f"{TOOL}: feedback", row) for row in self.api.feedback([*self._trace_of]))

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        for row in self.api.examples(self.api.find_dataset(dataset)):
            if not isinstance(row, Mapping):
                raise DataError(f"{TOOL}: dataset '{dataset}': an example is not an object")
            yield read_example(row, self.node.places, dataset)

    def prepare(self, place: str, row: Mapping[str, Any]) -> TraceRow | None:
        """A run or feedback under its trace; in files, an example stands for itself."""
        found = {key: value for key, value in row.items() if value is not None and value != ""}
        identity, trace_id = values.read_text(found.get("id")), values.read_text(found.get("trace_id"))
        if is_feedback(found):
            run_id = values.read_text(found.get("run_id")) or ""
            trace_id = trace_id or self._trace_of.get(run_id, run_id)
            key = f"feedback:{identity or place}"
            return TraceRow(trace_id, key, None, values.clean(found)) if trace_id else None
        if "run_type" not in found:
            # Groups without a time leave in the descending order of their names: the first example comes first.
            self._examples += 1
            return TraceRow(f"example {10**12 - self._examples}", "example", None, values.clean(found))
        if identity is None:
            raise DataError(f"{place}: there is no 'id' in this run")
        time = nanoseconds_of(found.get("start_time")) or None
        return TraceRow(trace_id or identity, f"run:{identity}", time, values.clean(found))

    def assemble(self, rows: Rows) -> Trace | None:
        """The trace of some runs, or the question of an example."""
        if "run_type" not in rows[0] and len(rows) == 1:
            return read_example(rows[0], self.node.places, self.node.path or "")
        return make_trace(rows, self.node.places, self.node.project)

    def is_step(self, row: Mapping[str, Any]) -> bool:
        return not is_feedback(row)

    def is_cut(self, rows: Rows) -> bool:
        return not any(_is_root(row) for row in rows if not is_feedback(row))


Row = Mapping[str, Any]
_KINDS = {name: name for name in ("retriever", "llm", "tool", "embedding", "prompt", "parser")}
_PROJECT = ("session_id", "project_id")
_CONVERSATION = ("thread_id", "session_id", "conversation_id")
"""LangSmith's names for a conversation in the metadata of a run."""


def is_feedback(row: Row) -> bool:
    return "key" in row and "run_id" in row


def _is_ours(row: Row) -> bool:
    """Whether this program sent a feedback row: the id follows from what it is about."""
    return row.get("id") == make_uuid("feedback", str(row["run_id"]), str(row["key"]))


def make_trace(rows: Sequence[Row], places: RecordedPaths, project: str | None) -> Trace | None:
    """The trace of some runs, and of feedback on them; None if its root has no question, or is not among them."""
    runs = [row for row in rows if not is_feedback(row)]
    root = next((row for row in runs if _is_root(row)), None)
    if root is None:
        return None
    spans = {id(row): _make_span(row, str(root["id"])) for row in runs}
    trace = SpanReader(TOOL, places).read_question(spans[id(root)], [*spans.values()])
    if trace is None:
        return None
    feedback = tuple(_read_feedback(row) for row in rows if is_feedback(row) and not _is_ours(row))
    return replace(trace, link=_make_link(root, project), query_id="", feedback=feedback)


def _make_span(row: Row, trace_id: str) -> Span:
    about, parents = _metadata(row), row.get("parent_run_ids")
    above = row.get("parent_run_id") or (parents[-1] if isinstance(parents, list) and parents else None)
    return make_span(
        trace_id,
        str(row.get("id")),
        values.read_text(above),
        values.read_text(row.get("name")) or "",
        nanoseconds_of(row.get("start_time")),
        nanoseconds_of(row.get("end_time")),
        values.read_text(row.get("error")),
        kind=_KINDS.get(str(row.get("run_type", "")).lower(), "chain"),
        input=row.get("inputs"),
        output=row.get("outputs") or None,
        input_tokens=values.read_count(row.get("prompt_tokens")),
        output_tokens=values.read_count(row.get("completion_tokens")),
        cost=values.read_number(row.get("total_cost")),
        model=_first(about.get(key) for key in ("ls_model_name", "model")),
        session=_first((row.get("thread_id"), *(about.get(key) for key in _CONVERSATION))),
        user=values.read_text(about.get("user_id")),
        metadata=_gather_metadata(row) if _is_root(row) else None,
    )


def _make_link(root: Row, project: str | None) -> TraceLink:
    """Where a run is: feedback names the project, LangSmith's `session_id`, as well."""
    session = _first(root.get(key) for key in _PROJECT)
    told = {"session_id": session, "started": values.write_time(values.read_time(root.get("start_time")))}
    others = {key: text for key, text in told.items() if text is not None}
    return TraceLink(TOOL, str(root["id"]), project=project, others=others)


def read_example(row: Row, places: RecordedPaths, dataset: str) -> Trace | None:
    """The question of an example, under its id, with its outputs as the gold answer; None without a question."""
    inputs = _nested(row, "inputs")
    question = places.question(inputs)
    if not question:
        return None
    identity = values.read_text(row.get("id")) or make_uuid("example", dataset, question)
    link = TraceLink(TOOL, values.read_text(row.get("source_run_id")) or identity, others={"dataset": dataset})
    return make_item(link, identity, question, places, inputs, _nested(row, "outputs"), row.get("metadata"))


def _nested(row: Row, part: str) -> Any:
    """The inputs or outputs of an example; in CSV, each of their keys can be a column, such as `input_question`."""
    if part in row:
        return values.open_text(row[part])
    beginnings = tuple(f"{name}{mark}" for name in (part, part[:-1]) for mark in (".", "_"))
    named = [(key, start) for key in row for start in beginnings if key.startswith(start)]
    return {key.removeprefix(start): row[key] for key, start in named} or (dict(row) if part == "inputs" else None)


def _is_root(row: Row) -> bool:
    return not row.get("parent_run_id") and not row.get("parent_run_ids")


def _metadata(row: Row) -> Mapping[str, Any]:
    extra = values.open_text(row.get("extra"))
    return read_object(extra.get("metadata") if isinstance(extra, Mapping) else row.get("metadata"))


def _first(named: Iterable[Any]) -> str | None:
    return next((found for one in named if (found := values.read_text(one))), None)


def _gather_metadata(root: Row) -> dict[str, Any]:
    hidden = {"ls_provider", "ls_model_name", "ls_model_type", "ls_method", "ls_run_depth"}
    kept: dict[str, Any] = values.clean({key: value for key, value in _metadata(root).items() if key not in hidden})
    if name := values.read_text(root.get("name")):
        kept.setdefault("trace_name", name)
    if isinstance(tags := values.open_text(root.get("tags")), list) and tags:
        kept.setdefault("tags", values.clean(tags))
    return kept


def _read_feedback(row: Row) -> Feedback:
    score, value = row.get("score"), row.get("value")
    number = float(score) if isinstance(score, bool) else values.read_number(score)
    if number is None and not isinstance(value, str):
        number = values.read_number(value)
    source = read_object(row.get("feedback_source"))
    said_by = {"app": "annotator", "model": "program", "auto_eval": "program"}.get(str(source.get("type")), "unknown")
    return Feedback(
        values.read_text(row.get("key")) or "feedback",
        number,
        value if isinstance(value, str) and value else None,
        values.read_text(row.get("comment")),
        said_by,  # type: ignore[arg-type]
        values.read_text(source.get("user_id")),
    )
