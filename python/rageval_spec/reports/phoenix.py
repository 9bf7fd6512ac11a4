"""`phoenix`: writes the values as annotations or experiments in Arize Phoenix."""

from __future__ import annotations

from rageval_spec.exchange.phoenix.target import PhoenixTarget, PhoenixTargetNode
from rageval_spec.plugin import ReportNode
from rageval_spec.reports.shared.sending import SendingReport


class PhoenixNode(ReportNode, PhoenixTargetNode):
    """Writes the values as annotations or experiments in Arize Phoenix."""


class Phoenix(SendingReport[PhoenixNode]):
    """Writes what is new since the last time, once the values are computed."""

    node_type = PhoenixNode
    target_type = PhoenixTarget
    known_as = ("arize", "arize_phoenix")


PLUGIN = Phoenix
