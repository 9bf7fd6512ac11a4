"""`pagerduty`: incidents of PagerDuty, by its Events API v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage, AlertSeverity, write_moment
from rageval_spec.drawing.alert_text import find_link, list_facts, list_worst
from rageval_spec.drawing.card_view import shorten
from rageval_spec.notifiers.shared.posting import PostingNode, PostingNotifier, write_json
from rageval_spec.plugin.secrets import Secret

_SEVERITIES: Mapping[AlertSeverity, Literal["critical", "error", "warning", "info"]] = {
    "critical": "critical", "high": "error", "medium": "warning", "warning": "warning", "low": "info",
}  # fmt: skip
_LONGEST_SUMMARY, _LONGEST_LINK = 1024, 100


class PagerDutyNode(PostingNode):
    """Incidents of PagerDuty."""

    URL_EXAMPLE = "https://events.pagerduty.com/v2/enqueue"
    routing_key: Secret = Field(description="The integration key of the service: `${secret:PAGERDUTY}`.")
    url: Secret = Field(
        default=Secret("https://events.pagerduty.com/v2/enqueue", "https://events.pagerduty.com/v2/enqueue"),
        description="Where to post. For accounts in the EU: `https://events.eu.pagerduty.com/v2/enqueue`.",
    )


class PagerDuty(PostingNotifier[PagerDutyNode]):
    """Opens an incident for each alert, and resolves it when the alert is over.

    PagerDuty's severity is critical for critical, error for high, warning for medium and warning, info for low.
    """

    node_type = PagerDutyNode
    known_as = ("pager_duty",)
    groups = False

    def send(self, messages: Sequence[AlertMessage]) -> None:
        for one in messages:
            self.post(write_json(self._describe(one)))

    def list_secrets(self) -> Sequence[Secret]:
        return [self.node.routing_key]

    def _describe(self, message: AlertMessage) -> dict[str, Any]:
        event = {"routing_key": self.node.routing_key.reveal(), "dedup_key": message.key}
        if message.state == "resolved":
            return {**event, "event_action": "resolve"}
        payload = {
            "summary": shorten(f"{message.name}: {message.summary}", _LONGEST_SUMMARY - 1),
            "source": message.system or message.monitor,
            "severity": _SEVERITIES[message.severity],
            "timestamp": write_moment(message.began),
            "component": message.metric or "",
            "group": message.monitor,
            "class": message.name,
            "custom_details": {
                **dict(list_facts(message)),
                **{f"Worst answer {n}": one._asdict() for n, one in enumerate(list_worst(message), 1)},
            },
        }
        page = find_link(message.page)
        links = [(page, "The monitor's page"), *((one.link, one.head) for one in list_worst(message))]
        return {
            **event,
            "event_action": "trigger",
            "client": "rageval-spec",
            **({"client_url": page} if page else {}),
            "links": [{"href": link, "text": text[:_LONGEST_LINK]} for link, text in links if link],
            "payload": payload,
        }


PLUGIN = PagerDuty
