"""`webhook`: posts alerts as JSON to a URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.endpoints.service import Service
from rageval_spec.plugin import Notifier, NotifierNode
from rageval_spec.plugin.secrets import Secret


class WebhookNode(NotifierNode):
    """Posts alerts as JSON to a URL."""

    url: Secret = Field(description="Where to post, as `${secret:HOOK}`: the address of most hooks is their password.")


class Webhook(Notifier[WebhookNode]):
    """Posts `{"alerts": [...]}`, each with the attributes of `AlertMessage`; `key` and `state` name a message."""

    node_type = WebhookNode
    known_as = ("http", "hook")

    @cached_property
    def _service(self) -> Service:
        return Service(self.node.url.reveal(), f"notify.{self.name}")

    def send(self, messages: Sequence[AlertMessage]) -> None:
        self._service.post("", {"version": 1, "alerts": [asdict(one) for one in messages]})

    def close(self) -> None:
        if "_service" in vars(self):
            self._service.close()


PLUGIN = Webhook
