"""Reads the records of an app, or the ground truths of a dataset, from TruLens's database.

TruLens keeps records as spans of OpenTelemetry, one row of `trulens_events` each. Before that, it kept them in tables
of its own, which are read too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import Field

from rageval_spec.data.traces import Feedback, Trace, TraceLink
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.exchange.shared.connections import explain_unknown, read_object
from rageval_spec.exchange.shared.contracts import WindowNode
from rageval_spec.exchange.shared.row_groups import SpanSource
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import ERROR, UNSET, Span, format_moment
from rageval_spec.recorded.answers_and_steps import find_end
from rageval_spec.recorded.questions_and_answers import find_answer, find_question
from rageval_spec.recorded.values import dump_text, load_json, read_count, read_number
from rageval_spec.store.disk import InputFile

EVENTS, RECORDS, FEEDBACKS = "trulens_events", "trulens_records", "trulens_feedbacks"
DATASETS, TRUTHS = "trulens_dataset", "trulens_ground_truth"
COLUMNS: Mapping[str, Sequence[str]] = {
    EVENTS: (
        "event_id", "record", "record_attributes", "record_type", "resource_attributes", "start_timestamp", "timestamp",
        "trace",
    ),
    RECORDS: ("record_id", "app_id", "input", "output", "tags", "ts", "cost_json", "perf_json"),
    FEEDBACKS: (
        "feedback_result_id", "record_id", "feedback_definition_id", "last_ts", "status", "error", "calls_json",
        "result", "name", "cost_json", "multi_result",
    ),
    DATASETS: ("dataset_id", "dataset_json"),
    TRUTHS: ("ground_truth_id", "dataset_id", "ground_truth_json"),
}  # fmt: skip
"""The columns that are read or written, by table."""
_PATIENCE = 30.0
"""Seconds to wait while another program writes."""
COPY_SUFFIX = ".before-rageval"


@contextmanager
def open_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, which cannot be changed through this connection."""
    with _explain(path), closing(_connect(path, "ro")) as connection:
        yield connection


@contextmanager
def open_to_write(path: Path) -> Iterator[sqlite3.Connection]:
    """The database in a transaction that holds from the beginning, and is undone if the block fails."""
    with _explain(path), closing(_connect(path, "rw")) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


def copy_database(path: Path) -> Path:
    """The path of a copy of the database as it was before this program first wrote to it; the copy is made once."""
    copy = path.with_name(path.name + COPY_SUFFIX)
    if copy.exists():
        return copy
    unfinished = copy.with_name(copy.name + ".part")
    try:
        unfinished.unlink(missing_ok=True)
        with (
            _explain(path),
            closing(_connect(path, "ro")) as connection,
            closing(sqlite3.connect(unfinished)) as target,
        ):
            connection.backup(target)
        unfinished.replace(copy)
    except OSError as error:
        raise RagevalError(f"{copy}: the copy cannot be written: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return copy


def list_tables(connection: sqlite3.Connection, path: Path) -> frozenset[str]:
    """Those of the tables of `COLUMNS` that the database has."""
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    known = frozenset(found & COLUMNS.keys())
    if not known & {EVENTS, RECORDS}:
        raise DataError(f"{path}: not a database of TruLens: it has neither {EVENTS} nor {RECORDS}")
    for table in sorted(known):
        there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if missing := [column for column in COLUMNS[table] if column not in there]:
            raise DataError(
                f"{path}: the table {table} has no column {missing[0]!r}: it is of a version of TruLens that is not "
                "supported; open it with TruLens 2.16, whose migrate_database() brings it up to date"
            )
    return known


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    if path.is_dir():
        raise UsageError(f"{path}: this is a folder; name the SQLite file in it")
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=_PATIENCE)


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            hint = "another program is writing to it; try again when it has finished"
            raise DataError(f"{path}: {hint}") from error
        raise DataError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path}: not a SQLite database, or a damaged one: {error}") from error


TOOL = "trulens"


