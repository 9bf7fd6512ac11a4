"""`webhook`: posts alerts as JSON to a URL."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Sequence
from contextlib import suppress

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage, export_alerts
from rageval_spec.notifiers.shared.posting import PostingNode, PostingNotifier, write_json
from rageval_spec.plugin.secrets import Secret

_PREFIX = "whsec_"


class WebhookNode(PostingNode):
    """Posts alerts as JSON to a URL."""

    secret: Secret | None = Field(
        default=None,
        description="Signs each request as Standard Webhooks do, in the headers webhook-id, webhook-timestamp and "
        "webhook-signature: `${secret:HOOK_KEY}`, any text or `whsec_` with a key in base64.",
    )


class Webhook(PostingNotifier[WebhookNode]):
    """Posts `{"version": 1, "id": ..., "alerts": [...]}`, as docs/alerts.md describes.

    The header Idempotency-Key names a message. A receiver that sees it a second time should ignore the request.
    """

    node_type = WebhookNode
    known_as = ("http", "hook")

    def send(self, messages: Sequence[AlertMessage]) -> None:
        content = export_alerts(messages)
        body, headers = write_json(content), {"idempotency-key": content["id"]}
        if self.node.secret is not None:
            headers |= sign(content["id"], int(time.time()), body, self.node.secret.reveal())
        self.post(body, headers=headers)


def sign(name: str, moment: int, body: bytes, secret: str) -> dict[str, str]:
    """The headers of Standard Webhooks; `moment` is the time in seconds since 1970."""
    key = secret.encode()
    if secret.startswith(_PREFIX):
        with suppress(binascii.Error):  # else it is a text of its own that begins like this
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    digest = hmac.new(key, f"{name}.{moment}.".encode() + body, hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    return {"webhook-id": name, "webhook-timestamp": str(moment), "webhook-signature": f"v1,{signature}"}


PLUGIN = Webhook
