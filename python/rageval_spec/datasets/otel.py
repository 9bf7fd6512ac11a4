"""`otel`: the questions of OpenTelemetry spans in files."""

from __future__ import annotations

from typing import ClassVar

from rageval_spec.datasets.shared.traces import TraceDataset
from rageval_spec.exchange.otel.source import OtelFiles, OtelFilesNode
from rageval_spec.plugin import DatasetNode


class OtelNode(DatasetNode, OtelFilesNode):
    """Settings of the dataset `otel`: the files with spans."""


class OtelDataset(TraceDataset[OtelNode]):
    """Takes questions from traces."""

    node_type = OtelNode
    source_type = OtelFiles
    known_as: ClassVar[tuple[str, ...]] = ("opentelemetry", "openinference", "otlp")


PLUGIN = OtelDataset
