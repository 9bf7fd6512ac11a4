"""Phoenix's spans as spans of OpenInference: its REST API spreads JSON that programs recorded as one attribute."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.spans import ERROR, OK, UNSET, Event, Span

PROJECT = "openinference.project.name"
OURS = "rageval-spec"
"""How the identifiers of our own annotations begin; they are not feedback."""
_STATUS = {"OK": OK, "ERROR": ERROR, "UNSET": UNSET}
_SPREAD = re.compile(
    r"(?P<whole>metadata|(?:retrieval|reranker)\.\w+\.\d+\.document\.metadata)\.(?P<key>.+)", re.DOTALL
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_span(found: Mapping[str, Any], project: str, place: str) -> Span:
    """A span of the REST API; `place` names it in messages.

    Raises:
        DataError: it has no ids, or attributes that are no object.
    """
    context, attributes = found.get("context"), found.get("attributes")
    ids = [context.get(name) for name in ("trace_id", "span_id")] if isinstance(context, Mapping) else []
    if len(ids) != 2 or not all(isinstance(one, str) and one for one in ids):
        raise DataError(f"{place}: a span without a trace_id and a span_id")
    if not isinstance(attributes, Mapping):
        raise DataError(f"{place}: the span {ids[1]} has no object 'attributes'")
    parent = found.get("parent_id")
    kind = found.get("span_kind")
    return Span(
        str(ids[0]),
        str(ids[1]),
        parent if isinstance(parent, str) and parent else None,
        str(found.get("name") or ""),
        read_time(found.get("start_time")),
        read_time(found.get("end_time")),
        {**gather_metadata(attributes), **({"openinference.span.kind": kind} if isinstance(kind, str) else {})},
        tuple(map(_read_event, found.get("events") or ())),
        status=_STATUS.get(str(found.get("status_code")), UNSET),
        message=str(found.get("status_message") or ""),
        resource={PROJECT: project},
        place=f"{place}: span {ids[1]}",
    )


def gather_metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, with those below `metadata` and a document's `metadata` gathered into one object again."""
    gathered: dict[str, Any] = {}
    for name, value in attributes.items():
        spread = _SPREAD.fullmatch(name)
        if spread is None:
            gathered[name] = value
            continue
        whole = gathered.setdefault(spread["whole"], {})
        if isinstance(whole, dict):
            whole[spread["key"]] = value
    return gathered


def add_annotations(span: Span, annotations: list[Mapping[str, Any]]) -> Span:
    """The span with what people and programs said about it; what this program wrote is left out."""
    others = [one for one in annotations if not str(one.get("identifier") or "").startswith(OURS)]
    said = {
        f"annotations.{number}.annotation.{name}": value
        for number, one in enumerate(others)
        for name, value in _read_annotation(one).items()
        if value is not None
    }
    return span._replace(attributes={**span.attributes, **said}) if said else span


def read_time(text: Any) -> int:
    """Nanoseconds since 1970 of an ISO 8601 time; 0 if it is none."""
    if not isinstance(text, str):
        return 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    gone = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return ((gone.days * 86400 + gone.seconds) * 1_000_000 + gone.microseconds) * 1000


def _read_event(found: Any) -> Event:
    if not isinstance(found, Mapping):
        return Event("")
    attributes = found.get("attributes")
    return Event(
        str(found.get("name") or ""),
        read_time(found.get("timestamp")),
        attributes if isinstance(attributes, Mapping) else {},
    )


def _read_annotation(annotation: Mapping[str, Any]) -> dict[str, Any]:
    result = annotation.get("result")
    found = result if isinstance(result, Mapping) else {}
    said = {name: found.get(name) for name in ("score", "label", "explanation")}
    names = ("name", "annotator_kind", "identifier")
    return {**said, **{name: annotation.get(name) or None for name in names}}
