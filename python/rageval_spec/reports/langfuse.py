"""`langfuse`: sends values to Langfuse, to the traces of the answers or as a run of a dataset."""

from __future__ import annotations

from rageval_spec.exchange.langfuse.target import LangfuseTarget, LangfuseTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport


class LangfuseReportNode(ReportNode, LangfuseTargetNode):
    """Scores of traces, or a run of a dataset, in Langfuse."""


class LangfuseReport(SendingReport[LangfuseReportNode]):
    """Sends what is new since the last evaluation into the same folder, and prints what was sent."""

    node_type = LangfuseReportNode
    target_type = LangfuseTarget


PLUGIN = LangfuseReport