class TrulensSourceNode(WindowNode):
    path: str = Field(description="TruLens's SQLite file, such as `default.sqlite`.")
    app: str | None = Field(default=None, min_length=1, description="Only records of this app, by name. Default: all.")
    dataset: str | None = Field(
        default=None, min_length=1, description="The dataset whose ground truths to read in place of records, by name."
    )
    excludes = (("dataset", "since", "until", "app"),)


class TrulensSource(SpanSource[TrulensSourceNode]):
    """Reads records newest first: those kept as spans, then those of the tables of earlier versions."""

    node_type = TrulensSourceNode
    summary = "Read records, or the ground truths of a dataset, from TruLens's SQLite file."
    examples = (
        "import trulens default.sqlite --app support --since 7d -o traces.jsonl",
        "import trulens default.sqlite --dataset golden -o golden.jsonl",
    )

    tool = TOOL

    def inputs(self) -> Sequence[InputFile]:
        return (InputFile(self._path, ("path",)),)

    def read_all(self) -> Iterator[Trace]:
        with open_to_read(self._path) as connection:
            tables = list_tables(connection, self._path)
            if self.node.dataset is not None:
                if not tables >= {DATASETS, TRUTHS}:
                    raise DataError(f"{self._path}: it has no datasets: it is of a version of TruLens before 1.0")
                yield from read_truths(connection, self._path, self.node.dataset)
                return
            if self.node.app is not None:
                self._check_app(self.node.app, connection, tables)
            if EVENTS in tables:
                yield from read_events(connection, self._path, self.node, self.reader)
            if RECORDS in tables:
                yield from read_records(connection, self._path, self.node)

    @property
    def _path(self) -> Path:
        return self.context.resolve(self.node.path)

    def _check_app(self, app: str, connection: sqlite3.Connection, tables: Collection[str]) -> None:
        queries = [query for table, query in _APPS.items() if table in tables]
        apps = {str(name) for query in queries for (name,) in connection.execute(query) if name is not None}
        if app not in apps:
            raise explain_unknown(str(self._path), "app", app, sorted(apps))


SCOPE = "ai.observability."
EVAL_ROOT = f"{SCOPE}eval_root"
OURS = "rageval-spec"
SOURCE_MARK = f"{SCOPE}eval.metadata.source"
"""The attribute that marks feedback written by this program; it is not read back."""
TIME = "%Y-%m-%d %H:%M:%S.%f"
"""How SQLite holds TruLens's times, which are those of the zone of the machine that wrote them."""
_KINDS = {
    "record_root": "CHAIN", "retrieval": "RETRIEVER", "generation": "LLM", "reranking": "RERANKER", "agent": "AGENT",
    "tool": "TOOL", "MCP": "TOOL", "guardrail": "GUARDRAIL",
}  # fmt: skip
"""OpenInference's kind of span, by TruLens's type. Other types are chains of no meaning here."""
_EVALUATIONS = frozenset({"eval", "eval_root", "eval_decision"})
_COSTS = {
    "cost.num_prompt_tokens": "llm.token_count.prompt",
    "cost.num_completion_tokens": "llm.token_count.completion",
    "cost.model": "llm.model_name",
}
_RECORD = f"json_extract(record_attributes, '$.\"{SCOPE}record_id\"')"
_TYPE = f"json_extract(record_attributes, '$.\"{SCOPE}span_type\"')"
_APP = f"json_extract(resource_attributes, '$.\"{SCOPE}app_name\"')"
_APPS = {
    EVENTS: f"SELECT DISTINCT {_APP} FROM trulens_events",
    RECORDS: "SELECT DISTINCT app_name FROM trulens_records JOIN trulens_apps USING (app_id)",
}
"""The names of the apps in each table."""


_ROWS = f"""
    SELECT rageval_roots.id, event_id, record, record_attributes, start_timestamp, timestamp, trace
    FROM trulens_events CROSS JOIN rageval_roots ON rageval_roots.id = {_RECORD}
    WHERE json_valid(record_attributes) ORDER BY place, start_timestamp, event_id
"""
"""All events of the records in `rageval_roots`. With CROSS JOIN, SQLite reads events once and looks records up."""


