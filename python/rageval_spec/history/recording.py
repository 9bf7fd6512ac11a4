"""Turns an evaluation into a record of the database, and a record into an evaluation."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from rageval_spec.data import tables
from rageval_spec.data.design import dump_designs, parse_designs
from rageval_spec.data.fingerprints import Fingerprints
from rageval_spec.data.record import Record
from rageval_spec.data.results import Results
from rageval_spec.errors import DataError
from rageval_spec.history.commit import Checkout
from rageval_spec.history.database import Entry, History, StoredRecord, write_time
from rageval_spec.history.meaning import take_meaning
from rageval_spec.history.tables import AGGREGATE_COLUMNS

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Aggregate, Evaluation
    from rageval_spec.spec.nodes import Spec

RESULTS = "results.json"
VALUES = "values.parquet"
FINGERPRINTS = "fingerprints.json"
DESIGNS = "designs.json"
_LEFT_OUT = ("details",)
"""Columns of the values that the database does not keep: what judges wrote, which is in the results folder."""
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Circumstances:
    """When, where and at what cost an evaluation was made.

    Attributes:
        id: the record's id: 32 hexadecimal digits.
        time: when it ended, in UTC.
        checkout: the commit and the branch.
        ci: what `find_ci_run` found; its branch and commit count where the checkout has none.
        cost: the dollars spent on calls; None if no call was made, or the price of none is known.
        seconds: how long it took.
        labels: the labels to give the record.
    """

    id: str
    time: datetime
    checkout: Checkout = field(default_factory=Checkout)
    ci: Mapping[str, str] = field(default_factory=dict)
    cost: float | None = None
    seconds: float | None = None
    labels: Sequence[str] = ()


def build_record(evaluation: Evaluation, circumstances: Circumstances, spec: Spec | None = None) -> StoredRecord:
    """The record of an evaluation. Without the `spec`, metrics have the digests of the spec that it recorded."""
    checkout, ci = circumstances.checkout, circumstances.ci
    row = {
        "id": circumstances.id,
        "time": write_time(circumstances.time),
        "name": evaluation.name,
        "git_commit": checkout.commit or ci.get("commit"),
        "branch": checkout.branch or ci.get("branch"),
        "is_dirty": None if checkout.is_dirty is None else int(checkout.is_dirty),
        "ci": _to_json(ci),
        "outcome": evaluation.verdict,
        "spec_digest": evaluation.spec_digest,
        "cost": circumstances.cost,
        "seconds": circumstances.seconds,
        "gates": _to_json(_list_gates(evaluation)),
        "meaning": _to_json(take_meaning(evaluation, spec)),
    }
    values = evaluation.values
    kept = values.drop([name for name in _LEFT_OUT if name in values.columns])
    contents = {
        RESULTS: zlib.compress(Results.of(evaluation).dump(), _LEVEL),
        VALUES: tables.dump_parquet(kept),
        FINGERPRINTS: zlib.compress(evaluation.fingerprints.dump().encode(), _LEVEL),
    }
    if evaluation.designs:
        contents[DESIGNS] = zlib.compress(dump_designs(evaluation.question_designs).encode(), _LEVEL)
    sliced = [one for part in evaluation.slices for one in part.aggregates]
    aggregates = [_flatten(circumstances.id, one) for one in (*evaluation.aggregates, *sliced)]
    return StoredRecord(row, aggregates, contents, tuple(circumstances.labels))


def _to_json(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), default=str)


def _list_gates(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The outcome of each gate, with the bounds that a chart can draw."""
    blocks = evaluation.spec.get("gates") or []
    found = []
    for one in evaluation.gates:
        block = blocks[one.gate] if one.gate < len(blocks) else {}
        outcome = {key: getattr(one, key) for key in ("gate", "dataset", "system", "metric", "slice", "outcome")}
        found.append(outcome | {key: block[key] for key in ("min", "max", "target") if block.get(key) is not None})
    return found


def _flatten(record_id: str, one: Aggregate) -> tuple[Any, ...]:
    low, high = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
    row = {"record_id": record_id, "low": low, "high": high}
    return tuple(row[name] if name in row else getattr(one, name) for name in AGGREGATE_COLUMNS)


def holds_results_of(history: History, entry: Entry, evaluation: Evaluation) -> bool:
    """Whether the results of a record are those of the evaluation, also if an earlier version wrote both."""
    if entry.spec_digest != evaluation.spec_digest:
        return False
    content = zlib.decompress(history.content(entry.id, RESULTS))
    return Results.parse(content, f"the record {entry.id}").dump() == Results.of(evaluation).dump()


def load_stored(history: History, record_id: str) -> Record:
    """Read a record of the database. Its evaluation has values, but no samples and no details of judges.

    Raises:
        UsageError: there is no such record.
        DataError: the record is damaged.
    """
    import polars as pl

    entry = history.entry(record_id)
    try:
        content = zlib.decompress(history.content(record_id, RESULTS))
        values = pl.read_parquet(BytesIO(history.content(record_id, VALUES)))
        fingerprints = zlib.decompress(history.content(record_id, FINGERPRINTS)).decode()
        results = Results.parse(content, f"the record {record_id}")
        designs = zlib.decompress(history.content(record_id, DESIGNS)).decode() if results.designs else None
    except (zlib.error, pl.exceptions.PolarsError) as error:
        raise DataError(f"the record {record_id} in {history.connection.name} is damaged: {error}") from error
    evaluation = results.evaluation(
        values,
        load_fingerprints=lambda: Fingerprints.parse(fingerprints),
        load_question_designs=lambda: parse_designs(designs, results.designs),
    )
    commit = f"{entry.commit}-dirty" if entry.commit and entry.is_dirty else entry.commit
    return Record(record_id, entry.time, commit, next(iter(entry.labels), None), evaluation)
