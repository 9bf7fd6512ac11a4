"""`alertmanager`: Prometheus' Alertmanager, which groups, silences and routes alerts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from rageval_spec.data.alerts import RANKS, AlertMessage, AlertSeverity, write_moment
from rageval_spec.drawing.alert_text import find_link, list_facts, list_worst_lines
from rageval_spec.notifiers.shared.posting import PostingNode, PostingNotifier, write_json
from rageval_spec.plugin.secrets import Secret
from rageval_spec.wording import format_interval, format_number

KEPT_FOR = 24 * 3600.0
"""Seconds for which Alertmanager keeps an alert of which it hears no more: a monitor that stands still ends nothing."""
_LADDERS: Sequence[Sequence[AlertSeverity]] = (("warning", "critical"), ("low", "medium", "high"))


class AlertmanagerNode(PostingNode):
    """Prometheus' Alertmanager."""

    URL_EXAMPLE = "http://127.0.0.1:9093"
    url: Secret = Field(description="Where Alertmanager is: `http://127.0.0.1:9093`.")
    labels: Mapping[str, str] = Field(
        default_factory=dict, description="Labels to add to each alert: `{team: search}`."
    )


class Alertmanager(PostingNotifier[AlertmanagerNode]):
    """Posts each alert to `/api/v2/alerts`, with the label `alertname`, and again every minute while it fires.

    An alert that becomes worse is a new one there, because routes choose by the label `severity`; the milder one ends.
    If the monitor stops, an alert ends in Alertmanager a day later.
    """

    node_type = AlertmanagerNode
    groups = False
    refresh_every = 60.0

    def send(self, messages: Sequence[AlertMessage]) -> None:
        alerts = [alert for one in messages for alert in self._list_alerts(one)]
        self.post(write_json(alerts), "/api/v2/alerts")

    def refresh(self, messages: Sequence[AlertMessage]) -> None:
        self.send(messages)

    def _list_alerts(self, message: AlertMessage) -> Iterator[dict[str, Any]]:
        """The alert, and the end of those that its milder severities were."""
        now = max(time.time(), message.began)
        ended = message.ended if message.state == "resolved" else None
        yield self._describe(message, message.severity, now + KEPT_FOR if ended is None else max(ended, message.began))
        for ladder in _LADDERS:
            for milder in ladder if message.severity in ladder else ():
                if RANKS[milder] < RANKS[message.severity]:
                    yield self._describe(message, milder, now)

    def _describe(self, message: AlertMessage, severity: AlertSeverity, ends: float) -> dict[str, Any]:
        known = {"metric": message.metric, "system": message.system, "window": message.window, **message.labels}
        labels = {**known, **self.node.labels, "alertname": message.name, "monitor": message.monitor}
        annotations = {
            "summary": message.summary,
            "description": "\n".join(f"{label}: {text}" for label, text in list_facts(message)),
            "worst_answers": "\n".join(list_worst_lines(message)),
            "value": None if message.value is None else format_number(message.value),
            "interval": format_interval(message.interval),
            "key": message.key,
        }
        page = find_link(message.page)
        return {
            "labels": _clean({**labels, "severity": severity}),
            "annotations": _clean(annotations),
            "startsAt": write_moment(message.began),
            "endsAt": write_moment(ends),
            **({"generatorURL": page} if page else {}),
        }


def _clean(texts: Mapping[str, str | None]) -> dict[str, str]:
    """Labels or annotations with names that Alertmanager takes; those without a text are left out."""
    return {re.sub(r"^(?=\d)|[^A-Za-z0-9_]", "_", name): text for name, text in texts.items() if name and text}


PLUGIN = Alertmanager
