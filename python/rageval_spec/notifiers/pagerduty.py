"""`pagerduty`: opens and resolves incidents by PagerDuty's Events API v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage, AlertSeverity
from rageval_spec.drawing.alert_text import list_facts, name_alerts, write_time
from rageval_spec.notifiers.shared.http_notifier import HttpNode, HttpNotifier
from rageval_spec.plugin.secrets import Secret

_LONGEST = 1024
_SEVERITIES: Mapping[AlertSeverity, str] = {
    "critical": "critical", "high": "critical", "warning": "warning", "medium": "warning", "low": "info",
}  # fmt: skip


class PagerdutyNode(HttpNode):
    """Opens and resolves incidents in PagerDuty."""

    routing_key: Secret = Field(description="The integration's key, as `${secret:PAGERDUTY_KEY}`.")
    url: str = Field(
        default="https://events.pagerduty.com",
        description="The service: `https://events.eu.pagerduty.com` for accounts in the EU.",
    )


class Pagerduty(HttpNotifier[PagerdutyNode]):
    """Sends an event for each alert. The key of an alert is the incident's, so that nothing is opened twice."""

    node_type = PagerdutyNode
    known_as = ("pager_duty",)

    def send(self, messages: Sequence[AlertMessage]) -> None:
        for one in messages:
            self.post("/v2/enqueue", self._describe(one))

    def _describe(self, message: AlertMessage) -> dict[str, Any]:
        event = {"routing_key": self.node.routing_key.reveal(), "dedup_key": message.key}
        if message.state == "resolved":
            return {**event, "event_action": "resolve"}
        details = {"summary": message.summary, **dict(list_facts(message))}
        worst = {f"worst answer {number}": one.answer[:_LONGEST] for number, one in enumerate(message.worst, 1)}
        payload = {
            "summary": name_alerts([message])[:_LONGEST],
            "source": message.monitor,
            "severity": _SEVERITIES[message.severity],
            "timestamp": write_time(message.began),
            "custom_details": {**details, **worst},
        }
        links = [] if message.page is None else [{"href": message.page, "text": "The monitor's page"}]
        return {**event, "event_action": "trigger", "payload": payload, "links": links}


PLUGIN = Pagerduty
