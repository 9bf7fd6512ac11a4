"""Reads spans as JSON: OTLP requests, and single objects as console exporters write them.

An OTLP request is `{"resourceSpans": [...]}`, with keys in camelCase or snake_case. Collectors and SDKs differ: ids
are hexadecimal (OTLP) or base64 (protobuf's own JSON), 64-bit numbers are numbers or texts, enumerations are numbers
or names. All of these are read.

The console exporters of OpenTelemetry's SDKs and the API of Phoenix write a span as a single JSON object. It has its
ids in `context`, its times as ISO 8601, and its attributes as an object.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rageval_spec.exchange.shared.spans.protobuf import MOST_DEPTH, LogEvent
from rageval_spec.exchange.shared.spans.spans import Link, Span, SpanEvent, nanoseconds_of
from rageval_spec.recorded.json_path import name_kind
from rageval_spec.recorded.values import read_time

TRACE_DIGITS, SPAN_DIGITS = 32, 16
_HEX = frozenset("0123456789abcdef")
_STATUS = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2, "UNSET": 0, "OK": 1, "ERROR": 2}
_KINDS = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_HIGHEST = 1 << 64
_SHORT = 19


class JsonSpanError(ValueError):
    """JSON that is not the spans it should be; the message begins with the path of the value."""


def is_otlp(found: Any) -> bool:
    """Whether a JSON value has the keys of an OTLP request, or of one part of it."""
    keys = {"resourceSpans", "resource_spans", "scopeSpans", "scope_spans"}
    return isinstance(found, dict) and not keys.isdisjoint(found)


def is_span(found: Any) -> bool:
    """Whether a JSON value is one span without the request around it, as tools and console exporters write it."""
    keys = found.keys() if isinstance(found, dict) else {}.keys()
    is_flat = "start_time" in keys and isinstance(found["context"] if "context" in keys else None, dict)
    return is_flat or (bool(keys & {"traceId", "trace_id"}) and bool(keys & {"spanId", "span_id"}))


def decode_json(found: Any, place: str = "", reject: Callable[[JsonSpanError], None] | None = None) -> Iterator[Span]:
    """The spans of a request, in order; `place` begins the place of each.

    With `reject`, spans with a fault are passed over; it gets the error of each.

    Raises:
        JsonSpanError: a value has the wrong type, or a span has no valid ids.
    """
    if not isinstance(found, dict):
        raise JsonSpanError(f'{name_kind(found)} where an OTLP request was expected: {{"resourceSpans": [...]}}')
    for path, group in _parts(found, "resourceSpans", "") if _has(found, "resourceSpans") else [("", found)]:
        resource = _attributes(_child(group, "resource"), f"{path}.resource")
        for inner, scope in _parts(group, "scopeSpans", path):
            for index, span in enumerate(_list(scope, "spans", inner)):
                where = f"{inner}.spans[{index}]"
                try:
                    read = read_span(span, f"{place}{where}", resource)
                except JsonSpanError as error:
                    located = _locate(where, error)
                    if reject is None:
                        raise located from None
                    reject(located)
                else:
                    yield read


_LOG_KEYS = frozenset({
    "severityNumber", "severity_number", "severityText", "severity_text", "observedTimeUnixNano", "observed_timestamp",
    "eventName", "event_name",
})  # fmt: skip
"""Keys that log records have and spans do not."""


def decode_json_events(found: Any) -> Iterator[LogEvent]:
    """The log records of a request, or of one record as console exporters write it, that belong to a trace."""
    if is_log_record(found):
        yield from _read_log_events([found], "")
        return
    for path, group in _parts(found, "resourceLogs", ""):
        for inner, scope in _parts(group, "scopeLogs", path):
            yield from _read_log_events(_list(scope, "logRecords", inner), f"{inner}.logRecords")


def is_log_record(found: Any) -> bool:
    """Whether a JSON value is one log record of a span."""
    return is_span(found) and bool(found.keys() & _LOG_KEYS)


def _read_log_events(records: Iterable[Any], path: str) -> Iterator[LogEvent]:
    for number, one in enumerate(records):
        where = f"{path}[{number}]" if path else ""
        record = _object(one, where)
        attributes = _attributes(record, where)
        named = _get(record, "eventName") or attributes.get("event.name")
        try:
            trace_id = read_id(_get(record, "traceId"), TRACE_DIGITS, "traceId")
        except JsonSpanError:
            continue  # a log record need not belong to a trace
        span_id = _get(record, "spanId")
        place = read_id(span_id, SPAN_DIGITS, "spanId") if _is_parent(span_id) else ""
        yield LogEvent(named if isinstance(named, str) else "", 0, attributes, trace_id, place)


def _locate(path: str, error: JsonSpanError) -> JsonSpanError:
    """The error with the path of what contains the value: paths are only put together where something is wrong."""
    told = str(error)
    return JsonSpanError(f"{path}{told}" if told[:1] in (":", "[") else f"{path}.{told}")


def read_span(span: Any, place: str = "", resource: Mapping[str, Any] | None = None) -> Span:
    """One span; the path of an error is relative to it. Without `resource`, it has one of its own or none."""
    found = _object(span, "")
    if isinstance(context := found.get("context"), dict):
        found = {**found, **context}
    if resource is None:
        resource = _attributes(_child(found, "resource"), "resource")
    attributes, kind = _attributes(found, ""), found.get("span_kind")
    if isinstance(kind, str) and kind not in _KINDS:  # Phoenix takes OpenInference's kind out of the others
        attributes = {"openinference.span.kind": kind, **attributes}
    status = found.get("status")
    told = status if isinstance(status, dict) else {"code": _get(found, "code"), "message": found.get("status_message")}
    code, parent = _get(told, "code"), _get(found, "parentSpanId")
    return Span(
        read_id(_get(found, "traceId"), TRACE_DIGITS, "traceId"),
        read_id(_get(found, "spanId"), SPAN_DIGITS, "spanId"),
        read_id(parent, SPAN_DIGITS, "parentSpanId") if _is_parent(parent) else None,
        _text(found.get("name"), "name"),
        _time(_get(found, "startTimeUnixNano"), "startTimeUnixNano"),
        _time(_get(found, "endTimeUnixNano"), "endTimeUnixNano"),
        attributes,
        tuple(_read_event(event, f"events[{n}]") for n, event in enumerate(_list(found, "events", ""))),
        tuple(_read_link(link, f"links[{n}]") for n, link in enumerate(_list(found, "links", ""))),
        _STATUS.get(code.rpartition(".")[2], 0) if isinstance(code, str) else code if isinstance(code, int) else 0,
        _text(_get(told, "message"), "status.message"),
        resource,
        _read_kind(found.get("kind")),
        place,
    )


def _is_parent(parent: Any) -> bool:
    return parent is not None and (not isinstance(parent, str) or parent.removeprefix("0x").strip("0") != "")


def _read_kind(kind: Any) -> int:
    if isinstance(kind, str):
        return _KINDS.get(kind.removeprefix("SPAN_KIND_").removeprefix("SpanKind."), 0)
    return kind if isinstance(kind, int) and 0 <= kind < 6 else 0


def _read_event(found: Any, path: str) -> SpanEvent:
    event = _object(found, path)
    time = _time(_get(event, "timeUnixNano"), f"{path}.timeUnixNano")
    return SpanEvent(_text(event.get("name"), f"{path}.name"), time, _attributes(event, path))


def _read_link(found: Any, path: str) -> Link:
    link = _object(found, path)
    link = {**link, **_child(link, "context")}
    trace_id = read_id(_get(link, "traceId"), TRACE_DIGITS, f"{path}.traceId")
    span_id = read_id(_get(link, "spanId"), SPAN_DIGITS, f"{path}.spanId")
    return Link(trace_id, span_id, _attributes(link, path))


def read_id(found: Any, digits: int, path: str) -> str:
    """An id as hexadecimal digits in lower case, from those, with or without `0x`, or from base64."""
    if isinstance(found, str):
        text = found.lower().removeprefix("0x")
        if len(text) == digits and _HEX.issuperset(text):
            if text.strip("0"):
                return text
            raise JsonSpanError(f"{path}: the id has only zeros")
        if len(found) == -(-digits // 6) * 4:
            try:
                decoded = base64.b64decode(found, validate=True)
            except (binascii.Error, ValueError):
                decoded = b""
            if len(decoded) == digits // 2 and any(decoded):
                return decoded.hex()
    raise JsonSpanError(f"{path}: {_show(found)} where {digits} hexadecimal digits were expected")


def _attributes(found: Mapping[str, Any], path: str) -> dict[str, Any]:
    listed = found.get("attributes")
    if listed is None:
        return {}
    if isinstance(listed, dict):  # not OTLP, but written by programs that flatten it
        return dict(listed)
    read: dict[str, Any] = {}
    for number, item in enumerate(_list(found, "attributes", path)):
        if not isinstance(item, dict) or not isinstance(key := item.get("key", ""), str):
            where = f"{path}.attributes[{number}]".lstrip(".")
            raise JsonSpanError(f"{where}: {name_kind(item)} where a key and a value were expected")
        value = item.get("value")
        if type(value) is dict and len(value) == 1 and type(text := value.get("stringValue")) is str:
            read[key] = text
            continue
        try:
            read[key] = _value(value, "", 0)
        except JsonSpanError as error:
            raise _locate(f"{path}.attributes[{number}].value".lstrip("."), error) from None
    return read


def _value(found: Any, path: str, depth: int) -> Any:
    if found is None:
        return None
    if depth > MOST_DEPTH:
        raise JsonSpanError(f"{path[:200]}: more than {MOST_DEPTH} lists and objects inside one another")
    for key, value in _object(found, path).items():
        if key == "intValue" and type(value) is str and len(value) < _SHORT and value.isdecimal():
            return int(value)
        if value is None:
            continue
        if key in ("stringValue", "string_value"):
            return _text(value, path)
        if key in ("boolValue", "bool_value"):
            return bool(value)
        if key in ("intValue", "int_value"):
            return _integer(value, path)
        if key in ("doubleValue", "double_value"):
            return _double(value, path)
        if key in ("arrayValue", "array_value"):
            items = _list(_object(value, path), "values", path)
            return [_value(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(items)]
        if key in ("kvlistValue", "kvlist_value"):
            return _pairs(_list(_object(value, path), "values", path), path, depth)
        if key in ("bytesValue", "bytes_value"):
            return _bytes(value, path)
    return None


def _pairs(items: list[Any], path: str, depth: int) -> dict[str, Any]:
    pairs = [(_object(item, path), f"{path}[{number}]") for number, item in enumerate(items)]
    return {_text(pair.get("key"), inner): _value(pair.get("value"), inner, depth + 1) for pair, inner in pairs}


def _bytes(value: Any, path: str) -> bytes:
    try:
        return base64.b64decode(_text(value, path), validate=True)
    except (binascii.Error, ValueError):
        raise JsonSpanError(f"{path}: the bytes are not base64") from None


def _integer(value: Any, path: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isascii():
        try:
            return int(value)
        except ValueError:
            pass
    raise JsonSpanError(f"{path}: {_show(value)} where a whole number was expected")


def _double(value: Any, path: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise JsonSpanError(f"{path}: {_show(value)} where a number was expected")


def _time(value: Any, path: str) -> int:
    """Nanoseconds since 1970, given as such or as ISO 8601; 0 for nothing."""
    if value is None or value == "":
        return 0
    if isinstance(value, str) and not value.lstrip("-").isdecimal():
        if read_time(value) is None:
            raise JsonSpanError(f"{path}: {_show(value)} where a time was expected: nanoseconds since 1970 or ISO 8601")
        return nanoseconds_of(value)
    number = _integer(value, path)
    if not 0 <= number < _HIGHEST:
        raise JsonSpanError(f"{path}: {number} where nanoseconds since 1970 were expected")
    return number


def _text(value: Any, path: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    raise JsonSpanError(f"{path}: {name_kind(value)} where a text was expected")


def _show(value: Any) -> str:
    return repr(value[:40]) if isinstance(value, str) else name_kind(value)


_OTHERS: Mapping[str, tuple[str, ...]] = {
    "resourceSpans": ("resource_spans",), "scopeSpans": ("scope_spans",), "resourceLogs": ("resource_logs",),
    "scopeLogs": ("scope_logs",), "logRecords": ("log_records",), "eventName": ("event_name",),
    "traceId": ("trace_id",), "spanId": ("span_id",), "parentSpanId": ("parent_span_id", "parent_id"),
    "startTimeUnixNano": ("start_time_unix_nano", "start_time"), "endTimeUnixNano": ("end_time_unix_nano", "end_time"),
    "timeUnixNano": ("time_unix_nano", "timestamp"), "code": ("status_code",), "message": ("description",),
}  # fmt: skip
"""What else the keys are called: in snake case, and by console exporters and Phoenix."""


def _get(found: Mapping[str, Any], key: str) -> Any:
    value = found.get(key)
    if value is None:
        for other in _OTHERS.get(key, ()):
            if (value := found.get(other)) is not None:
                break
    return value


def _has(found: Mapping[str, Any], key: str) -> bool:
    return _get(found, key) is not None


def _child(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}


def _list(found: Mapping[str, Any], key: str, path: str) -> list[Any]:
    value = _get(found, key)
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise JsonSpanError(f"{f'{path}.{key}'.lstrip('.')}: {name_kind(value)} where a list was expected")


def _parts(found: Mapping[str, Any], key: str, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list, each with its path."""
    for number, one in enumerate(_list(found, key, path)):
        where = f"{path}.{key}[{number}]".lstrip(".")
        yield where, _object(one, where)


def _object(found: Any, path: str) -> Mapping[str, Any]:
    if isinstance(found, dict):
        return found
    raise JsonSpanError(f"{path}: {name_kind(found)} where an object was expected")
