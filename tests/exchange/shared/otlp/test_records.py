from __future__ import annotations

import pytest

from rageval_spec.exchange.shared.otlp.protobuf_spans import Scope
from rageval_spec.exchange.shared.otlp.records import Gauge, LogEvent, encode_events, encode_gauges, read_rejection
from rageval_spec.exchange.shared.otlp.wire import WireError

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
