"""Writes values into TruLens's database as feedback on its records.

Feedback is written as TruLens itself writes it: two spans a value in `trulens_events`, or a row of
`trulens_feedbacks`.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec.exchange.shared.contracts import Parcel, TargetNode
from rageval_spec.exchange.shared.scores import Judgements, Score, ValueTarget, drop_unknown
from rageval_spec.exchange.trulens.source import (
    DEFINITION,
    EVAL_ROOT,
    EVENTS,
    OURS,
    RECORDS,
    SCOPE,
    SOURCE_MARK,
    TIME,
    TOOL,
    copy_database,
    find_root,
    list_roots,
    list_tables,
    open_to_write,
)

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class TrulensTargetNode(TargetNode):
    database: str = Field(description="TruLens's SQLite file, such as `default.sqlite`.")
    backup: bool = Field(
        default=True,
        description="Whether to copy the database, to `default.sqlite.before-rageval` next to it, before the first "
        "value is written.",
    )


class TrulensTarget(ValueTarget[TrulensTargetNode]):
    """Writes feedback under ids of its own, so that writing twice changes nothing. Each batch is one transaction."""

    node_type = TrulensTargetNode
    summary = "Write values as feedback on the records of TruLens's SQLite file."
    examples = ("export trulens rageval-results --database default.sqlite",)
    batch = 500

    tool = TOOL
    lost = ("value", "record", "the database")
    _copy: Path | None = None
    _roots: dict[str, str] | None = None

    @property
    def destination(self) -> str:
        return str(self._path)

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        judgements = Judgements(evaluation)
        several = len(evaluation.systems) > 1 or len(evaluation.datasets) > 1
        for score in self.open_scores(evaluation):
            yield _make_feedback(score, judgements, evaluation, several=several)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write feedback in one transaction. That of records that are not there any more is left out and counted."""
        if self.node.backup and self._copy is None:
            self._copy = copy_database(self._path)
        left = [parcel.body for parcel in parcels]
        with open_to_write(self._path) as connection:
            tables = list_tables(connection, self._path)
            if EVENTS in tables:
                if self._roots is None:
                    self._roots = list_roots(connection)
                left = write_spans(connection, left, self._roots)
            if RECORDS in tables:
                left = write_feedback(connection, left)
        self.gone.update(body["record_id"] for body in left)

    def remarks(self) -> list[str]:
        copy = [] if self._copy is None else [f"{self._copy} is the database as it was before"]
        return super().remarks() + copy

    @property
    def _path(self) -> Path:
        return self.context.resolve(self.node.database)


def _make_feedback(score: Score, judgements: Judgements, evaluation: Evaluation, *, several: bool) -> Parcel:
    assert score.link is not None, "only answers with a record are listed"
    record_id = score.link.trace_id
    name = f"{score.metric} ({score.dataset}/{score.system})" if several else score.metric
    key = f"{record_id}/{evaluation.name}/{score.dataset}/{score.system}/{score.metric}"
    label, reason = judgements.label(score), judgements.explain(score)
    body = {
        "key": key,
        "record_id": record_id,
        "name": name,
        "value": score.value,
        "error": None if score.value is not None else reason or score.status,
        "reason": reason,
        "label": label,
        "higher_is_better": score.metric not in evaluation.lower_is_better,
        "metadata": {"evaluation": evaluation.name, "dataset": score.dataset, "system": score.system},
    }
    return Parcel(key, body, f"{judgements.summarize(score, name)} -> record {record_id}", "feedback row")


_COPIED = ("app_name", "app_version", "app_id", "record_id", "run.name", "input_id")
"""Attributes of a record's root that its feedback repeats."""
Body = Mapping[str, Any]


def write_spans(connection: sqlite3.Connection, bodies: Sequence[Body], roots: Mapping[str, str]) -> list[Body]:
    """Write feedback on records that are kept as spans; returns that on other records.

    TruLens shows the score of the span `eval_root`, and the reason of the span `eval` below it. `roots` has the event
    of each record's root.
    """
    left = []
    for body in bodies:
        root = find_root(connection, roots.get(str(body["record_id"]), ""))
        if root is None:
            left.append(body)
            continue
        top, below = _make_id(body, "eval_root"), _make_id(body, "eval")
        shared = _share(body, root, top)
        _write_event(connection, top, "", "eval_root", shared | _describe_root(body), root)
        _write_event(connection, below, top, "eval-0", shared | _describe_step(body), root)
    return left


