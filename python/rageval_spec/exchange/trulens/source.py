"""Reads the records of an app, or the ground truths of a dataset, from TruLens's database.

TruLens keeps records as spans of OpenTelemetry, one row of `trulens_events` each. Before that, it kept them in tables
of its own, which are read too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from rageval_spec.data.traces import Feedback, Trace, TraceLink
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.contracts import TraceSource, WindowNode, parse_moment
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import ERROR, UNSET, Span, format_moment
from rageval_spec.exchange.trulens.connection import DATASETS, EVENTS, RECORDS, TRUTHS, list_tables, open_to_read
from rageval_spec.recorded.answers_and_steps import find_end
from rageval_spec.recorded.questions_and_answers import find_answer, find_question
from rageval_spec.recorded.values import dump_text, load_json, read_count, read_number
from rageval_spec.store.disk import InputFile

if TYPE_CHECKING:
    from rageval_spec.plugin import Context


class TrulensSourceNode(WindowNode):
    """What to read from TruLens: the records of its database, or the ground truths of a dataset."""

    path: str = Field(description="TruLens's SQLite file, such as `default.sqlite`.")
    app: str | None = Field(default=None, min_length=1, description="Only records of this app, by name. Default: all.")
    dataset: str | None = Field(
        default=None, min_length=1, description="The dataset whose ground truths to read in place of records, by name."
    )

    @model_validator(mode="after")
    def _check_choice(self) -> TrulensSourceNode:
        if self.dataset is not None and (self.since or self.until or self.app):
            raise ValueError("since, until and app select records; a dataset has none")
        return self


class TrulensSource(TraceSource[TrulensSourceNode]):
    """Reads records newest first: those kept as spans, then those of the tables of earlier versions."""

    node_type = TrulensSourceNode
    summary = "Read records, or the ground truths of a dataset, from TruLens's SQLite file."
    examples = (
        "import trulens default.sqlite --app support --since 7d -o traces.jsonl",
        "import trulens default.sqlite --dataset golden -o golden.jsonl",
    )

    def __init__(self, node: TrulensSourceNode, context: Context) -> None:
        """Open nothing yet."""
        super().__init__(node, context)
        self._reader = SpanReader("trulens")

    def inputs(self) -> Sequence[InputFile]:
        """The database."""
        return (InputFile(self._path, ("path",)),)

    def read(self) -> Iterator[Trace]:
        """The records, or the ground truths, as traces.

        Raises:
            UsageError: there is no such file, app or dataset.
            DataError: the file is no database of TruLens, or a row cannot be read.
        """
        found = self._read_records() if self.node.dataset is None else self._read_truths(self.node.dataset)
        return islice(found, self.node.limit)

    def remarks(self) -> Sequence[str]:
        """What was left out."""
        return self._reader.remarks()

    @property
    def _path(self) -> Path:
        return self.context.resolve(self.node.path)

    def _read_records(self) -> Iterator[Trace]:
        now = datetime.now(UTC)
        moments = [None if text is None else parse_moment(text, now) for text in (self.node.since, self.node.until)]
        with open_to_read(self._path) as connection:
            tables = list_tables(connection, self._path)
            if self.node.app is not None:
                self._check_app(self.node.app, connection, tables)
            window = self._path, self.node.app, moments[0], moments[1], self.node.limit
            if EVENTS in tables:
                yield from read_events(connection, *window, self._reader)
            if RECORDS in tables:
                yield from read_records(connection, *window)

    def _check_app(self, app: str, connection: sqlite3.Connection, tables: Collection[str]) -> None:
        apps = list_event_apps(connection) if EVENTS in tables else set()
        apps |= list_record_apps(connection) if RECORDS in tables else set()
        if app not in apps:
            there = f"its apps are {', '.join(sorted(apps))}" if apps else "it has none"
            raise UsageError(f"{self._path}: there is no app {app!r}; {there}")

    def _read_truths(self, dataset: str) -> Iterator[Trace]:
        with open_to_read(self._path) as connection:
            if not list_tables(connection, self._path) >= {DATASETS, TRUTHS}:
                raise DataError(f"{self._path}: it has no datasets: it is of a version of TruLens before 1.0")
            yield from read_truths(connection, self._path, dataset)


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
_APP = "json_extract({column}, '$.\"ai.observability.app_{part}\"')"


_ROWS = f"""
    SELECT rageval_roots.id, event_id, record, record_attributes, start_timestamp, timestamp, trace
    FROM trulens_events CROSS JOIN rageval_roots ON rageval_roots.id = {_RECORD}
    WHERE json_valid(record_attributes) ORDER BY place, start_timestamp, event_id
