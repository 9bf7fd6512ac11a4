"""`braintrust`: sends values to Braintrust, into the rows of the answers or as an experiment."""

from __future__ import annotations

from rageval_spec.exchange.braintrust.target import BraintrustTarget, BraintrustTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport


class BraintrustReportNode(ReportNode, BraintrustTargetNode):
    """Scores of rows, or an experiment, in Braintrust."""


class BraintrustReport(SendingReport[BraintrustReportNode]):
    """Sends what is new since the last evaluation into the same folder, and prints what was sent."""

    node_type = BraintrustReportNode
    target_type = BraintrustTarget


PLUGIN = BraintrustReport
