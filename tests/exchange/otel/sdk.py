"""Spans of the real SDK of OpenTelemetry, sent by its real exporter."""

from __future__ import annotations

from typing import Any

import pytest

HOW = "needs the SDK of OpenTelemetry: uv pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"


def send_rag(url: str, *, questions: int = 3, compress: bool = False) -> list[str]:
    """Record answers of a small RAG system and send their spans; returns the ids of the traces."""
    exporters: Any = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter", reason=HOW)
    http: Any = pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason=HOW)
    trace: Any = pytest.importorskip("opentelemetry.sdk.trace", reason=HOW)
    export: Any = pytest.importorskip("opentelemetry.sdk.trace.export", reason=HOW)
    resources: Any = pytest.importorskip("opentelemetry.sdk.resources", reason=HOW)
    provider = trace.TracerProvider(resource=resources.Resource.create({"service.name": "bot"}))
    compression = http.Compression.Gzip if compress else http.Compression.NoCompression
    exporter = exporters.OTLPSpanExporter(endpoint=url, compression=compression, timeout=10)
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("bot")
    ids = [_record(tracer, number) for number in range(questions)]
    provider.shutdown()
    return ids


def _record(tracer: Any, number: int) -> str:
    kind = "openinference.span.kind"
    with tracer.start_as_current_span("ask", attributes={kind: "CHAIN", "input.value": f"What is {number}?"}) as root:
        with tracer.start_as_current_span("search", attributes={kind: "RETRIEVER"}) as span:
            span.set_attribute("retrieval.documents.0.document.id", f"d{number}")
            span.set_attribute("retrieval.documents.0.document.content", f"{number} is {number}.")
            span.set_attribute("retrieval.documents.0.document.score", 0.5)
        with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as span:
            span.set_attributes({"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 4})
        root.set_attribute("output.value", f"It is {number}.")
        return f"{root.get_span_context().trace_id:032x}"
