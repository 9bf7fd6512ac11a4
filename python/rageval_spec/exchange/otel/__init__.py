"""OpenTelemetry: spans in files or over OTLP/HTTP as traces; values as spans, events and metrics."""

from __future__ import annotations

from rageval_spec.exchange.otel.source import OtelSource
from rageval_spec.exchange.otel.target import OtelTarget

SOURCE = OtelSource
TARGET = OtelTarget
