"""The own reader and writer of OTLP's protobuf against opentelemetry-proto, which is Google's protobuf."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.exchange.shared.spans.protobuf import (
    MOST_DEPTH,
    Gauge,
    LogEvent,
    Scope,
    WireError,
    decode_spans,
    encode_events,
    encode_gauges,
    encode_spans,
    read_fields,
    read_rejection,
    read_varint,
    to_signed,
    write_bytes,
    write_fixed64,
    write_message,
    write_number,
    write_text,
    write_varint,
)
from rageval_spec.exchange.shared.spans.spans import Span
from tests.exchange.shared.spans.strategies import SPANS

trace_service = pytest.importorskip(
    "opentelemetry.proto.collector.trace.v1.trace_service_pb2",
    reason="needs the package opentelemetry-proto: uv pip install opentelemetry-proto",
)


@settings(max_examples=60, deadline=None)
@given(st.lists(SPANS, max_size=4))
def test_what_is_written_is_what_protobuf_would_write(spans: list[Span]) -> None:
    written = encode_spans(spans, Scope("rageval-spec", "1"))
    parsed = trace_service.ExportTraceServiceRequest.FromString(written)
    assert parsed.SerializeToString(deterministic=True) == written
    assert sum(len(scope.spans) for one in parsed.resource_spans for scope in one.scope_spans) == len(spans)


@settings(max_examples=60, deadline=None)
@given(st.lists(SPANS, max_size=4))
def test_what_was_written_is_read_back(spans: list[Span]) -> None:
    read = [span._replace(place="") for span in decode_spans(encode_spans(spans))]
    assert read == spans


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_spans_or_one_error(data: bytes) -> None:
    try:
        list(decode_spans(data))
    except WireError as error:
        assert 0 <= error.offset <= len(data)


@settings(max_examples=60, deadline=None)
@given(SPANS, st.data())
def test_half_a_request_is_an_error_or_fewer_spans(span: Span, data: st.DataObject) -> None:
    written = encode_spans([span])
    cut = data.draw(st.integers(1, len(written) - 1))
    with pytest.raises(WireError):
        list(decode_spans(written[:cut]))


def _request(span: bytes) -> bytes:
    return write_message(1, write_message(2, write_message(2, span)))


IDENTIFIED = write_bytes(1, b"t" * 16) + write_bytes(2, b"s" * 8)


def _attribute(value: bytes) -> bytes:
    return write_message(9, write_text(1, "key") + write_message(2, value))


def test_fields_that_are_not_known_are_passed_over() -> None:
    unknown = write_message(99, b"x") + write_varint(98 << 3) + b"\x05" + write_varint(97 << 3 | 5) + b"abcd"
    (span,) = decode_spans(_request(unknown + IDENTIFIED + unknown))
    assert span.trace_id == (b"t" * 16).hex()


def test_a_resource_after_its_spans_counts_for_them() -> None:
    spans = write_message(2, write_message(2, IDENTIFIED))
    resource = write_message(
        1, write_message(1, write_text(1, "service.name") + write_message(2, write_text(1, "bot")))
    )
    (span,) = decode_spans(write_message(1, spans + resource))
    assert span.resource == {"service.name": "bot"}


def test_an_attribute_whose_value_comes_first_is_read() -> None:
    turned = write_message(9, write_message(2, write_text(1, "v")) + write_text(1, "k"))
    (span,) = decode_spans(_request(IDENTIFIED + turned))
    assert span.attributes == {"k": "v"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<html><body>502 Bad Gateway</body></html>", "wire type"),
        (b"\x0a\xff\xff\xff\xff\x0f", "bytes has only"),
        (b"\x0a" + b"\xff" * 12, "more than ten bytes"),
        (b"\x0a\x80", "end inside a number"),
        (b"\x02\x00", "the number 0"),
        (_request(write_bytes(1, b"short") + write_bytes(2, b"s" * 8)), "a trace id has 5 bytes where 16"),
        (_request(write_bytes(1, b"t" * 16)), "a span id has 0 bytes"),
        (_request(write_bytes(1, bytes(16)) + write_bytes(2, b"s" * 8)), "only zeros"),
        (_request(IDENTIFIED + write_message(9, b"\x0a\x01k\x12\x03\x0a\x01\xff")), "not UTF-8"),
    ],
    ids=["html", "long field", "varint bomb", "half a varint", "zero", "short id", "no id", "zero id", "text"],
)
def test_what_is_no_request_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        list(decode_spans(data))


def test_lists_deep_inside_one_another_are_an_error() -> None:
    value: Any = "x"
    for _ in range(MOST_DEPTH + 1):
        value = [value]
    deep = encode_spans([Span("1" * 32, "2" * 16, attributes={"deep": value})])
    with pytest.raises(WireError, match=f"more than {MOST_DEPTH} lists"):
        list(decode_spans(deep))


def test_numbers_that_do_not_fit_become_floats() -> None:
    (span,) = decode_spans(encode_spans([Span("1" * 32, "2" * 16, attributes={"big": 1 << 70})]))
    assert span.attributes == {"big": float(1 << 70)}


def test_a_place_is_the_byte_at_which_the_span_begins() -> None:
    written = encode_spans([Span("1" * 32, "2" * 16, name="a"), Span("1" * 32, "3" * 16, name="b")])
    places = [int(span.place.removeprefix("requests.bin: byte ")) for span in decode_spans(written, "requests.bin: ")]
    assert [written[place + 2 : place + 18].hex() for place in places] == ["1" * 32] * 2
    assert places[0] < places[1]


def test_a_double_of_zero_stays_a_double() -> None:
    (span,) = decode_spans(encode_spans([Span("1" * 32, "2" * 16, attributes={"zero": 0.0, "none": 0})]))
    assert struct.pack("<d", span.attributes["zero"]) == bytes(8)
    assert [type(value) for value in span.attributes.values()] == [float, int]


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    written = write_varint(value)
    read, after = read_varint(written, 0, len(written))
    assert (to_signed(read), after) == (value, len(written))


def test_fields_have_their_number_kind_and_place() -> None:
    data = write_number(3, 300) + write_text(4, "ab") + write_fixed64(5, 7)
    fields = list(read_fields(data, 0, len(data)))
    assert [field[:2] for field in fields] == [(3, 0), (4, 2), (5, 1)]
    assert fields[0][2] == 300 and data[fields[1][2] : fields[1][3]] == b"ab"


def test_what_is_zero_or_empty_is_not_written() -> None:
    assert write_number(1, 0) + write_text(1, "") + write_fixed64(1, 0) == b""
    assert write_message(1, b"") == b"\x0a\x00"


def test_a_field_never_reaches_beyond_its_message() -> None:
    data = write_message(1, write_text(1, "abc")) + write_text(2, "tail")
    with pytest.raises(WireError, match="5 bytes has only 3 left"):
        list(read_fields(b"\x0a\x05abc" + data, 0, 5))


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    assert write_text(1, "\ud800") == b"\x0a\x01?"


HOW = "needs the package opentelemetry-proto: uv pip install opentelemetry-proto"
SCOPE = Scope("rageval-spec", "1")


def test_gauges_are_those_of_protobuf() -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", reason=HOW)
    gauges = [
        Gauge("rageval.metric.value", value, {"metric": "ndcg@10", "system": system}, 5, "The mean.")
        for system, value in (("a", 0.0), ("b", 0.75))
    ]
    written = encode_gauges([*gauges, Gauge("other", 1.5, {}, 6)], {"service.name": "x"}, SCOPE)
    parsed = service.ExportMetricsServiceRequest.FromString(written)
    assert parsed.SerializeToString(deterministic=True) == written
    first, second = parsed.resource_metrics[0].scope_metrics[0].metrics
    assert (first.name, first.description, first.unit) == ("rageval.metric.value", "The mean.", "1")
    assert [point.as_double for point in first.gauge.data_points] == [0.0, 0.75]
    assert first.gauge.data_points[0].HasField("as_double") and first.gauge.data_points[1].time_unix_nano == 5
    assert second.name == "other"


def test_events_are_log_records_of_their_span() -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2", reason=HOW)
    event = LogEvent("gen_ai.evaluation.result", 7, {"gen_ai.evaluation.name": "f"}, "0a" * 16, "0b" * 8)
    written = encode_events([event], {}, SCOPE)
    parsed = service.ExportLogsServiceRequest.FromString(written)
    assert parsed.SerializeToString(deterministic=True) == written
    (record,) = parsed.resource_logs[0].scope_logs[0].log_records
    assert (record.event_name, record.trace_id.hex(), record.span_id.hex()) == (event.name, "0a" * 16, "0b" * 8)
    assert record.time_unix_nano == record.observed_time_unix_nano == 7


def test_rejections() -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason=HOW)
    partial = service.ExportTracePartialSuccess(rejected_spans=3, error_message="too old")
    assert read_rejection(service.ExportTraceServiceResponse(partial_success=partial).SerializeToString()) == (
        3,
        "too old",
    )
    assert read_rejection(b"") == (0, "")
    with pytest.raises(WireError):
        read_rejection(b"<html>")