def _make_filter(
    node: TrulensSourceNode, first: str, column: str, write: Callable[[datetime], Any], app: str
) -> tuple[str, list[Any]]:
    """The condition for the node's window and app, and its values; `write` gives a moment as the column holds it."""
    moments = zip((">=", "<"), node.window, strict=True)
    wanted = [(f"{column} {sign} ?", write(moment)) for sign, moment in moments if moment is not None]
    wanted += [] if node.app is None else [(f"{app} = ?", node.app)]
    return " AND ".join([first, *(condition for condition, _ in wanted)]), [value for _, value in wanted]


def read_events(
    connection: sqlite3.Connection, path: Path, node: TrulensSourceNode, reader: SpanReader
) -> Iterator[Trace]:
    """The records in the window as traces, newest first."""
    first = f"json_valid(record_attributes) AND {_TYPE} = 'record_root'"
    condition, values = _make_filter(node, first, "start_timestamp", _write_time, _APP)
    connection.execute("CREATE TEMP TABLE rageval_roots (place INTEGER PRIMARY KEY, id TEXT UNIQUE)")
    roots = f"""
        INSERT INTO rageval_roots (id) SELECT {_RECORD} AS id FROM trulens_events
        WHERE {condition} AND id IS NOT NULL
        GROUP BY id ORDER BY max(start_timestamp) DESC, id LIMIT ?
    """
    connection.execute(roots, [*values, node.limit or -1])
    rows = connection.execute(_ROWS)
    for record_id, group in groupby(rows, key=lambda row: row[0]):
        yield from _read_event_record(str(record_id), [_load_event(row, path) for row in group], path, reader)


def list_roots(connection: sqlite3.Connection) -> dict[str, str]:
    """The event of the root of each record, by the record's id. Reads all events once."""
    query = f"""
        SELECT {_RECORD}, event_id FROM trulens_events
        WHERE json_valid(record_attributes) AND {_TYPE} = 'record_root' ORDER BY start_timestamp, event_id
    """
    return {str(record_id): str(event_id) for record_id, event_id in connection.execute(query)}


def find_root(connection: sqlite3.Connection, event_id: str) -> dict[str, Any] | None:
    """The attributes, resource and trace of a record's root; None if it is not there any more."""
    parts = ("record_attributes", "resource_attributes", "trace")
    query = f"SELECT {', '.join(parts)} FROM trulens_events WHERE event_id = ?"
    row = connection.execute(query, [event_id]).fetchone()
    return None if row is None else dict(zip(parts, map(json.loads, row), strict=True))


_Event = tuple[str, dict[str, Any], dict[str, Any], str, str, dict[str, Any]]
"""An event's id, record, attributes, start, end and trace."""


def _load_event(row: Sequence[Any], path: Path) -> _Event:
    _, event_id, record, attributes, start, end, trace = row
    try:
        loaded = [json.loads(text) for text in (record, attributes, trace)]
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: the event {event_id} holds something that is not JSON") from error
    if not all(isinstance(one, dict) for one in loaded):
        raise DataError(f"{path}: the event {event_id} holds JSON that is not an object")
    return str(event_id), loaded[0], loaded[1], str(start), str(end), loaded[2]


def _read_event_record(record_id: str, events: Sequence[_Event], path: Path, reader: SpanReader) -> Iterator[Trace]:
    spans, feedback = list[Span](), list[Feedback]()
    root: Mapping[str, Any] = {}
    for event_id, record, attributes, start, end, place in events:
        kind = attributes.get(f"{SCOPE}span_type")
        if kind in _EVALUATIONS:
            if kind == "eval_root" and attributes.get(SOURCE_MARK) != OURS:
                feedback.append(_read_event_feedback(attributes))
            continue
        if kind == "record_root":
            root = attributes
        parent = str(place.get("parent_id") or "") or None
        spans.append(
            Span(
                str(place.get("trace_id") or record_id),
                str(place.get("span_id") or event_id),
                parent,
                str(record.get("name") or ""),
                _read_time(start),
                _read_time(end),
                _rename(attributes),
                status=ERROR if "ERROR" in str(record.get("status")) else UNSET,
                message=dump_text(attributes.get(f"{SCOPE}record_root.error")) or "",
                place=f"{path}: event {event_id}",
            )
        )
    for trace in reader.read(spans):
        others = {"app_version": str(root[f"{SCOPE}app_version"])} if root.get(f"{SCOPE}app_version") else {}
        link = TraceLink(TOOL, record_id, None, dump_text(root.get(f"{SCOPE}app_name")), others)
        truth = dump_text(root.get(f"{SCOPE}record_root.ground_truth_output"))
        references = trace.references if truth is None else (truth,)
        said = (*trace.feedback, *feedback)
        named = replace(trace, link=link, query_id=record_id, version=others.get("app_version"))
        yield replace(named, references=references, feedback=said)
        return  # a record of TruLens is one question


