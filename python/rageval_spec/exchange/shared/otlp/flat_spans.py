"""Spans as single JSON objects, as the console exporters of OpenTelemetry's SDKs and the API of Phoenix write them.

Such a span has its ids in `context`, its times as ISO 8601, and its attributes as an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rageval_spec.exchange.shared.otlp.json_spans import SPAN_DIGITS, TRACE_DIGITS, JsonSpanError, read_id
from rageval_spec.exchange.shared.spans import ERROR, OK, UNSET, Event, Link, Span
from rageval_spec.reading.json_values import name_kind

_KINDS = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_flat(found: Any) -> bool:
    """Whether a JSON value is such a span."""
    return isinstance(found, Mapping) and isinstance(found.get("context"), Mapping) and "start_time" in found


def read_flat(found: Mapping[str, Any], place: str = "") -> Span:
    """The span of an object that `is_flat`.

    Raises:
        JsonSpanError: a value has the wrong type, or the span has no valid ids.
    """
    context, parent = found["context"], found.get("parent_id")
    status, message = _read_status(found)
    resource = found.get("resource")
    return Span(
        read_id(context.get("trace_id"), TRACE_DIGITS, "context.trace_id"),
        read_id(context.get("span_id"), SPAN_DIGITS, "context.span_id"),
        None if parent in (None, "") else read_id(parent, SPAN_DIGITS, "parent_id"),
        str(found.get("name") or ""),
        read_time(found.get("start_time"), "start_time"),
        read_time(found.get("end_time"), "end_time"),
        _with_kind(_object(found.get("attributes"), "attributes"), found.get("span_kind")),
        tuple(_read_event(event) for event in found.get("events") or () if isinstance(event, Mapping)),
        tuple(_read_link(link) for link in found.get("links") or () if isinstance(link, Mapping)),
        status,
        message,
        _object(resource.get("attributes"), "resource.attributes") if isinstance(resource, Mapping) else {},
        _KINDS.get(str(found.get("kind", "")).removeprefix("SpanKind."), 0),
        place,
    )


def _with_kind(attributes: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Phoenix takes the attribute with OpenInference's kind out of the others."""
    if isinstance(kind, str) and kind not in _KINDS and "openinference.span.kind" not in attributes:
        return {"openinference.span.kind": kind, **attributes}
    return attributes


def _read_status(found: Mapping[str, Any]) -> tuple[int, str]:
    status = found.get("status")
    code, message = found.get("status_code"), found.get("status_message")
    if isinstance(status, Mapping):
        code, message = status.get("status_code", status.get("code")), status.get("description", status.get("message"))
    known = {"OK": OK, "ERROR": ERROR}
    return known.get(str(code).rpartition(".")[2].upper(), UNSET), str(message or "")


def _read_event(found: Mapping[str, Any]) -> Event:
    time = read_time(found.get("timestamp"), "events.timestamp")
    return Event(str(found.get("name") or ""), time, _object(found.get("attributes"), "events.attributes"))


def _read_link(found: Mapping[str, Any]) -> Link:
    context = _object(found.get("context"), "links.context")
    trace_id = read_id(context.get("trace_id"), TRACE_DIGITS, "links.context.trace_id")
    span_id = read_id(context.get("span_id"), SPAN_DIGITS, "links.context.span_id")
    return Link(trace_id, span_id, _object(found.get("attributes"), "links.attributes"))


def read_time(found: Any, path: str) -> int:
    """An ISO 8601 time as nanoseconds since 1970; 0 for None. Without a zone it is in UTC.

    Raises:
        JsonSpanError: it is no such time.
    """
    if found is None or found == "":
        return 0
    try:
        moment = datetime.fromisoformat(found)
    except (ValueError, TypeError):
        shown = repr(found[:40]) if isinstance(found, str) else name_kind(found)
        raise JsonSpanError(f"{path}: {shown} where an ISO 8601 time was expected") from None
    since = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH
    return max(0, since // timedelta(microseconds=1)) * 1000


def _object(found: Any, path: str) -> dict[str, Any]:
    if found is None:
        return {}
    if isinstance(found, Mapping):
        return dict(found)
    raise JsonSpanError(f"{path}: {name_kind(found)} where an object was expected")
