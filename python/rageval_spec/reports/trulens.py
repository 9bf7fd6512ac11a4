"""`trulens`: writes the values as feedback in TruLens's SQLite file."""

from __future__ import annotations

from rageval_spec.exchange.trulens.target import TrulensTarget, TrulensTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport


class TrulensReportNode(ReportNode, TrulensTargetNode):
    """Writes the values as feedback in TruLens's SQLite file."""


class TrulensReport(SendingReport[TrulensReportNode]):
    """Writes what is new since the last time, once the values are computed."""

    node_type = TrulensReportNode
    target_type = TrulensTarget


PLUGIN = TrulensReport