def _rename(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, with OpenInference's names for those of TruLens that have a meaning here."""
    own = {key.removeprefix(SCOPE): value for key, value in attributes.items() if key.startswith(SCOPE)}
    kind = str(own.get("span_type"))
    named = {key: value for key, value in attributes.items() if not key.startswith(SCOPE)}
    if kind in _KINDS:
        named["openinference.span.kind"] = _KINDS[kind]
    arguments = {
        key.removeprefix("call.kwargs."): value for key, value in own.items() if key.startswith("call.kwargs.")
    }
    ends = {"input.value": arguments or None, "output.value": own.get("call.return")}
    if kind == "record_root":
        ends = {"input.value": own.get("record_root.input"), "output.value": own.get("record_root.output")}
    elif kind == "retrieval":
        contexts = own.get("retrieval.retrieved_contexts")
        ends = {"input.value": own.get("retrieval.query_text"), "output.value": contexts}
    named |= {key: value for key, value in ends.items() if value is not None}
    named |= {name: own[key] for key, name in _COSTS.items() if own.get(key) is not None}
    if own.get("cost.cost") is not None and own.get("cost.cost_currency", "USD") == "USD":
        named["llm.cost.total"] = own["cost.cost"]
    if own.get("conversation_id"):
        named["session.id"] = own["conversation_id"]
    return named


def _read_event_feedback(attributes: Mapping[str, Any]) -> Feedback:
    comment = attributes.get(f"{SCOPE}eval.explanation") or attributes.get(f"{EVAL_ROOT}.explanation")
    return Feedback(
        dump_text(attributes.get(f"{EVAL_ROOT}.metric_name")) or "feedback",
        read_number(attributes.get(f"{EVAL_ROOT}.score")),
        None,
        dump_text(comment) or dump_text(attributes.get(f"{EVAL_ROOT}.error")),
        "program",
    )


def _write_time(moment: datetime) -> str:
    return moment.astimezone().replace(tzinfo=None).strftime(TIME)


def _read_time(text: str) -> int:
    """Nanoseconds since 1970; 0 if the text is no time."""
    try:
        moment = datetime.fromisoformat(text)
        return int(moment.astimezone().timestamp() * 1_000_000) * 1000
    except (ValueError, OverflowError, OSError):
        return 0


DEFINITION = "rageval-spec"
"""The definition that feedback written by this program names; it is not read back."""
_ROWS_AT_ONCE = 500


def read_records(connection: sqlite3.Connection, path: Path, node: TrulensSourceNode) -> Iterator[Trace]:
    """The records in the window as traces, newest first."""
    condition, values = _make_filter(node, "1", "ts", datetime.timestamp, "app_name")
    query = f"""
        SELECT record_id, input, output, tags, ts, cost_json, perf_json, app_name, app_version
        FROM trulens_records LEFT JOIN trulens_apps USING (app_id)
        WHERE {condition} ORDER BY ts DESC, record_id LIMIT ?
    """
    rows = connection.execute(query, [*values, node.limit or -1])
    while block := rows.fetchmany(_ROWS_AT_ONCE):
        feedback = _read_feedback(connection, [row[0] for row in block])
        for row in block:
            yield _read_record(row, tuple(feedback.get(row[0], ())), path)


def read_truths(connection: sqlite3.Connection, path: Path, dataset: str) -> Iterator[Trace]:
    """The ground truths of a dataset as traces without an answer."""
    names: dict[str, str] = {}
    for dataset_id, text in connection.execute("SELECT dataset_id, dataset_json FROM trulens_dataset"):
        found = load_json(text)
        names[str(found.get("name")) if isinstance(found, Mapping) else dataset_id] = dataset_id
    if dataset not in names:
        raise explain_unknown(str(path), "dataset", dataset, sorted(names))
    query = "SELECT ground_truth_id, ground_truth_json FROM trulens_ground_truth WHERE dataset_id = ? ORDER BY rowid"
    for truth_id, text in connection.execute(query, [names[dataset]]):
        yield _read_truth(truth_id, load_json(text), dataset, path)


def _read_record(row: tuple[Any, ...], feedback: tuple[Feedback, ...], path: Path) -> Trace:
    record_id, asked, said, tags, ts, cost_text, perf_text, app, version = row
    question = find_question(asked) or dump_text(asked)
    if question is None:
        raise DataError(f"{path}: the record {record_id} has no input")
    cost, perf = read_object(load_json(cost_text)), read_object(load_json(perf_text))
    others = {"app_version": str(version)} if version else {}
    known = {"tags": tags} if tags and tags != "-" else {}
    return Trace(
        TraceLink(TOOL, str(record_id), None, app, others),
        question,
        query_id=str(record_id),
        answer=find_answer(said),
        seconds=_measure(perf),
        input_tokens=read_count(cost.get("n_prompt_tokens")),
        output_tokens=read_count(cost.get("n_completion_tokens")),
        cost=read_number(cost.get("cost")) if cost.get("cost_currency", "USD") == "USD" else None,
        started=format_moment(datetime.fromtimestamp(ts, UTC)) if isinstance(ts, float | int) else None,
        version=others.get("app_version"),
        finish_reason=find_end(said),
        feedback=feedback,
        metadata=known,
    )


def _read_feedback(connection: sqlite3.Connection, record_ids: list[str]) -> dict[str, list[Feedback]]:
    marks = ", ".join("?" * len(record_ids))
    query = f"""
        SELECT record_id, name, result, error, calls_json FROM trulens_feedbacks
        WHERE feedback_definition_id <> ? AND record_id IN ({marks}) ORDER BY name, feedback_result_id
    """
    found: dict[str, list[Feedback]] = {}
    for record_id, name, result, error, calls in connection.execute(query, [DEFINITION, *record_ids]):
        said = Feedback(str(name), read_number(result), None, _find_reason(load_json(calls)) or error, "program")
        found.setdefault(record_id, []).append(said)
    return found


def _find_reason(calls: Any) -> str | None:
    """The first reason in the calls of a feedback function."""
    listed = read_object(calls).get("calls")
    said = (read_object(read_object(call).get("meta")) for call in (listed if isinstance(listed, list) else ()))
    reasons = (dump_text(meta.get("reason") or meta.get("explanation")) for meta in said)
    return next(filter(None, reasons), None)


def _read_truth(truth_id: str, found: Any, dataset: str, path: Path) -> Trace:
    query = read_object(found).get("query")
    if not isinstance(query, str) or not query:
        raise DataError(f"{path}: the ground truth {truth_id} has no query")
    expected = dump_text(found.get("expected_response"))
    chunks = found.get("expected_chunks")
    ids = [one.get("doc_id", one.get("id")) for one in chunks if isinstance(one, Mapping)] if chunks else []
    is_named = bool(ids) and None not in ids
    return Trace(
        TraceLink(TOOL, str(truth_id), others={"dataset": dataset}),
        query,
        query_id=str(found.get("query_id") or truth_id),
        references=() if expected is None else (expected,),
        relevant=tuple(map(str, ids)) if is_named else None,
        metadata={
            **read_object(found.get("meta")),
            **({"expected_chunks": chunks} if chunks and not is_named else {}),
        },
    )


def _measure(perf: Mapping[str, Any]) -> float | None:
    try:
        begun, ended = (datetime.fromisoformat(str(perf[key])) for key in ("start_time", "end_time"))
        return max(0.0, (ended - begun).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None
