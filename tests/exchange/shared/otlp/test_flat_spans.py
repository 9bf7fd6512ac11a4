from __future__ import annotations

import json
from typing import Any

import pytest

from rageval_spec.exchange.shared.otlp.flat_spans import is_flat, read_flat, read_time
from rageval_spec.exchange.shared.otlp.json_spans import JsonSpanError
from rageval_spec.exchange.shared.spans import ERROR

TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def test_a_span_of_the_real_sdk_as_its_console_exporter_writes_it() -> None:
    sdk = pytest.importorskip(
        "opentelemetry.sdk.trace", reason="needs opentelemetry-sdk: uv pip install opentelemetry-sdk"
    )
    tracer = sdk.TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("ask", attributes={"input.value": "What?", "n": 3}) as span:
        span.add_event("note", {"a": 1.5})
    written = json.loads(span.to_json())
    assert is_flat(written)
    read = read_flat(written, "spans.json: ")
    assert read.trace_id == f"{span.context.trace_id:032x}" and read.span_id == f"{span.context.span_id:016x}"
    assert read.attributes == {"input.value": "What?", "n": 3} and read.parent_id is None and read.name == "ask"
    assert abs(read.start - span.start_time) < 1000
    assert read.events[0].name == "note" and read.events[0].attributes == {"a": 1.5}
    assert read.resource["telemetry.sdk.language"] == "python" and read.kind == 1


def test_a_span_of_phoenix() -> None:
    found = {
        "id": "U3Bhbjox", "name": "ask", "context": {"trace_id": TRACE, "span_id": SPAN}, "span_kind": "RETRIEVER",
        "parent_id": PARENT, "start_time": "2026-03-01T12:00:00+00:00", "end_time": "2026-03-01T12:00:01.5+00:00",
        "status_code": "ERROR", "status_message": "broke", "attributes": {"input.value": "What?"}, "events": [],
    }  # fmt: skip
    read = read_flat(found)
    assert read.attributes == {"openinference.span.kind": "RETRIEVER", "input.value": "What?"}
    assert (read.end - read.start, read.status, read.message) == (1_500_000_000, ERROR, "broke")
    assert read.parent_id == PARENT


@pytest.mark.parametrize("text", ["2026-03-01T12:00:00Z", "2026-03-01T13:00:00+01:00", "2026-03-01 12:00:00"])
def test_times_are_in_utc(text: str) -> None:
    assert read_time(text, "t") == 1_772_366_400_000_000_000


def _found(**others: Any) -> dict[str, Any]:
    return {"context": {"trace_id": TRACE, "span_id": SPAN}, "start_time": None, **others}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (_found(context={"trace_id": TRACE}), "context.span_id: null where 16"),
        (_found(start_time="yesterday"), "start_time: 'yesterday' where an ISO 8601"),
        (_found(start_time=5), "start_time: a number where an ISO 8601"),
        (_found(attributes=[1]), "attributes: a list of 1 where an object"),
        (_found(parent_id="x"), "parent_id: 'x' where 16"),
    ],
)
def test_wrong_types_are_errors(found: dict[str, Any], message: str) -> None:
    assert is_flat(found)
    with pytest.raises(JsonSpanError, match=message):
        read_flat(found)
