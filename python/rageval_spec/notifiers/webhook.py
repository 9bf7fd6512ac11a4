"""`webhook`: posts alerts as JSON to a URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.notifiers.shared.http_notifier import HttpNode, HttpNotifier
from rageval_spec.plugin.secrets import Secret


class WebhookNode(HttpNode):
    """Posts alerts as JSON to a URL."""

    url: Secret = Field(description="Where to post, as `${secret:HOOK}`: the address of most hooks is their password.")


class Webhook(HttpNotifier[WebhookNode]):
    """Posts `{"version": 1, "alerts": [...]}`, each with the attributes of an alert.

    `key` and `state` together name a message: a receiver that has seen both has seen the message.
    """

    node_type = WebhookNode
    known_as = ("http", "hook")

    def send(self, messages: Sequence[AlertMessage]) -> None:
        self.post("", {"version": 1, "alerts": [asdict(one) for one in messages]})


PLUGIN = Webhook