"""
"""All events of the records in `rageval_roots`. With CROSS JOIN, SQLite reads events once and looks records up."""


def read_events(
    connection: sqlite3.Connection, path: Path, app: str | None, since: datetime | None, until: datetime | None,
    limit: int | None, reader: SpanReader,
) -> Iterator[Trace]:  # fmt: skip
    """The records in the window as traces, newest first.

    Raises:
        DataError: a row's JSON cannot be read; the message has the event's id.
    """
    conditions, values = [f"{_TYPE} = 'record_root'"], list[Any]()
    for sign, moment in ((">=", since), ("<", until)):
        if moment is not None:
            conditions.append(f"start_timestamp {sign} ?")
            values.append(moment.astimezone().replace(tzinfo=None).strftime(TIME))
    if app is not None:
        conditions.append(f"{_APP.format(column='resource_attributes', part='name')} = ?")
        values.append(app)
    connection.execute("CREATE TEMP TABLE rageval_roots (place INTEGER PRIMARY KEY, id TEXT UNIQUE)")
    roots = f"""
        INSERT INTO rageval_roots (id) SELECT {_RECORD} AS id FROM trulens_events
        WHERE json_valid(record_attributes) AND {" AND ".join(conditions)} AND id IS NOT NULL
        GROUP BY id ORDER BY max(start_timestamp) DESC, id LIMIT ?
    """
    connection.execute(roots, [*values, -1 if limit is None else limit])
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


def _load_event(row: Sequence[Any], path: Path) -> tuple[str, dict[str, Any], dict[str, Any], str, str, dict[str, Any]]:
    _, event_id, record, attributes, start, end, trace = row
    try:
        loaded = [json.loads(text) for text in (record, attributes, trace)]
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: the event {event_id} holds something that is not JSON") from error
    if not all(isinstance(one, dict) for one in loaded):
        raise DataError(f"{path}: the event {event_id} holds JSON that is not an object")
    return str(event_id), loaded[0], loaded[1], str(start), str(end), loaded[2]


def _read_event_record(
    record_id: str,
    events: Sequence[tuple[str, dict[str, Any], dict[str, Any], str, str, dict[str, Any]]],
    path: Path,
    reader: SpanReader,
) -> Iterator[Trace]:
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
        link = TraceLink("trulens", record_id, None, dump_text(root.get(f"{SCOPE}app_name")), others)
        truth = dump_text(root.get(f"{SCOPE}record_root.ground_truth_output"))
        references = trace.references if truth is None else (truth,)
        yield replace(
            trace,
            link=link,
            query_id=record_id,
            version=others.get("app_version"),
            references=references,
            feedback=(*trace.feedback, *feedback),
        )
        return  # a record of TruLens is one question


def list_event_apps(connection: sqlite3.Connection) -> set[str]:
    """The names of the apps whose spans are there."""
    found = connection.execute(
        f"SELECT DISTINCT {_APP.format(column='resource_attributes', part='name')} FROM trulens_events"
    )
    return {str(name) for (name,) in found if name is not None}


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


def read_records(
    connection: sqlite3.Connection, path: Path, app: str | None, since: datetime | None, until: datetime | None,
    limit: int | None,
) -> Iterator[Trace]:  # fmt: skip
    """The records in the window as traces, newest first.

    Raises:
        DataError: a record has no input; the message has its id.
    """
    conditions, values = ["1"], list[Any]()
    for sign, moment in ((">=", since), ("<", until)):
        if moment is not None:
            conditions.append(f"ts {sign} ?")
            values.append(moment.timestamp())
    if app is not None:
        conditions.append("app_name = ?")
        values.append(app)
    query = f"""
        SELECT record_id, input, output, tags, ts, cost_json, perf_json, app_name, app_version
        FROM trulens_records LEFT JOIN trulens_apps USING (app_id)
        WHERE {" AND ".join(conditions)} ORDER BY ts DESC, record_id LIMIT ?
    """
    rows = connection.execute(query, [*values, -1 if limit is None else limit])
    while block := rows.fetchmany(_ROWS_AT_ONCE):
        feedback = _read_feedback(connection, [row[0] for row in block])
        for row in block:
            yield _read_record(row, tuple(feedback.get(row[0], ())), path)


def list_record_apps(connection: sqlite3.Connection) -> set[str]:
    """The names of the apps that have records."""
    found = connection.execute("SELECT DISTINCT app_name FROM trulens_records JOIN trulens_apps USING (app_id)")
    return {str(name) for (name,) in found if name is not None}


def read_truths(connection: sqlite3.Connection, path: Path, dataset: str) -> Iterator[Trace]:
    """The ground truths of a dataset as traces without an answer.

    Raises:
        UsageError: there is no such dataset; the message has the names of those that are there.
        DataError: a ground truth has no query.
    """
    names: dict[str, str] = {}
    for dataset_id, text in connection.execute("SELECT dataset_id, dataset_json FROM trulens_dataset"):
        found = load_json(text)
        names[str(found.get("name")) if isinstance(found, Mapping) else dataset_id] = dataset_id
    if dataset not in names:
        there = f"its datasets are {', '.join(sorted(names))}" if names else "it has none"
        raise UsageError(f"{path}: there is no dataset {dataset!r}; {there}")
    query = "SELECT ground_truth_id, ground_truth_json FROM trulens_ground_truth WHERE dataset_id = ? ORDER BY rowid"
    for truth_id, text in connection.execute(query, [names[dataset]]):
        yield _read_truth(truth_id, load_json(text), dataset, path)


def _read_record(row: tuple[Any, ...], feedback: tuple[Feedback, ...], path: Path) -> Trace:
    record_id, asked, said, tags, ts, cost_text, perf_text, app, version = row
    question = find_question(asked) or dump_text(asked)
    if question is None:
        raise DataError(f"{path}: the record {record_id} has no input")
    cost, perf = (found if isinstance(found, dict) else {} for found in (load_json(cost_text), load_json(perf_text)))
    others = {"app_version": str(version)} if version else {}
    known = {"tags": tags} if tags and tags != "-" else {}
    return Trace(
        TraceLink("trulens", str(record_id), None, app, others),
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
    listed = calls.get("calls") if isinstance(calls, Mapping) else None
    for call in listed if isinstance(listed, list) else ():
        meta = call.get("meta") if isinstance(call, Mapping) else None
        if isinstance(meta, Mapping) and (reason := dump_text(meta.get("reason") or meta.get("explanation"))):
            return reason
    return None


def _read_truth(truth_id: str, found: Any, dataset: str, path: Path) -> Trace:
    query = found.get("query") if isinstance(found, Mapping) else None
    if not isinstance(query, str) or not query:
        raise DataError(f"{path}: the ground truth {truth_id} has no query")
    expected = dump_text(found.get("expected_response"))
    chunks = found.get("expected_chunks")
    ids = [one.get("doc_id", one.get("id")) for one in chunks if isinstance(one, Mapping)] if chunks else []
    meta = found.get("meta")
    return Trace(
        TraceLink("trulens", str(truth_id), others={"dataset": dataset}),
        query,
        query_id=str(found.get("query_id") or truth_id),
        references=() if expected is None else (expected,),
        relevant=tuple(str(one) for one in ids) if ids and None not in ids else None,
        metadata={
            **(dict(meta) if isinstance(meta, Mapping) else {}),
            **({"expected_chunks": chunks} if chunks and (not ids or None in ids) else {}),
        },
    )


def _measure(perf: Mapping[str, Any]) -> float | None:
    try:
        begun, ended = (datetime.fromisoformat(str(perf[key])) for key in ("start_time", "end_time"))
        return max(0.0, (ended - begun).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None
