"""A span: one timed step of a program, as OpenTelemetry and the tools built on it record it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rageval_spec.exchange.shared.windows import format_moment

UNSET, OK, ERROR = 0, 1, 2
SECOND = 1_000_000_000
"""In nanoseconds."""
_LATEST = 253_402_300_799 * SECOND
"""The last second of the year 9999."""


class Event(NamedTuple):
    """Something that happened during a span; `time` is in nanoseconds since 1970."""

    name: str
    time: int = 0
    attributes: Mapping[str, Any] = {}


class Link(NamedTuple):
    """A span that this one refers to."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Any] = {}


class Span(NamedTuple):
    """One step, with its place among the others.

    Attributes:
        trace_id, span_id: 32 and 16 hexadecimal digits, lower case; another tool's own ids may have another form.
        parent_id: the span that this one is part of; None for a root.
        start, end: nanoseconds since 1970; 0 if not known.
        attributes: text, numbers, Booleans, lists and objects by name, as they were recorded.
        status: `UNSET`, `OK` or `ERROR`; `message` says what went wrong.
        resource: attributes of the program that recorded the span, such as `service.name`.
        kind: OpenTelemetry's kind of span as a number: 1 internal, 2 server, 3 client.
        place: where the span was read, for messages.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    start: int = 0
    end: int = 0
    attributes: Mapping[str, Any] = {}
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    status: int = UNSET
    message: str = ""
    resource: Mapping[str, Any] = {}
    kind: int = 0
    place: str = ""


def seconds_of(span: Span) -> float | None:
    """How long a span took; None if it has no times, or does not end after it begins."""
    return (span.end - span.start) / SECOND if 0 < span.start < span.end else None


def format_nanoseconds(time: int) -> str | None:
    """A time in nanoseconds since 1970 as ISO 8601 in UTC, cut to microseconds; None for 0 and after the year 9999."""
    if not 0 < time <= _LATEST:
        return None
    seconds, rest = divmod(time, SECOND)
    return format_moment(datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000))
