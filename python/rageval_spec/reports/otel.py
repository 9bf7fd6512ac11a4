"""`otel`: sends values to a collector as spans, events or metrics of OpenTelemetry."""

from __future__ import annotations

from rageval_spec.exchange.otel.target import OtelTarget, OtelTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport


class OtelReportNode(ReportNode, OtelTargetNode):
    """Values over OTLP: in the traces of the answers, and as metrics."""


class OtelReport(SendingReport[OtelReportNode]):
    """Sends what is new since the last evaluation into the same folder, and prints what was sent."""

    node_type = OtelReportNode
    target_type = OtelTarget
    known_as = ("opentelemetry", "otlp", "collector")


PLUGIN = OtelReport
