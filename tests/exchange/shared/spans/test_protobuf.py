"""Spans, evaluation results and metrics as OTLP's protobuf, and what is no such request."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from rageval_spec.exchange.shared.spans import protobuf
from rageval_spec.exchange.shared.spans.protobuf import (
    MOST_DEPTH,
    Gauge,
    LogEvent,
    Scope,
    WireError,
    decode_events,
    decode_spans,
    encode_events,
    encode_gauges,
    encode_spans,
    read_rejection,
)
from rageval_spec.exchange.shared.spans.spans import Span
from tests.exchange.shared.spans.strategies import SPANS


@settings(max_examples=60, deadline=None)
@given(st.lists(SPANS, max_size=4))
def test_what_was_written_is_read_back(spans: list[Span]) -> None:
    read = [span._replace(place="") for span in decode_spans(encode_spans(spans))]
    assert read == spans


@settings(max_examples=60, deadline=None)
@given(SPANS, st.data())
def test_half_a_request_is_an_error_or_fewer_spans(span: Span, data: st.DataObject) -> None:
    written = encode_spans([span])
    cut = data.draw(st.integers(1, len(written) - 1))
    with pytest.raises(WireError):
        list(decode_spans(written[:cut]))


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


def test_a_double_of_zero_stays_a_double() -> None:
    (span,) = decode_spans(encode_spans([Span("1" * 32, "2" * 16, attributes={"zero": 0.0, "none": 0})]))
    assert struct.pack("<d", span.attributes["zero"]) == bytes(8)
    assert [type(value) for value in span.attributes.values()] == [float, int]


SCOPE = Scope("rageval-spec", "1")


def test_gauges_are_those_of_protobuf() -> None:
    gauges = [
        Gauge("rageval.metric.value", value, {"metric": "ndcg@10", "system": system}, 5, "The mean.")
        for system, value in (("a", 0.0), ("b", 0.75))
    ]
    written = encode_gauges([*gauges, Gauge("other", 1.5, {}, 6)], {"service.name": "x"}, SCOPE)
    parsed = metrics_service_pb2.ExportMetricsServiceRequest.FromString(written)
    assert parsed.SerializeToString(deterministic=True) == written
    first, second = parsed.resource_metrics[0].scope_metrics[0].metrics
    assert (first.name, first.description, first.unit) == ("rageval.metric.value", "The mean.", "1")
    assert [point.as_double for point in first.gauge.data_points] == [0.0, 0.75]
    assert first.gauge.data_points[0].HasField("as_double") and first.gauge.data_points[1].time_unix_nano == 5
    assert second.name == "other"


def test_events_are_log_records_of_their_span() -> None:
    event = LogEvent("gen_ai.evaluation.result", 7, {"gen_ai.evaluation.name": "f"}, "0a" * 16, "0b" * 8)
    written = encode_events([event], {}, SCOPE)
    parsed = logs_service_pb2.ExportLogsServiceRequest.FromString(written)
    assert parsed.SerializeToString(deterministic=True) == written
    (record,) = parsed.resource_logs[0].scope_logs[0].log_records
    assert (record.event_name, record.trace_id.hex(), record.span_id.hex()) == (event.name, "0a" * 16, "0b" * 8)
    assert record.time_unix_nano == record.observed_time_unix_nano == 7


def test_rejections() -> None:
    partial = trace_service_pb2.ExportTracePartialSuccess(rejected_spans=3, error_message="too old")
    assert read_rejection(
        trace_service_pb2.ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    ) == (
        3,
        "too old",
    )
    assert read_rejection(b"") == (0, "")
    with pytest.raises(WireError):
        read_rejection(b"<html>")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_spans_or_one_error(data: bytes) -> None:
    with suppress(WireError):
        list(decode_spans(data))
        list(decode_events(data))


def _request(trace_id: bytes, span_id: bytes = b"", parent_span_id: bytes = b"") -> bytes:
    span = trace_pb2.Span(name="a", trace_id=trace_id, span_id=span_id, parent_span_id=parent_span_id)
    scope = trace_pb2.ScopeSpans(spans=[span])
    return bytes(
        trace_pb2.TracesData(resource_spans=[trace_pb2.ResourceSpans(scope_spans=[scope])]).SerializeToString()
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<html><body>502 Bad Gateway</body></html>", "damaged"),
        (b"\x0a\xff\xff\xff\xff\x0f", "damaged"),
        (b"\x0a" + b"\xff" * 12, "damaged"),
        (_request(trace_id=b"short", span_id=b"s" * 8), "span 1: a trace id has 5 bytes where 16"),
        (_request(trace_id=b"t" * 16), "span 1: a span id has 0 bytes"),
        (_request(trace_id=bytes(16), span_id=b"s" * 8), "only zeros"),
        (_request(trace_id=b"t" * 16, span_id=b"s" * 8, parent_span_id=b"p"), "a parent span id has 1 bytes"),
        (_request(trace_id=b"t" * 16, span_id=b"s" * 8).replace(b"\x01a", b"\x01\xff"), "damaged"),
    ],
    ids=["html", "long field", "varint bomb", "short id", "no id", "zero id", "short parent", "not UTF-8"],
)
def test_what_is_no_request_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        list(decode_spans(data))


def test_spans_without_ids_are_not_each_a_reason_to_read_the_request_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[bytes] = []

    def list_records(data: bytes) -> list[object]:
        reads.append(data)
        return []

    monkeypatch.setattr(protobuf, "_list_records", list_records)
    spans = [trace_pb2.Span(name="a") for _ in range(50)]
    scope = trace_pb2.ResourceSpans(scope_spans=[trace_pb2.ScopeSpans(spans=spans)])
    rejected: list[Exception] = []
    request = trace_pb2.TracesData(resource_spans=[scope]).SerializeToString()
    assert list(decode_spans(request, reject=rejected.append)) == []
    assert (len(rejected), len(reads)) == (50, 1)


def test_a_place_is_the_number_of_the_span() -> None:
    spans = [Span("1" * 32, "2" * 16), Span("1" * 32, "3" * 16, resource={"service.name": "b"})]
    written = encode_spans(spans)
    assert [span.place for span in decode_spans(written, "a.bin: ")] == ["a.bin: span 1", "a.bin: span 2"]


def test_half_a_surrogate_pair_is_replaced() -> None:
    (span,) = decode_spans(encode_spans([Span("1" * 32, "2" * 16, name="\ud800", attributes={"\ud800": ["a\udfff"]})]))
    assert (span.name, span.attributes) == ("\ufffd", {"\ufffd": ["a\ufffd"]})


def test_spans_are_not_read_as_log_records_nor_log_records_as_spans() -> None:
    event = LogEvent("gen_ai.evaluation.result", 7, {"x": 1}, "0a" * 16, "")
    assert list(decode_spans(encode_events([event], {}, SCOPE))) == []
    assert list(decode_events(encode_events([event], {}, SCOPE))) == [event]
    assert list(decode_events(encode_spans([Span("1" * 32, "2" * 16, start=5, end=7, attributes={"a": 1})]))) == []
