"""`langsmith`: sends values to LangSmith, as feedback on the runs of the answers or as an experiment."""

from __future__ import annotations

from rageval_spec.exchange.langsmith.target import LangSmithTarget, LangSmithTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport


class LangSmithReportNode(ReportNode, LangSmithTargetNode):
    """Feedback on runs, or an experiment on a dataset, in LangSmith."""


class LangSmithReport(SendingReport[LangSmithReportNode]):
    """Sends what is new since the last evaluation into the same folder, and prints what was sent."""

    node_type = LangSmithReportNode
    target_type = LangSmithTarget


PLUGIN = LangSmithReport
