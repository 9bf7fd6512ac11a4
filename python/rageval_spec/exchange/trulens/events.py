"""Records that TruLens keeps as spans of OpenTelemetry, one row of `trulens_events` each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from rageval_spec.data.trace import Feedback, Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.span_traces import SpanReader
from rageval_spec.exchange.shared.span_values import amount_of
from rageval_spec.exchange.shared.spans import ERROR, UNSET, Span
from rageval_spec.exchange.shared.texts import dump_text

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
        yield from _read_record(str(record_id), [_load(row, path) for row in group], path, reader)


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


def _load(row: Sequence[Any], path: Path) -> tuple[str, dict[str, Any], dict[str, Any], str, str, dict[str, Any]]:
    _, event_id, record, attributes, start, end, trace = row
    try:
        loaded = [json.loads(text) for text in (record, attributes, trace)]
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: the event {event_id} holds something that is not JSON") from error
    if not all(isinstance(one, dict) for one in loaded):
        raise DataError(f"{path}: the event {event_id} holds JSON that is not an object")
    return str(event_id), loaded[0], loaded[1], str(start), str(end), loaded[2]


def _read_record(
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
                feedback.append(_read_feedback(attributes))
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
            trace, link=link, query_id=record_id, references=references, feedback=(*trace.feedback, *feedback)
        )
        return  # a record of TruLens is one question


def list_apps(connection: sqlite3.Connection) -> set[str]:
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


def _read_feedback(attributes: Mapping[str, Any]) -> Feedback:
    comment = attributes.get(f"{SCOPE}eval.explanation") or attributes.get(f"{EVAL_ROOT}.explanation")
    return Feedback(
        dump_text(attributes.get(f"{EVAL_ROOT}.metric_name")) or "feedback",
        amount_of(attributes.get(f"{EVAL_ROOT}.score")),
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
