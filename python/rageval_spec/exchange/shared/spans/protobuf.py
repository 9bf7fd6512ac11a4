"""OTLP as protobuf: spans and evaluation results in both directions, metrics to send, and a receiver's replies.

Spans are read from an `ExportTraceServiceRequest` or from `TracesData`, which has the same fields. The messages are
those of `opentelemetry-proto`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rageval_spec.exchange.shared.spans.spans import Link, Span, SpanEvent
from rageval_spec.recorded.values import clean_text

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint
    from opentelemetry.proto.trace.v1 import trace_pb2

MOST_DEPTH = 32
"""The most lists and objects inside one another in an attribute."""
INFO = 9
_TRACE_BYTES, _SPAN_BYTES = 16, 8
M = TypeVar("M", bound="Message")


class WireError(ValueError):
    """Bytes that are not the message they should be."""


class SpanIdError(WireError):
    """A span whose ids are missing or have the wrong length."""


class Scope(NamedTuple):
    """What recorded a span: the name and version of the instrumentation."""

    name: str = ""
    version: str = ""


class Gauge(NamedTuple):
    """One number of a metric; `time` is in nanoseconds since 1970. A total never falls."""

    name: str
    value: float
    attributes: Mapping[str, Any]
    time: int
    description: str = ""
    unit: str = "1"
    is_total: bool = False


class LogEvent(NamedTuple):
    """An event as a log record. It belongs to a span, unless both ids are empty."""

    name: str
    time: int
    attributes: Mapping[str, Any]
    trace_id: str
    span_id: str


def decode_spans(data: bytes, place: str = "", reject: Callable[[SpanIdError], None] | None = None) -> Iterator[Span]:
    """The spans of a request, in order; `place` begins the place of each. A request with log records has none.

    With `reject`, spans without valid ids are passed over; it gets the error of each.

    Raises:
        WireError: the bytes are not such a request, or a span has no valid ids.
    """
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        request = _parse(ExportTraceServiceRequest, data)
    except WireError:
        if _list_records(data):
            return
        raise
    number = 0
    for of_resource in request.resource_spans:
        resource = _read_attributes(of_resource.resource.attributes)
        for span in (span for of_scope in of_resource.scope_spans for span in of_scope.spans):
            number += 1
            try:
                yield _read_span(span, resource, f"{place}span {number:,}")
            except SpanIdError as error:
                if number == 1 and not span.trace_id and _list_records(data):  # then no message is a span
                    return
                if reject is None:
                    raise
                reject(error)


def decode_events(data: bytes) -> Iterator[LogEvent]:
    """The log records of a request that belong to a trace; none of a request with spans."""
    for record in _list_records(data):
        if len(record.trace_id) == _TRACE_BYTES and any(record.trace_id):
            span_id = record.span_id.hex() if any(record.span_id) else ""
            attributes = _read_attributes(record.attributes)
            yield LogEvent(record.event_name, record.time_unix_nano, attributes, record.trace_id.hex(), span_id)


def _list_records(data: bytes) -> list[LogRecord]:
    """The log records of a request: messages with a time, which no message of a request with spans has there."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    try:
        request = _parse(ExportLogsServiceRequest, data)
    except WireError:
        return []
    scopes = (scope for one in request.resource_logs for scope in one.scope_logs)
    records = (record for scope in scopes for record in scope.log_records)
    return [record for record in records if record.time_unix_nano or record.observed_time_unix_nano]


def _parse(kind: type[M], data: bytes) -> M:
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError:
        raise WireError("the bytes are damaged, cut off, or not protobuf") from None


def _read_span(span: trace_pb2.Span, resource: Mapping[str, Any], place: str) -> Span:
    _check_id("trace", span.trace_id, _TRACE_BYTES, place)
    _check_id("span", span.span_id, _SPAN_BYTES, place)
    parent = span.parent_span_id if any(span.parent_span_id) else b""
    if parent:
        _check_id("parent span", parent, _SPAN_BYTES, place)
    return Span(
        span.trace_id.hex(),
        span.span_id.hex(),
        parent.hex() or None,
        span.name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _read_attributes(span.attributes),
        tuple(SpanEvent(one.name, one.time_unix_nano, _read_attributes(one.attributes)) for one in span.events),
        tuple(Link(one.trace_id.hex(), one.span_id.hex(), _read_attributes(one.attributes)) for one in span.links),
        span.status.code,
        span.status.message,
        resource,
        span.kind,
        place,
    )


def _check_id(what: str, found: bytes, length: int, place: str) -> None:
    if len(found) != length:
        raise SpanIdError(f"{place}: a {what} id has {len(found):,} bytes where {length} were expected")
    if not any(found):
        raise SpanIdError(f"{place}: a {what} id has only zeros")


def _read_attributes(pairs: Iterable[KeyValue], depth: int = 0) -> dict[str, Any]:
    return {pair.key: _read_value(pair.value, depth) for pair in pairs}


