"""`alertmanager`: hands alerts to Prometheus' Alertmanager, which groups, routes and silences them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage, AlertSeverity
from rageval_spec.drawing.alert_text import list_facts, write_time
from rageval_spec.notifiers.shared.http_notifier import HttpNode, HttpNotifier

_FAMILIES: Sequence[Sequence[AlertSeverity]] = (("warning", "critical"), ("low", "medium", "high"))
_FOREVER = 400 * 86_400
"""Seconds until an alert ends by itself; its end comes as a message before."""


class AlertmanagerNode(HttpNode):
    """Hands alerts to Prometheus' Alertmanager."""

    url: str = Field(description="The URL of Alertmanager: `http://127.0.0.1:9093`.")
    labels: dict[str, str] = Field(default={}, description="Further labels of each alert, for its routes.")


class Alertmanager(HttpNotifier[AlertmanagerNode]):
    """Posts to `/api/v2/alerts`.

    An alert has the labels `alertname`, `monitor`, `severity`, `metric` and `system`. Alertmanager gets its end as a
    message too, so it need not be told again while it fires. One that gets worse ends under its earlier severity.
    """

    node_type = AlertmanagerNode
    known_as = ("prometheus",)

    def send(self, messages: Sequence[AlertMessage]) -> None:
        alerts = [self._describe(one) for message in messages for one in _list_states(message)]
        self.post("/api/v2/alerts", alerts)

    def _describe(self, message: AlertMessage) -> dict[str, Any]:
        labels = {"alertname": message.name, "monitor": message.monitor, "severity": message.severity,
                  "metric": message.metric, "system": message.system, **message.labels, **self.node.labels}  # fmt: skip
        ended = message.began + _FOREVER if message.ended is None else message.ended
        return {
            "labels": {name: value for name, value in labels.items() if value},
            "annotations": {"summary": message.summary, **dict(list_facts(message))},
            "startsAt": write_time(message.began),
            "endsAt": write_time(ended),
            **({} if message.page is None else {"generatorURL": message.page}),
        }


def _list_states(message: AlertMessage) -> Iterator[AlertMessage]:
    """The alert, and the end of what Alertmanager may know of it under another severity, which is a label."""
    yield message
    family = next(some for some in _FAMILIES if message.severity in some)
    ended = message.began + 1 if message.ended is None else message.ended
    for severity in family:
        if severity != message.severity:
            yield replace(message, severity=severity, state="resolved", ended=ended)


PLUGIN = Alertmanager
