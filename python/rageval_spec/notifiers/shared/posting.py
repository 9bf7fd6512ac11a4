"""Posts JSON to the address of a receiver, once: what it does not take is sent again by the monitor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from rageval_spec.endpoints.addresses import check_base_url
from rageval_spec.endpoints.service import Service
from rageval_spec.endpoints.tries import Limits
from rageval_spec.plugin import Notifier, NotifierNode
from rageval_spec.plugin.secrets import Secret

TIMEOUT = 10.0
"""Seconds that a receiver has to answer. The monitor waits, so they are few."""
_SHORTEST = 8
"""Characters of a path or query that are masked in replies; shorter ones, such as `slack`, are words of messages."""
_ONCE = Limits(concurrency=1, retries=0, patience=0.0)


class PostingNode(NotifierNode):
    """A notifier that posts to a URL."""

    URL_EXAMPLE: ClassVar[str] = "https://hooks.example.com/alerts"
    """A URL that messages suggest."""

    url: Secret = Field(description="Where to post, as `${secret:HOOK}`: the address of most hooks is their password.")
    headers: Mapping[str, Secret] = Field(
        default_factory=dict, description="Headers of the requests: `{Authorization: 'Bearer ${secret:TOKEN}'}`."
    )

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: Secret) -> Secret:
        if url.reveal():  # a variable that is not set has a message of its own
            check_base_url(url.reveal(), cls.URL_EXAMPLE)
        return url


P = TypeVar("P", bound=PostingNode)


class PostingNotifier(Notifier[P]):
    """Posts to the URL of its node. Messages show only the host of the URL."""

    def list_secrets(self) -> Sequence[Secret]:
        """What is masked in messages besides the headers and the URL: secrets in the body."""
        return ()

    def post(self, body: bytes, path: str = "", headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Post JSON. Raises `ServiceError` unless the receiver answers with a status from 200 to 299.

        Each request has a connection of its own: one that was kept and broke would make the client post again at once,
        although the receiver may have the message.
        """
        url = self.node.url.reveal()
        parts = urlsplit(url)
        told = (parts.path.strip("/"), parts.query)
        hidden = [*self.list_secrets(), *(Secret(text) for text in told if len(text) >= _SHORTEST)]
        with Service(
            url, self.where, headers=self.node.headers, limits=_ONCE, timeout=TIMEOUT, secrets=hidden, hides_path=True
        ) as service:
            service.hand_over(path, body, headers)


def write_json(content: Any) -> bytes:
    """JSON in ASCII."""
    return json.dumps(content, allow_nan=False).encode("ascii")
