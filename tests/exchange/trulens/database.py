"""Databases in the form of TruLens 2.16's, with a few records in them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

SCOPE = "ai.observability."
TABLES = """
CREATE TABLE trulens_events (
    event_id VARCHAR(256) NOT NULL, record JSON NOT NULL, record_attributes JSON NOT NULL,
    record_type VARCHAR(256) NOT NULL, resource_attributes JSON NOT NULL, start_timestamp TIMESTAMP NOT NULL,
    timestamp TIMESTAMP NOT NULL, trace JSON NOT NULL, PRIMARY KEY (event_id));
CREATE TABLE trulens_apps (
    app_id VARCHAR(256) NOT NULL, app_json TEXT NOT NULL, app_name VARCHAR(256) NOT NULL,
    app_version VARCHAR(256) NOT NULL, PRIMARY KEY (app_id));
CREATE TABLE trulens_records (
    record_id VARCHAR(256) NOT NULL, app_id VARCHAR(256) NOT NULL, input TEXT, output TEXT, record_json TEXT NOT NULL,
    tags TEXT NOT NULL, ts FLOAT NOT NULL, cost_json TEXT NOT NULL, perf_json TEXT NOT NULL, PRIMARY KEY (record_id));
CREATE TABLE trulens_feedbacks (
    feedback_result_id VARCHAR(256) NOT NULL, record_id VARCHAR(256) NOT NULL,
    feedback_definition_id VARCHAR(256) NOT NULL, last_ts FLOAT NOT NULL, status TEXT NOT NULL, error TEXT,
    calls_json TEXT NOT NULL, result FLOAT, name TEXT NOT NULL, cost_json TEXT NOT NULL, multi_result TEXT,
    PRIMARY KEY (feedback_result_id));
CREATE TABLE trulens_dataset (dataset_id VARCHAR(256) NOT NULL, dataset_json TEXT NOT NULL, PRIMARY KEY (dataset_id));
CREATE TABLE trulens_ground_truth (
    ground_truth_id VARCHAR(256) NOT NULL, dataset_id TEXT NOT NULL, ground_truth_json TEXT NOT NULL,
    PRIMARY KEY (ground_truth_id));
"""
APP = {f"{SCOPE}app_name": "support", f"{SCOPE}app_version": "v1", f"{SCOPE}app_id": "app_1"}


def add_event(
    connection: sqlite3.Connection, record: int, number: int, kind: str, attributes: dict[str, Any],
    status: str = "STATUS_CODE_UNSET",
) -> None:  # fmt: skip
    """Add a span of a record; the first is its root, and it begins in minute `record`."""
    event_id, parent = f"{record}000{number}", "" if number == 1 or kind == "eval_root" else f"{record}0001"
    named = {f"{SCOPE}{key}": value for key, value in attributes.items()}
    row = (
        event_id,
        json.dumps({"name": kind, "kind": 1, "parent_span_id": parent, "status": status}),
        json.dumps({f"{SCOPE}span_type": kind, f"{SCOPE}record_id": f"rec{record}", **APP, **named}),
        "SPAN",
        json.dumps({"service.name": "trulens", **APP}),
        f"2026-11-22 13:{record:02d}:00.000000",
        f"2026-11-22 13:{record:02d}:01.500000",
        json.dumps({"trace_id": f"{record}999", "parent_id": parent, "span_id": event_id}),
    )
    connection.execute(f"INSERT INTO trulens_events VALUES ({', '.join('?' * len(row))})", row)


def make_database(path: Path, records: int = 3) -> Path:
    """A database whose last record has failed; the first has feedback."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES)
        for number in range(1, records + 1):
            asked = {"record_root.input": f"Question {number}?"}
            is_last = number == records
            if not is_last:
                asked["record_root.output"] = f"Answer {number}."
            status = "STATUS_CODE_ERROR" if is_last else "STATUS_CODE_UNSET"
            add_event(connection, number, 1, "record_root", asked, status)
            contexts = [f"Text {place}." for place in range(2)]
            found = {"retrieval.query_text": f"question {number}", "retrieval.retrieved_contexts": contexts}
            add_event(connection, number, 2, "retrieval", found)
            used: dict[str, Any] = {"cost.num_prompt_tokens": 100, "cost.num_completion_tokens": 20, "cost.cost": 0.25}
            used |= {"cost.model": "gpt", "call.kwargs.prompt": "P", "call.return": f"Answer {number}."}
            add_event(connection, number, 3, "generation", used)
        said = {"eval_root.metric_name": "length", "eval_root.score": 0.5, "eval.explanation": "short"}
        add_event(connection, 1, 4, "eval_root", said)
    return path


def add_older(path: Path) -> None:
    """Add a record, feedback and a dataset as versions before the spans kept them."""
    perf = {"start_time": "2025-01-01T00:00:00", "end_time": "2025-01-01T00:00:02"}
    cost = {"n_prompt_tokens": 7, "n_completion_tokens": 3, "cost": 0.5, "cost_currency": "USD"}
    record = (
        "old1",
        "app_1",
        '"Old question?"',
        '"Old answer."',
        "{}",
        "-",
        1735689600.0,
        json.dumps(cost),
        json.dumps(perf),
    )
    calls = json.dumps({"calls": [{"args": {}, "ret": 0.5, "meta": {"reason": "because"}}]})
    feedback = ("f1", "old1", "def1", 1735689601.0, "done", None, calls, 0.5, "groundedness", "{}", None)
    truth = {"query": "Why?", "query_id": "q1", "expected_response": "So.", "expected_chunks": [{"doc_id": "d1"}],
             "meta": {"lang": "en"}}  # fmt: skip
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO trulens_apps VALUES ('app_1', '{}', 'legacy', 'v0')")
        connection.execute(f"INSERT INTO trulens_records VALUES ({', '.join('?' * 9)})", record)
        connection.execute(f"INSERT INTO trulens_feedbacks VALUES ({', '.join('?' * 11)})", feedback)
        connection.execute("INSERT INTO trulens_dataset VALUES ('ds1', ?)", [json.dumps({"name": "golden"})])
        connection.execute("INSERT INTO trulens_ground_truth VALUES ('gt1', 'ds1', ?)", [json.dumps(truth)])


def query(path: Path, statement: str) -> list[Any]:
    """The rows of a query."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()
