"""`otel`: the questions of OpenTelemetry spans in files."""

from __future__ import annotations

from typing import ClassVar

from rageval_spec.datasets.shared.trace_dataset import TraceDataset
from rageval_spec.exchange.otel.source import OtelFiles, OtelFilesNode
from rageval_spec.plugin import DatasetNode


class OtelDatasetNode(DatasetNode, OtelFilesNode):
    """Settings of the dataset `otel`: the files with spans."""


class OtelDataset(TraceDataset[OtelDatasetNode]):
    """Takes questions from traces."""

    node_type = OtelDatasetNode
    source_type = OtelFiles
    known_as: ClassVar[tuple[str, ...]] = ("opentelemetry", "openinference", "otlp")


PLUGIN = OtelDataset
