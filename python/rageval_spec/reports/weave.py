"""`weave`: publishes answers and values as a dataset of Weave."""

from __future__ import annotations

from rageval_spec.exchange.weave import WeaveTarget, WeaveTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport


class WeaveNode(ReportNode, WeaveTargetNode):
    """A dataset in Weave."""


class WeaveReport(SendingReport[WeaveNode]):
    """Publishes a new version of the dataset if anything has changed, and prints what was sent."""

    node_type = WeaveNode
    target_type = WeaveTarget


PLUGIN = WeaveReport
