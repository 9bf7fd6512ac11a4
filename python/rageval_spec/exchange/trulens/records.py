"""Records and ground truths of TruLens's own tables, from before it kept records as spans."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rageval_spec.data.trace import Feedback, Trace, TraceLink
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.conventions import load_json
from rageval_spec.exchange.shared.span_values import amount_of, count_of
from rageval_spec.exchange.shared.texts import ANSWER_KEYS, QUESTION_KEYS, dump_text, pick_text
from rageval_spec.exchange.shared.windows import format_moment

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


def list_apps(connection: sqlite3.Connection) -> set[str]:
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
    question = pick_text(_load(asked), QUESTION_KEYS, ("user",))
    if question is None:
        raise DataError(f"{path}: the record {record_id} has no input")
    cost, perf = (found if isinstance(found, dict) else {} for found in (_load(cost_text), _load(perf_text)))
    others = {"app_version": str(version)} if version else {}
    known = {"tags": tags} if tags and tags != "-" else {}
    return Trace(
        TraceLink("trulens", str(record_id), None, app, others),
        question,
        query_id=str(record_id),
        answer=pick_text(_load(said), ANSWER_KEYS, ("assistant",)),
        seconds=_measure(perf),
        input_tokens=count_of(cost.get("n_prompt_tokens")),
        output_tokens=count_of(cost.get("n_completion_tokens")),
        cost=amount_of(cost.get("cost")) if cost.get("cost_currency", "USD") == "USD" else None,
        started=format_moment(datetime.fromtimestamp(ts, UTC)) if isinstance(ts, float | int) else None,
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
        said = Feedback(str(name), amount_of(result), None, _find_reason(load_json(calls)) or error, "program")
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


def _load(text: Any) -> Any:
    """JSON of a text, of which plain text is not."""
    return json.loads(text) if isinstance(text, str) and text[:1] in '"{[' and _is_json(text) else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _measure(perf: Mapping[str, Any]) -> float | None:
    try:
        begun, ended = (datetime.fromisoformat(str(perf[key])) for key in ("start_time", "end_time"))
        return max(0.0, (ended - begun).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None
