"""Metrics and log records of OTLP as protobuf, and what a receiver answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rageval_spec.exchange.shared.otlp.protobuf_spans import (
    Scope,
    encode_attributes,
    encode_resource,
    encode_scope,
)
from rageval_spec.exchange.shared.otlp.wire import (
    LENGTH,
    VARINT,
    WireError,
    read_fields,
    read_text,
    write_bytes,
    write_double,
    write_fixed64,
    write_message,
    write_number,
    write_text,
)

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
    """An event as a log record, which belongs to a span."""

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
    records = b"".join(write_message(2, _encode_event(event)) for event in events)
    return write_message(1, encode_resource(resource) + write_message(2, encode_scope(scope) + records))


def _encode_event(event: LogEvent) -> bytes:
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
