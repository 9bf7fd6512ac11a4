""""""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings

from rageval_spec.exchange.shared.spans.json_spans import (
    JsonSpanError,
    decode_json,
    is_otlp,
    is_span,
    read_span,
)
from rageval_spec.exchange.shared.spans.protobuf import MOST_DEPTH, decode_spans, encode_spans
from rageval_spec.exchange.shared.spans.spans import ERROR, Link, Span, SpanEvent
from tests.exchange.shared.spans.strategies import SPANS

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def _request(*spans: dict[str, Any], resource: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": resource or {}, "scopeSpans": [{"spans": list(spans)}]}]}


def _span(**others: Any) -> dict[str, Any]:
    return {"traceId": TRACE, "spanId": SPAN, **others}


@settings(max_examples=60, deadline=None)
@given(SPANS)
def test_json_and_protobuf_of_one_request_give_the_same_span(span: Span) -> None:
    message = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    written = encode_spans([span])
    text = json_format.MessageToJson(message.ExportTraceServiceRequest.FromString(written))
    (from_json,) = decode_json(json.loads(text))
    (from_protobuf,) = decode_spans(written)
    assert from_json._replace(place="") == from_protobuf._replace(place="")


def test_a_span_of_a_collector() -> None:
    span = _span(
        parentSpanId="00f067aa0ba902b7",
        name="ask",
        kind=3,
        startTimeUnixNano="1700000000000000001",
        endTimeUnixNano=1700000001000000000,
        attributes=[
            {"key": "text", "value": {"stringValue": "a"}},
            {"key": "number", "value": {"intValue": "-5"}},
            {"key": "share", "value": {"doubleValue": 0.5}},
            {"key": "flag", "value": {"boolValue": True}},
            {"key": "list", "value": {"arrayValue": {"values": [{"intValue": 1}, {"stringValue": "b"}]}}},
            {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"doubleValue": "NaN"}}]}}},
            {"key": "bytes", "value": {"bytesValue": "AQI="}},
            {"key": "nothing", "value": {}},
        ],
        events=[{"name": "e", "timeUnixNano": "7", "attributes": [{"key": "x", "value": {"intValue": "1"}}]}],
        links=[{"traceId": TRACE, "spanId": SPAN}],
        status={"code": "STATUS_CODE_ERROR", "message": "broke"},
    )
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "bot"}}]}
    (read,) = decode_json(_request(span, resource=resource), "traces.jsonl:3: ")
    assert read.parent_id == "00f067aa0ba902b7" and read.kind == 3
    assert (read.start, read.end) == (1700000000000000001, 1700000001000000000)
    shown = dict(read.attributes)
    assert str(shown.pop("map")) == "{'k': nan}"
    assert shown == {
        "text": "a", "number": -5, "share": 0.5, "flag": True, "list": [1, "b"], "bytes": b"\1\2", "nothing": None,
    }  # fmt: skip
    assert read.events == (SpanEvent("e", 7, {"x": 1}),) and read.links == (Link(TRACE, SPAN),)
    assert (read.status, read.message, read.resource) == (ERROR, "broke", {"service.name": "bot"})
    assert read.place == "traces.jsonl:3: resourceSpans[0].scopeSpans[0].spans[0]"


def test_snake_case_and_nulls_as_phoenix_writes_them() -> None:
    span = {
        "trace_id": TRACE, "span_id": SPAN, "parent_span_id": None, "start_time_unix_nano": 5, "end_time_unix_nano": 6,
        "attributes": [{"key": "a", "value": {"string_value": None, "int_value": 4, "array_value": None}}],
        "events": None, "links": None, "status": {"code": 0, "message": None}, "name": None,
    }  # fmt: skip
    (read,) = decode_json({"resource_spans": [{"scope_spans": [{"spans": [span]}]}]})
    assert (read.trace_id, read.start, read.end, read.attributes) == (TRACE, 5, 6, {"a": 4})


def test_base64_ids_are_those_of_protobuf_json() -> None:
    span = {
        "traceId": base64.b64encode(bytes.fromhex(TRACE)).decode(),
        "spanId": base64.b64encode(bytes.fromhex(SPAN)).decode(),
    }
    (read,) = decode_json(_request(span))
    assert (read.trace_id, read.span_id, read.parent_id) == (TRACE, SPAN, None)


def test_only_requests_are_otlp() -> None:
    assert is_otlp(_request()) and is_otlp({"scope_spans": []})
    assert not is_otlp({"question": "?"}) and not is_otlp([])


