"""Spans of a protobuf `ExportTraceServiceRequest` (or `TracesData`, which has the same fields), and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from rageval_spec.exchange.shared.otlp.wire import (
    FIXED64,
    LENGTH,
    VARINT,
    WireError,
    read_double,
    read_fields,
    read_fixed64,
    read_length,
    read_text,
    to_signed,
    write_bytes,
    write_double,
    write_fixed64,
    write_message,
    write_number,
    write_text,
    write_varint,
)
from rageval_spec.exchange.shared.spans import Event, Link, Span

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
                try:
                    span = _read_span(data, first, last, resource, place)
                except SpanIdError as error:
                    if reject is None:
                        raise
                    reject(error)
                else:
                    yield span


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
    events: list[Event] = []
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


def _read_event(data: bytes, at: int, stop: int) -> Event:
    name, time = "", 0
    attributes: dict[str, Any] = {}
    for number, kind, start, end in read_fields(data, at, stop):
        if number == 3 and kind == LENGTH:
            _read_attribute(data, start, end, attributes)
        elif number == 2 and kind == LENGTH:
            name = read_text(data, start, end)
        elif number == 1 and kind == FIXED64:
            time = read_fixed64(data, start)
    return Event(name, time, attributes)


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


def _encode_event(event: Event) -> bytes:
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
