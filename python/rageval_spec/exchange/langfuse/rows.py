"""Rows of Langfuse: observations, traces and scores, from its API or its exports, whose names differ only in style."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from rageval_spec.data.trace import Feedback
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.payloads import parse_text, read_number, read_text

FeedbackSource = Literal["annotator", "program", "unknown"]
RowKind = Literal["observation", "trace", "score"]
Row = Mapping[str, Any]
"""A row with normalised names: `traceid` for `traceId`, `trace_id` and `Trace ID`."""
OBSERVATION_TYPES = frozenset({
    "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
})  # fmt: skip
_OTHER_NAMES = {
    "providedmodelname": "model", "totaltokens": "totalusage", "calculatedtotalcost": "totalcost",
    "sourcetraceid": "sourcetraceid", "datasetitemid": "datasetitemid",
}  # fmt: skip
_NAMES: dict[str, str] = {}
_SOURCES: Mapping[str, Literal["annotator", "program"]] = {"ANNOTATION": "annotator", "EVAL": "program"}


def normalise(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The row with normalised names, without its empty values.

    Raises:
        DataError: it has no id; `place` begins the message.
    """
    found: dict[str, Any] = {}
    for key, value in row.items():
        name = _NAMES.get(key)
        if name is None:
            plain = "".join(letter for letter in key.lower() if letter.isalnum())
            name = _NAMES[key] = _OTHER_NAMES.get(plain, plain)
        if value is not None and value != "":
            found.setdefault(name, value)
    if (text := read_text(found.get("id"))) is None:
        raise DataError(
            f"{place}: there is no 'id' in this row of Langfuse; its keys are {', '.join(map(str, row))[:200]}"
        )
    found["id"] = text
    return found


def tell_kind(row: Row) -> RowKind:
    """What a normalised row is."""
    if str(row.get("type", "")).upper() in OBSERVATION_TYPES and ("traceid" in row or "starttime" in row):
        return "observation"
    is_score = "name" in row and ({"value", "stringvalue"} & row.keys()) and ({"datatype", "source"} & row.keys())
    return "score" if is_score else "observation" if "starttime" in row else "trace"


def trace_of(row: Row) -> str | None:
    """The id of the trace that an observation or a score belongs to; a trace's own."""
    kind = tell_kind(row)
    if kind == "score" and isinstance(subject := parse_text(row.get("subject")), Mapping):
        key = {"trace": "id", "observation": "traceId"}.get(str(subject.get("kind")))
        return None if key is None else read_text(subject.get(key))
    return read_text(row["id"] if kind == "trace" else row.get("traceid"))


def read_feedback(row: Row) -> Feedback | None:
    """What a score says; None if it has no name. A correction is a comment with the corrected text."""
    name = read_text(row.get("name"))
    if name is None:
        return None
    kind = str(row.get("datatype", "")).upper()
    value, label = row.get("value"), read_text(row.get("stringvalue"))
    comment = read_text(row.get("comment"))
    if kind in ("CATEGORICAL", "TEXT", "CORRECTION"):
        # The numbers of older endpoints beside these are 0 or a category's place, which says nothing elsewhere.
        label, value = label or read_text(value), None
    elif isinstance(value, bool) or value in ("true", "false", "True", "False"):
        label, value = None, float(value in (True, "true", "True"))
    else:
        label = None if kind in ("NUMERIC", "BOOLEAN") else label
    number = read_number(value)
    source: FeedbackSource = _SOURCES.get(str(row.get("source", "")).upper(), "unknown")
    return Feedback(name, number, label, comment, source, read_text(row.get("authoruserid")))


def is_correction(row: Row) -> bool:
    """Whether a score holds a corrected answer."""
    return str(row.get("datatype", "")).upper() == "CORRECTION"


def read_mapping(found: Any) -> dict[str, Any]:
    """A mapping, also one that is written as JSON, or as the list of pairs that Parquet makes of it; else {}."""
    found = parse_text(found)
    if (
        isinstance(found, list)
        and found
        and all(isinstance(one, Mapping) and {"key", "value"} <= one.keys() for one in found)
    ):
        found = {str(one["key"]): one["value"] for one in found}
    return {str(key): value for key, value in found.items()} if isinstance(found, Mapping) else {}


def read_list(found: Any) -> list[str]:
    """A list of texts, also one that is written as JSON or with ClickHouse's single quotes; else []."""
    if isinstance(found, str) and found.startswith("['"):
        found = found.replace("'", '"')
    try:
        found = json.loads(found) if isinstance(found, str) else found
    except (ValueError, RecursionError):
        return []
    return [str(item) for item in found] if isinstance(found, list) else []
