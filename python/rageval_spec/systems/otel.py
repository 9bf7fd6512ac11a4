"""`otel`: answers from OpenTelemetry spans in files."""

from __future__ import annotations

from typing import ClassVar

from rageval_spec.exchange.otel.source import OtelFiles, OtelFilesNode
from rageval_spec.plugin import GeneratingNode
from rageval_spec.systems.shared.trace_system import TraceSystem


class OtelSystemNode(GeneratingNode, OtelFilesNode):
    """Settings of the system `otel`: the files with spans."""


class OtelSystem(TraceSystem[OtelSystemNode]):
    """Takes answers and their contexts from traces."""

    node_type = OtelSystemNode
    source_type = OtelFiles
    known_as: ClassVar[tuple[str, ...]] = ("opentelemetry", "openinference", "otlp")


PLUGIN = OtelSystem
