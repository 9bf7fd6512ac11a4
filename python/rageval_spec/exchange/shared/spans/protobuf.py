"""OTLP as protobuf: spans in both directions, metrics and log records to send, and a receiver's replies.

Spans are read from an `ExportTraceServiceRequest` or from `TracesData`, which has the same fields.

OTLP uses little of protobuf, so functions for its wire format (varints, tags and lengths) replace a dependency. They
read with bounds and write canonically. A message is read in place, as `data` with a start and a stop: nothing is
copied before a field is wanted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rageval_spec.exchange.shared.spans.spans import Link, Span, SpanEvent

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_MOST_BITS = 64
_HIGHEST = (1 << 64) - 1
_SIGN = 1 << 63


class WireError(ValueError):
    """Bytes that are not the message they should be. `offset` counts from the start of the data."""

    def __init__(self, message: str, offset: int) -> None:
        """Say what is wrong, and at which byte."""
        super().__init__(message)
        self.offset = offset


def read_varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and the place after it.

    Raises:
        WireError: the data end inside the number, or it has more than ten bytes.
    """
    start, value, shift = at, 0, 0
    while at < stop:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _HIGHEST, at
        shift += 7
        if shift >= _MOST_BITS:
            raise WireError("a number has more than ten bytes", start)
    raise WireError("the data end inside a number", start)