def _read_value(value: AnyValue, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind in ("array_value", "kvlist_value"):
        if depth == MOST_DEPTH:
            raise WireError(f"an attribute has more than {MOST_DEPTH} lists and objects inside one another")
        if kind == "kvlist_value":
            return _read_attributes(value.kvlist_value.values, depth + 1)
        return [_read_value(one, depth + 1) for one in value.array_value.values]
    return None if kind is None else getattr(value, kind)


def encode_spans(spans: Iterable[Span], scope: Scope | None = None) -> bytes:
    """A request with these spans. Neighbours with the same resource share it."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    for resource, group in groupby(spans, key=lambda span: span.resource):
        of_scope = _open_scope(request.resource_spans.add(), "scope_spans", resource, scope)
        for span in group:
            _write_span(span, of_scope.spans.add())
    return request.SerializeToString(deterministic=True)


def _open_scope(of_resource: Any, scopes: str, resource: Mapping[str, Any], scope: Scope | None) -> Any:
    """The message for what was recorded: the resource and the scope stand around spans, metrics and logs alike."""
    of_resource.resource.SetInParent()
    _write_attributes(resource, of_resource.resource.attributes)
    of_scope = getattr(of_resource, scopes).add()
    if scope and scope.name:
        of_scope.scope.name, of_scope.scope.version = scope
    return of_scope


def _write_span(span: Span, message: trace_pb2.Span) -> None:
    message.trace_id, message.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
    message.parent_span_id = bytes.fromhex(span.parent_id or "")
    message.name, message.kind = clean_text(span.name), span.kind  # type: ignore[assignment]
    message.start_time_unix_nano, message.end_time_unix_nano = span.start, span.end
    _write_attributes(span.attributes, message.attributes)
    for event in span.events:
        of_event = message.events.add(time_unix_nano=event.time, name=clean_text(event.name))
        _write_attributes(event.attributes, of_event.attributes)
    for link in span.links:
        of_link = message.links.add(trace_id=bytes.fromhex(link.trace_id), span_id=bytes.fromhex(link.span_id))
        _write_attributes(link.attributes, of_link.attributes)
    if span.status or span.message:
        message.status.code, message.status.message = span.status, clean_text(span.message)  # type: ignore[assignment]


def _write_attributes(attributes: Mapping[Any, Any], pairs: Any) -> None:
    """Each attribute as a `KeyValue`; those that are None are left out."""
    for key, value in attributes.items():
        if value is not None:
            _write_value(value, pairs.add(key=clean_text(str(key))).value)


def _write_value(value: Any, message: AnyValue) -> None:
    """Fill an `AnyValue` in. What is no text, number, Boolean, bytes, list or object is written as its text."""
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        message.int_value = value
    elif isinstance(value, int | float):
        message.double_value = float(value)
    elif isinstance(value, bytes):
        message.bytes_value = value
    elif isinstance(value, Mapping):
        message.kvlist_value.SetInParent()
        for key, inner in value.items():
            pair = message.kvlist_value.values.add(key=clean_text(str(key)))
            pair.value.SetInParent()
            _write_value(inner, pair.value)
    elif isinstance(value, list | tuple):
        message.array_value.SetInParent()
        for inner in value:
            _write_value(inner, message.array_value.values.add())
    elif value is not None:
        message.string_value = clean_text(str(value))


def encode_gauges(gauges: Iterable[Gauge], resource: Mapping[str, Any], scope: Scope) -> bytes:
    """An `ExportMetricsServiceRequest`. Neighbours with the same name are points of one metric."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

    request = ExportMetricsServiceRequest()
    of_scope = _open_scope(request.resource_metrics.add(), "scope_metrics", resource, scope)
    for (*named, is_total), points in groupby(gauges, key=lambda one: (*one[:1], *one[4:])):
        name, description, unit = map(clean_text, named)
        metric = of_scope.metrics.add(name=name, description=description, unit=unit)
        if is_total:
            metric.sum.is_monotonic, metric.sum.aggregation_temporality = True, AGGREGATION_TEMPORALITY_CUMULATIVE
        series = metric.sum if is_total else metric.gauge
        for one in points:
            point: NumberDataPoint = series.data_points.add(time_unix_nano=one.time, as_double=one.value)
            _write_attributes(one.attributes, point.attributes)
    return request.SerializeToString(deterministic=True)


def encode_events(events: Iterable[LogEvent], resource: Mapping[str, Any], scope: Scope) -> bytes:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    request = ExportLogsServiceRequest()
    of_scope = _open_scope(request.resource_logs.add(), "scope_logs", resource, scope)
    for event in events:
        record = of_scope.log_records.add(
            time_unix_nano=event.time,
            observed_time_unix_nano=event.time,
            severity_number=INFO,
            trace_id=bytes.fromhex(event.trace_id),
            span_id=bytes.fromhex(event.span_id),
            event_name=clean_text(event.name),
        )
        _write_attributes(event.attributes, record.attributes)
    return request.SerializeToString(deterministic=True)


def encode_rejection(rejected: int, message: str) -> bytes:
    """A receiver's answer: how many spans it rejected, and why; empty for none."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans, response.partial_success.error_message = rejected, message
    return response.SerializeToString()


def read_rejection(reply: bytes) -> tuple[int, str]:
    """How many spans, points or records a receiver rejected, and why, from the protobuf of its answer.

    The answers to all three have the same fields.
    """
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    partial = _parse(ExportTraceServiceResponse, reply).partial_success
    return partial.rejected_spans, partial.error_message


def encode_status(code: int, message: str) -> bytes:
    """The `google.rpc.Status` of a refusal. Its first two fields are those of the rejected spans."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTracePartialSuccess

    return ExportTracePartialSuccess(rejected_spans=code, error_message=message).SerializeToString()
