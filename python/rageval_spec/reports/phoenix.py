"""`phoenix`: writes the values as annotations or experiments in Arize Phoenix."""

from __future__ import annotations

from rageval_spec.exchange.phoenix.target import PhoenixTarget, PhoenixTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport


class PhoenixReportNode(ReportNode, PhoenixTargetNode):
    """Writes the values as annotations or experiments in Arize Phoenix."""


class PhoenixReport(SendingReport[PhoenixReportNode]):
    """Writes what is new since the last time, once the values are computed."""

    node_type = PhoenixReportNode
    target_type = PhoenixTarget
    known_as = ("arize", "arize_phoenix")


PLUGIN = PhoenixReport