def read_length(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """The start and the stop of a field that begins with its length.

    Raises:
        WireError: the field would end after `stop`.
    """
    if at < stop and data[at] < 0x80:  # most are short; a call would cost more than the reading
        length, start = data[at], at + 1
    else:
        length, start = read_varint(data, at, stop)
    if length > stop - start:
        raise WireError(f"a field of {length:,} bytes has only {stop - start:,} left", at)
    return start, start + length


def read_fields(data: bytes, at: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """Each field of a message: its number, its wire type, and its start and stop.

    The start of a varint is its value. Whoever does not know a number passes over it, as protobuf asks.

    Raises:
        WireError: the bytes are not a protobuf message.
    """
    while at < stop:
        tag, after = (data[at], at + 1) if data[at] < 0x80 else read_varint(data, at, stop)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise WireError("a field has the number 0", at)
        if kind == LENGTH:
            start, at = read_length(data, after, stop)
            yield number, kind, start, at
        elif kind == VARINT:
            value, at = read_varint(data, after, stop)
            yield number, kind, value, at
        elif kind in _WIDTHS:
            at = after + _WIDTHS[kind]
            if at > stop:
                raise WireError("the data end inside a number", after)
            yield number, kind, after, at
        else:
            raise WireError(f"a field has the wire type {kind}, which OTLP does not use", at)


def read_fixed64(data: bytes, at: int) -> int:
    """The unsigned number in the eight bytes at `at`."""
    return int.from_bytes(data[at : at + 8], "little")


def read_double(data: bytes, at: int) -> float:
    """The float in the eight bytes at `at`."""
    number: float = struct.unpack_from("<d", data, at)[0]
    return number


def read_text(data: bytes, start: int, stop: int) -> str:
    """The text of a field.

    Raises:
        WireError: the bytes are not UTF-8.
    """
    try:
        return data[start:stop].decode()
    except UnicodeDecodeError as error:
        raise WireError("a text is not UTF-8", start + error.start) from error


def to_signed(value: int) -> int:
    """A varint read as a signed number of 64 bits."""
    return value - (1 << 64) if value & _SIGN else value


def write_varint(value: int) -> bytes:
    """A number of up to 64 bits; a negative one takes ten bytes."""
    value &= _HIGHEST
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def write_message(number: int, content: bytes) -> bytes:
    """A field with a message, which is written even if it is empty."""
    return write_varint(number << 3 | LENGTH) + write_varint(len(content)) + content


def write_bytes(number: int, content: bytes) -> bytes:
    """A field with bytes; nothing if there are none, as proto3 asks."""
    return write_message(number, content) if content else b""


def write_text(number: int, text: str) -> bytes:
    """A field with text; nothing if it is empty. Half a surrogate pair, which UTF-8 cannot hold, becomes `?`."""
    return write_bytes(number, text.encode("utf-8", "replace"))


def write_number(number: int, value: int) -> bytes:
    """A varint field; nothing for 0."""
    return write_varint(number << 3 | VARINT) + write_varint(value) if value else b""


def write_fixed64(number: int, value: int) -> bytes:
    """A field of eight bytes; nothing for 0."""
    return write_varint(number << 3 | FIXED64) + value.to_bytes(8, "little") if value else b""


def write_double(number: int, value: float) -> bytes:
    """A field with a float, also for 0: it stands in a `oneof`, where the field's presence says what is meant."""
    return write_varint(number << 3 | FIXED64) + struct.pack("<d", value)


MOST_DEPTH = 32
"""The most lists and objects inside one another in an attribute."""
_TRACE_BYTES, _SPAN_BYTES = 16, 8


class Scope(NamedTuple):
    """What recorded a span: the name and version of the instrumentation."""

    name: str = ""
    version: str = ""


class SpanIdError(WireError):
    """A span whose ids are missing or have the wrong length."""


def decode_spans(data: bytes, place: str = "", reject: Callable[[SpanIdError], None] | None = None) -> Iterator[Span]:
    """The spans of a request, in order; `place` begins the place of each.

    With `reject`, spans without valid ids are passed over; it gets the error of each.

    Raises:
        WireError: the bytes are not such a request, or a span has no valid ids.
    """
    for number, kind, start, stop in read_fields(data, 0, len(data)):
        if number == 1 and kind == LENGTH:
            resource, spans = _find_spans(data, start, stop)
            for first, last in spans:
                if _is_log_record(data, first, last):
                    continue
                try:
                    span = _read_span(data, first, last, resource, place)
                except SpanIdError as error:
                    if reject is None:
                        raise
                    reject(error)
                else:
                    yield span


def decode_events(data: bytes) -> Iterator[LogEvent]:
    """The log records of a request that belong to a trace; none of a request with spans.

    Raises:
        WireError: the bytes are not such a request.
    """
    for number, kind, start, stop in read_fields(data, 0, len(data)):
        if number == 1 and kind == LENGTH:
            for first, last in _find_spans(data, start, stop)[1]:
                if _is_log_record(data, first, last) and (event := _read_log_event(data, first, last)) is not None:
                    yield event


def _is_log_record(data: bytes, at: int, stop: int) -> bool:
    """Whether a message is a log record: requests with spans and with logs have the same structure around these.

    A span begins with its trace's id, and that field is a time in a log record, which can also have only field 11.
    """
    if at < stop and data[at] == 1 << 3 | LENGTH:
        return False
    kinds = {number: kind for number, kind, _, _ in read_fields(data, at, stop)}
    return kinds.get(1) != LENGTH and FIXED64 in (kinds.get(1), kinds.get(11))


def _read_log_event(data: bytes, at: int, stop: int) -> LogEvent | None:
    """A log record with its ids; None without a trace's."""
    name, time, trace_id, span_id = "", 0, b"", b""
    attributes: dict[str, Any] = {}
    for number, kind, start, end in read_fields(data, at, stop):
        if kind == LENGTH:
            if number == 6:
                _read_attribute(data, start, end, attributes)
            elif number == 9:
                trace_id = data[start:end]
            elif number == 10:
                span_id = data[start:end]
            elif number == 12:
                name = read_text(data, start, end)
        elif number == 1 and kind == FIXED64:
            time = read_fixed64(data, start)
    if len(trace_id) != _TRACE_BYTES or not any(trace_id):
        return None
    return LogEvent(name, time, attributes, trace_id.hex(), span_id.hex() if any(span_id) else "")


def _find_spans(data: bytes, at: int, stop: int) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The resource of resource spans, and the start and stop of each span."""
    resource: dict[str, Any] = {}
    scopes: list[tuple[int, int]] = []
    for number, kind, start, end in read_fields(data, at, stop):
        if kind != LENGTH:
            continue
        if number == 1:
            for inner, _, first, last in _lengths(data, start, end):
                if inner == 1:
                    _read_attribute(data, first, last, resource)
        elif number == 2:
            scopes.append((start, end))
    spans = [
        (first, last) for start, end in scopes for number, _, first, last in _lengths(data, start, end) if number == 2
    ]
    return resource, spans


def _lengths(data: bytes, at: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    return (field for field in read_fields(data, at, stop) if field[1] == LENGTH)


def _read_span(data: bytes, at: int, stop: int, resource: Mapping[str, Any], place: str) -> Span:
    trace_id = span_id = parent_id = b""
    name = message = ""
    begun = ended = status = span_kind = 0
    attributes: dict[str, Any] = {}
    events: list[SpanEvent] = []
    links: list[Link] = []
    for number, kind, start, end in read_fields(data, at, stop):
        if kind == LENGTH:
            if number == 9:
                _read_attribute(data, start, end, attributes)
            elif number == 1:
                trace_id = data[start:end]
            elif number == 2:
                span_id = data[start:end]
            elif number == 4:
                parent_id = data[start:end]
            elif number == 5:
                name = read_text(data, start, end)
            elif number == 11:
                events.append(_read_event(data, start, end))
            elif number == 13:
                links.append(_read_link(data, start, end))
            elif number == 15:
                status, message = _read_status(data, start, end)
        elif kind == FIXED64:
            if number == 7:
                begun = read_fixed64(data, start)
            elif number == 8:
                ended = read_fixed64(data, start)
        elif number == 6 and kind == VARINT:
            span_kind = start
    _check_id("trace", trace_id, _TRACE_BYTES, at)
    _check_id("span", span_id, _SPAN_BYTES, at)
    if parent_id and any(parent_id):
        _check_id("parent span", parent_id, _SPAN_BYTES, at)
    parent = parent_id.hex() if any(parent_id) else None
    where = f"{place}byte {at:,}" if place else f"byte {at:,}"
    return Span(
        trace_id.hex(), span_id.hex(), parent, name, begun, ended, attributes, tuple(events), tuple(links),
        status, message, resource, span_kind, where,
    )  # fmt: skip


def _check_id(what: str, found: bytes, length: int, at: int) -> None:
    if len(found) != length:
        raise SpanIdError(f"a {what} id has {len(found):,} bytes where {length} were expected", at)
    if not any(found):
        raise SpanIdError(f"a {what} id has only zeros", at)


def _read_event(data: bytes, at: int, stop: int) -> SpanEvent:
    name, time = "", 0
    attributes: dict[str, Any] = {}
    for number, kind, start, end in read_fields(data, at, stop):
        if number == 3 and kind == LENGTH:
            _read_attribute(data, start, end, attributes)
        elif number == 2 and kind == LENGTH:
            name = read_text(data, start, end)
        elif number == 1 and kind == FIXED64:
            time = read_fixed64(data, start)
    return SpanEvent(name, time, attributes)


def _read_link(data: bytes, at: int, stop: int) -> Link:
    trace_id = span_id = b""
    attributes: dict[str, Any] = {}
    for number, _, start, end in _lengths(data, at, stop):
        if number == 1:
            trace_id = data[start:end]
        elif number == 2:
            span_id = data[start:end]
        elif number == 4:
            _read_attribute(data, start, end, attributes)
    return Link(trace_id.hex(), span_id.hex(), attributes)


def _read_status(data: bytes, at: int, stop: int) -> tuple[int, str]:
    code, message = 0, ""
    for number, kind, start, end in read_fields(data, at, stop):
        if number == 2 and kind == LENGTH:
            message = read_text(data, start, end)
        elif number == 3 and kind == VARINT:
            code = start
    return code, message


def _read_attribute(data: bytes, at: int, stop: int, into: dict[str, Any], depth: int = 0) -> None:
    """Read a `KeyValue`. Almost all are a short key and a text, in this order: those need no general reader."""
    if stop - at > 3 and data[at] == 0x0A and (length := data[at + 1]) < 0x80:
        middle = at + 2 + length
        if middle + 1 < stop and data[middle] == 0x12:
            start, end = read_length(data, middle + 1, stop)
            if end == stop:
                text = _find_text(data, start, stop)
                try:  # both at once, without calls; what is not UTF-8 is read again below, which says where
                    if text:
                        into[data[at + 2 : middle].decode()] = data[text:stop].decode()
                        return
                except UnicodeDecodeError:
                    pass
                into[read_text(data, at + 2, middle)] = _read_value(data, start, end, depth)
                return
    key, value = "", None
    for number, _, start, end in _lengths(data, at, stop):
        if number == 1:
            key = read_text(data, start, end)
        elif number == 2:
            value = _read_value(data, start, end, depth)
    into[key] = value


def _find_text(data: bytes, at: int, stop: int) -> int:
    """Where the text of a value begins that is nothing but a text of less than 16 KiB; 0 for any other value."""
    if stop - at < 2 or data[at] != 0x0A:
        return 0
    length, start = data[at + 1], at + 2
    if length >= 0x80 and start < stop and data[start] < 0x80:
        length, start = length & 0x7F | data[start] << 7, start + 1
    return start if start + length == stop else 0


def _read_value(data: bytes, at: int, stop: int, depth: int) -> Any:
    if stop - at > 1 and data[at] == 0x0A:
        start, end = read_length(data, at + 1, stop)
        if end == stop:
            return read_text(data, start, end)
    value: Any = None
    for number, kind, start, end in read_fields(data, at, stop):
        if kind == VARINT:
            value = bool(start) if number == 2 else to_signed(start) if number == 3 else value
        elif kind == FIXED64:
            value = read_double(data, start) if number == 4 else value
        elif number == 1:
            value = read_text(data, start, end)
        elif number in (5, 6):
            value = _read_several(data, start, end, number == 5, depth + 1)
        elif number == 7:
            value = data[start:end]
    return value


def _read_several(data: bytes, at: int, stop: int, is_list: bool, depth: int) -> Any:
    if depth > MOST_DEPTH:
        raise WireError(f"an attribute has more than {MOST_DEPTH} lists and objects inside one another", at)
    if is_list:
        return [
            _read_value(data, start, end, depth) for number, _, start, end in _lengths(data, at, stop) if number == 1
        ]
    found: dict[str, Any] = {}
    for number, _, start, end in _lengths(data, at, stop):
        if number == 1:
            _read_attribute(data, start, end, found, depth)
    return found


def encode_spans(spans: Iterable[Span], scope: Scope | None = None) -> bytes:
    """A request with these spans. Neighbours with the same resource share it."""
    written = []
    for resource, group in groupby(spans, key=lambda span: encode_resource(span.resource)):
        inside = encode_scope(scope or Scope()) + b"".join(write_message(2, encode_span(span)) for span in group)
        written.append(write_message(1, resource + write_message(2, inside)))
    return b"".join(written)


def encode_resource(resource: Mapping[str, Any]) -> bytes:
    """The field `resource` of resource spans, metrics or logs."""
    return write_message(1, encode_attributes(1, resource))


def encode_scope(scope: Scope) -> bytes:
    """The field `scope` of spans, metrics or logs; nothing without a name."""
    return write_message(1, write_text(1, scope.name) + write_text(2, scope.version)) if scope.name else b""


def encode_span(span: Span) -> bytes:
    """The message `Span`.

    Raises:
        ValueError: an id is not hexadecimal.
    """
    status = write_text(2, span.message) + write_number(3, span.status)
    return b"".join(
        [
            write_bytes(1, bytes.fromhex(span.trace_id)),
            write_bytes(2, bytes.fromhex(span.span_id)),
            write_bytes(4, bytes.fromhex(span.parent_id or "")),
            write_text(5, span.name),
            write_number(6, span.kind),
            write_fixed64(7, span.start),
            write_fixed64(8, span.end),
            encode_attributes(9, span.attributes),
            *(write_message(11, _encode_event(event)) for event in span.events),
            *(write_message(13, _encode_link(link)) for link in span.links),
            write_bytes(15, status),
        ]
    )


def _encode_event(event: SpanEvent) -> bytes:
    return write_fixed64(1, event.time) + write_text(2, event.name) + encode_attributes(3, event.attributes)


def _encode_link(link: Link) -> bytes:
    ids = write_bytes(1, bytes.fromhex(link.trace_id)) + write_bytes(2, bytes.fromhex(link.span_id))
    return ids + encode_attributes(4, link.attributes)


def encode_attributes(number: int, attributes: Mapping[str, Any]) -> bytes:
    """Each attribute as a `KeyValue` in a field of this number; those that are None are left out."""
    return b"".join(
        write_message(number, write_text(1, key) + write_message(2, encode_value(value)))
        for key, value in attributes.items()
        if value is not None
    )


def encode_value(value: Any) -> bytes:
    """The message `AnyValue`. What is no text, number, Boolean, bytes, list or object is written as its text."""
    if isinstance(value, str):
        return write_message(1, value.encode("utf-8", "replace"))
    if isinstance(value, bool):
        return write_varint(2 << 3) + write_varint(value)
    if isinstance(value, int):
        fits = -(1 << 63) <= value < 1 << 63
        return write_varint(3 << 3) + write_varint(value) if fits else write_double(4, float(value))
    if isinstance(value, float):
        return write_double(4, value)
    if isinstance(value, bytes):
        return write_message(7, value)
    if isinstance(value, Mapping):
        items = ((str(key), inner) for key, inner in value.items())
        return write_message(6, b"".join(
            write_message(1, write_text(1, key) + write_message(2, encode_value(inner))) for key, inner in items
        ))  # fmt: skip
    if isinstance(value, list | tuple):
        return write_message(5, b"".join(write_message(1, encode_value(inner)) for inner in value))
    return b"" if value is None else write_message(1, str(value).encode("utf-8", "replace"))


INFO = 9


class Gauge(NamedTuple):
    """One number of a metric; `time` is in nanoseconds since 1970."""

    name: str
    value: float
    attributes: Mapping[str, Any]
    time: int
    description: str = ""
    unit: str = "1"


class LogEvent(NamedTuple):
    """An event as a log record. It belongs to a span, unless both ids are empty."""

    name: str
    time: int
    attributes: Mapping[str, Any]
    trace_id: str
    span_id: str


def encode_gauges(gauges: Iterable[Gauge], resource: Mapping[str, Any], scope: Scope) -> bytes:
    """An `ExportMetricsServiceRequest`. Neighbours with the same name are points of one metric."""
    groups = groupby(gauges, key=lambda gauge: (gauge.name, gauge.description, gauge.unit))
    metrics = b"".join(write_message(2, _encode_metric(*named, list(points))) for named, points in groups)
    return write_message(1, encode_resource(resource) + write_message(2, encode_scope(scope) + metrics))


def _encode_metric(name: str, description: str, unit: str, points: Sequence[Gauge]) -> bytes:
    data = b"".join(
        write_message(1, write_fixed64(3, one.time) + write_double(4, one.value) + encode_attributes(7, one.attributes))
        for one in points
    )
    return write_text(1, name) + write_text(2, description) + write_text(3, unit) + write_message(5, data)


def encode_events(events: Iterable[LogEvent], resource: Mapping[str, Any], scope: Scope) -> bytes:
    """An `ExportLogsServiceRequest`."""
    records = b"".join(write_message(2, _encode_log_event(event)) for event in events)
    return write_message(1, encode_resource(resource) + write_message(2, encode_scope(scope) + records))


def _encode_log_event(event: LogEvent) -> bytes:
    return b"".join(
        [
            write_fixed64(1, event.time),
            write_number(2, INFO),
            encode_attributes(6, event.attributes),
            write_bytes(9, bytes.fromhex(event.trace_id)),
            write_bytes(10, bytes.fromhex(event.span_id)),
            write_fixed64(11, event.time),
            write_text(12, event.name),
        ]
    )


def read_rejection(reply: bytes) -> tuple[int, str]:
    """How many spans, points or records a receiver rejected, and why, from the protobuf of its answer.

    Raises:
        WireError: the answer is no protobuf.
    """
    rejected, message = 0, ""
    for number, kind, start, stop in read_fields(reply, 0, len(reply)):
        if number == 1 and kind == LENGTH:
            for inner, inner_kind, first, last in read_fields(reply, start, stop):
                if inner == 1 and inner_kind == VARINT:
                    rejected = first
                elif inner == 2 and inner_kind == LENGTH:
                    message = read_text(reply, first, last)
        elif number == 1:
            raise WireError("an answer has a number in place of a message", start)
    return rejected, message
