"""The base class of notifiers that post JSON."""

from __future__ import annotations

import json
from abc import ABC
from functools import cached_property
from typing import Any, TypeVar

from pydantic import Field

from rageval_spec.endpoints.service import Service
from rageval_spec.endpoints.tries import Limits
from rageval_spec.plugin import Notifier, NotifierNode
from rageval_spec.plugin.secrets import Secret

_LIMITS = Limits(concurrency=1, retries=1, patience=20.0)
"""Few and short, because alerts are decided meanwhile; what was not taken is sent again later."""


class HttpNode(NotifierNode):
    """A block of a notifier that posts JSON."""

    timeout: float = Field(default=10.0, gt=0, le=120, description="Seconds to wait for a reply.")


T = TypeVar("T", bound=HttpNode)


class HttpNotifier(Notifier[T], ABC):
    """Posts to the node's `url`. Neither it nor other secrets appear in messages."""

    def post(self, path: str, content: Any) -> None:
        """Post JSON; the reply can be anything but an error.

        Raises:
            ServiceError: it was not taken.
        """
        self._service.send(path, json.dumps(content, ensure_ascii=True).encode("ascii"), "application/json")

    @cached_property
    def _service(self) -> Service:
        values: dict[str, Any] = dict(self.node)
        secrets = [value for value in values.values() if isinstance(value, Secret)]
        url = values["url"].reveal() if isinstance(values["url"], Secret) else values["url"]
        timeout = self.node.timeout
        return Service(url, f"notify.{self.name}", limits=_LIMITS, timeout=timeout, secrets=secrets)

    def close(self) -> None:
        """Close the connection."""
        if "_service" in vars(self):
            self._service.close()