def write_feedback(connection: sqlite3.Connection, bodies: Sequence[Body]) -> list[Body]:
    """Write feedback on records of the tables of earlier versions; returns that on other records."""
    left = []
    for body in bodies:
        known = connection.execute("SELECT 1 FROM trulens_records WHERE record_id = ?", [body["record_id"]]).fetchone()
        if known is None:
            left.append(body)
            continue
        call = {"args": {}, "ret": body["value"], "meta": {"reason": body["reason"], **_list_metadata(body)}}
        values = {
            "record_id": body["record_id"],
            "feedback_definition_id": DEFINITION,
            "status": "done" if body["error"] is None else "failed",
            "error": body["error"],
            "calls_json": json.dumps({"calls": [call]}),
            "result": body["value"],
            "name": body["name"],
            "cost_json": "{}",
            "multi_result": None,
        }
        key = "feedback_result_id", f"rageval-{_make_id(body, 'row')}"
        _upsert(connection, "trulens_feedbacks", key, values, {"last_ts": time.time()})
    return left


def _write_event(
    connection: sqlite3.Connection, event_id: str, parent: str, name: str, attributes: Body, root: Body
) -> None:
    record = {"name": name, "kind": 1, "parent_span_id": parent, "status": "STATUS_CODE_UNSET"}
    trace = {"trace_id": root["trace"].get("trace_id"), "parent_id": parent, "span_id": event_id}
    values = {
        "record": json.dumps(record),
        "record_attributes": json.dumps(drop_unknown(attributes)),
        "record_type": "SPAN",
        "resource_attributes": json.dumps(root["resource_attributes"]),
        "trace": json.dumps(trace),
    }
    now = datetime.now().strftime(TIME)
    _upsert(connection, "trulens_events", ("event_id", event_id), values, {"start_timestamp": now, "timestamp": now})


def _upsert(connection: sqlite3.Connection, table: str, key: tuple[str, str], values: Body, times: Body) -> None:
    """Write a row, unless it is there with the same values; its times are those of its last change."""
    columns = [key[0], *values, *times]
    changed = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
    differs = " OR ".join(f"{table}.{column} IS NOT excluded.{column}" for column in values)
    statement = (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT ({key[0]}) DO UPDATE SET {changed} WHERE {differs}"
    )
    connection.execute(statement, [key[1], *values.values(), *times.values()])


def _share(body: Body, root: Mapping[str, Any], top: str) -> dict[str, Any]:
    own = root["record_attributes"]
    return {
        **{f"{SCOPE}{part}": own[f"{SCOPE}{part}"] for part in _COPIED if f"{SCOPE}{part}" in own},
        f"{SCOPE}eval.target_record_id": body["record_id"],
        f"{SCOPE}eval.eval_root_id": top,
        f"{SCOPE}eval.metric_name": body["name"],
        f"{SCOPE}eval.explanation": body["reason"],
        SOURCE_MARK: OURS,
        **{f"{SCOPE}eval.metadata.{name}": value for name, value in _list_metadata(body).items()},
    }


def _describe_root(body: Body) -> dict[str, Any]:
    return {
        f"{SCOPE}span_type": "eval_root",
        f"{EVAL_ROOT}.metric_name": body["name"],
        f"{EVAL_ROOT}.higher_is_better": body["higher_is_better"],
        f"{EVAL_ROOT}.score": body["value"],
        f"{EVAL_ROOT}.error": body["error"],
    }


def _describe_step(body: Body) -> dict[str, Any]:
    parts = {"span_type": "eval", "eval.score": body["value"], "eval.error": body["error"]}
    return {f"{SCOPE}{name}": value for name, value in parts.items()}


def _list_metadata(body: Body) -> dict[str, Any]:
    label = {"label": body["label"]} if body["label"] is not None else {}
    return {**body["metadata"], **label}


def _make_id(body: Body, part: str) -> str:
    """A span's id in TruLens's form, 64 bits as a decimal number; the same feedback has the same id."""
    digest = hashlib.sha256(f"{body['key']}/{part}".encode()).digest()
    return str(int.from_bytes(digest[:8], "big") or 1)