PATH = r"^resourceSpans\[0\]\.scopeSpans\[0\]\.spans\[0\]\."


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], "a list of 0 where an OTLP request was expected"),
        ({"resourceSpans": "x"}, "resourceSpans: text where a list was expected"),
        ({"resourceSpans": [3]}, r"resourceSpans\[0\]: a number where an object"),
        ({"resourceSpans": [{"scopeSpans": {}}]}, r"resourceSpans\[0\]\.scopeSpans: an object where a list"),
        (_request({"spanId": SPAN}), PATH + "traceId: null where 32 hexadecimal"),
        (_request({"traceId": "xyz", "spanId": SPAN}), PATH + "traceId: 'xyz' where 32"),
        (_request({"traceId": "0" * 32, "spanId": SPAN}), PATH + "traceId: the id has only zeros"),
        (_request({"traceId": 7, "spanId": SPAN}), PATH + "traceId: a number where"),
        (_request(_span(startTimeUnixNano="soon")), PATH + "startTimeUnixNano: 'soon' where a time"),
        (_request(_span(startTimeUnixNano=-1)), PATH + "startTimeUnixNano: -1 where nanoseconds"),
        (_request(_span(name=[])), PATH + "name: a list of 0 where a text"),
        (_request(_span(attributes=[5])), PATH + r"attributes\[0\]: a number where a key and a value"),
        (
            _request(_span(attributes=[{"key": "a", "value": {"intValue": "1e3"}}])),
            PATH + r"attributes\[0\]\.value: '1e3' where a whole number",
        ),
        (
            _request(_span(attributes=[{"key": "a", "value": {"intValue": "9" * 5000}}])),
            PATH + r"attributes\[0\]\.value: '9+' where a whole number",
        ),
        (
            _request(_span(attributes=[{"key": "a", "value": {"bytesValue": "?"}}])),
            PATH + r"attributes\[0\]\.value: the bytes are not base64",
        ),
    ],
)
def test_wrong_types_are_errors_with_their_path(found: Any, message: str) -> None:
    with pytest.raises(JsonSpanError, match=message):
        list(decode_json(found))


def test_lists_deep_inside_one_another_are_an_error() -> None:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(MOST_DEPTH + 2):
        value = {"arrayValue": {"values": [value]}}
    with pytest.raises(JsonSpanError, match="lists and objects inside one another"):
        list(decode_json(_request(_span(attributes=[{"key": "a", "value": value}]))))


FLAT_TRACE, FLAT_SPAN, PARENT = (
    "0af7651916cd43dd8448eb211c80319c",
    "b7ad6b7169203331",
    "00f067aa0ba902b7",
)


def test_a_span_of_the_real_sdk_as_its_console_exporter_writes_it() -> None:
    sdk = pytest.importorskip(
        "opentelemetry.sdk.trace", reason="needs opentelemetry-sdk: uv pip install opentelemetry-sdk"
    )
    tracer = sdk.TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("ask", attributes={"input.value": "What?", "n": 3}) as span:
        span.add_event("note", {"a": 1.5})
    written = json.loads(span.to_json())
    assert is_span(written)
    read = read_span(written, "spans.json: ")
    assert read.trace_id == f"{span.context.trace_id:032x}" and read.span_id == f"{span.context.span_id:016x}"
    assert read.attributes == {"input.value": "What?", "n": 3} and read.parent_id is None and read.name == "ask"
    assert abs(read.start - span.start_time) < 1000
    assert read.events[0].name == "note" and read.events[0].attributes == {"a": 1.5}
    assert read.resource["telemetry.sdk.language"] == "python" and read.kind == 1


def test_a_span_of_phoenix() -> None:
    found = {
        "id": "U3Bhbjox", "name": "ask", "span_kind": "RETRIEVER",
        "context": {"trace_id": FLAT_TRACE, "span_id": FLAT_SPAN},
        "parent_id": PARENT, "start_time": "2026-03-01T12:00:00+00:00", "end_time": "2026-03-01T12:00:01.5+00:00",
        "status_code": "ERROR", "status_message": "broke", "attributes": {"input.value": "What?"}, "events": [],
    }  # fmt: skip
    read = read_span(found)
    assert read.attributes == {"openinference.span.kind": "RETRIEVER", "input.value": "What?"}
    assert (read.end - read.start, read.status, read.message) == (1_500_000_000, ERROR, "broke")
    assert read.parent_id == PARENT


@pytest.mark.parametrize("text", ["2026-03-01T12:00:00Z", "2026-03-01T13:00:00+01:00", "2026-03-01 12:00:00"])
def test_times_are_in_utc(text: str) -> None:
    assert read_span(_found(start_time=text)).start == 1_772_366_400_000_000_000


def _found(**others: Any) -> dict[str, Any]:
    return {"context": {"trace_id": FLAT_TRACE, "span_id": FLAT_SPAN}, "start_time": None, **others}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (_found(context={"trace_id": FLAT_TRACE}), "spanId: null where 16"),
        (_found(start_time="yesterday"), "startTimeUnixNano: 'yesterday' where a time was expected"),
        (_found(start_time=[]), "startTimeUnixNano: a list of 0 where a whole number"),
        (_found(attributes=[1]), r"attributes\[0\]: a number where a key and a value"),
        (_found(parent_id="x"), "parentSpanId: 'x' where 16"),
    ],
)
def test_wrong_types_are_errors(found: dict[str, Any], message: str) -> None:
    assert is_span(found)
    with pytest.raises(JsonSpanError, match=message):
        read_span(found)
