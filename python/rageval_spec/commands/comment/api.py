"""Requests to the API of a code host, and what its refusals mean."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from rageval_spec.endpoints.endpoint import Endpoint, shorten
from rageval_spec.endpoints.failures import MOST_PATIENCE, WORTH_ANOTHER_TRY, Failure, Reply, read_retry_after
from rageval_spec.endpoints.tries import TryError
from rageval_spec.plugin.secret import Secret

WHERE = "comment"
TIMEOUT = 30.0
PER_PAGE = 100
_HINTS = {
    401: "the token is wrong or has expired",
    403: "the token may not do this",
    404: "there is no such pull request, or the token may not see it",
}


class ApiError(TryError):
    """A request that failed. Its text has the URL and the status, and no secret.

    Attributes:
        status: the status of the reply; None if none came.
    """

    def __init__(self, message: str, status: int | None, *, is_temporary: bool, wait: float | None) -> None:
        """Keep what is known about the failure."""
        super().__init__(message, is_temporary=is_temporary, wait=wait)
        self.status = status


class Page(NamedTuple):
    """The JSON of a reply, and whether a list goes on with another page."""

    content: Any
    has_next: bool


class Api:
    """Sends requests with a token; redirects are not followed, because they would send it to another host."""

    def __init__(self, base_url: str, headers: Mapping[str, Secret]) -> None:
        """Open nothing yet."""
        self._base_url = base_url
        self._headers = headers

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None, query: str = "") -> Page:
        """The reply to one request.

        Raises:
            ApiError: the reply is not 200 or 201, is not JSON, or did not come.
        """
        endpoint = Endpoint(f"{self._base_url}{path}", WHERE, headers=self._headers, timeout=TIMEOUT)
        content = None if body is None else json.dumps(body).encode("ascii")
        try:
            with endpoint.exchange(content, method=method, query=query) as reply:
                return _read(reply)
        except Failure as failure:
            status = None if failure.reply is None else failure.reply.status
            told = endpoint.explain(failure, 1)
            raise ApiError(told, status, is_temporary=failure.is_temporary, wait=failure.wait) from failure
        finally:
            endpoint.close()


def _read(reply: Reply) -> Page:
    if reply.status not in (200, 201):
        raise _judge(reply)
    try:
        return Page(json.loads(reply.content), 'rel="next"' in reply.headers.get("Link", ""))
    except (ValueError, RecursionError):
        raise Failure("answered with something that is not JSON", shorten(reply)) from None


def _judge(reply: Reply) -> Failure:
    """The failure that a status stands for; GitHub also refuses too many requests with 403."""
    status = f"answered {reply.status} {reply.reason}".rstrip()
    wait = read_retry_after(reply.headers)
    if wait is None and reply.headers.get("x-ratelimit-remaining") == "0":
        wait = _read_reset(reply)
    is_limited = reply.status == 429 or (reply.status == 403 and wait is not None)
    if wait is not None and wait > MOST_PATIENCE:
        return Failure(f"{status} and asks to wait {wait:.0f} s, which is too long", shorten(reply))
    is_temporary = is_limited or reply.status in WORTH_ANOTHER_TRY or reply.status >= 500
    hint = "too many requests" if is_limited else _HINTS.get(reply.status)
    return Failure(f"{status} ({hint})" if hint else status, shorten(reply), is_temporary=is_temporary, wait=wait)


def _read_reset(reply: Reply) -> float | None:
    """Seconds until the moment at which GitHub counts anew."""
    with suppress(ValueError):
        return max(0.0, float(reply.headers.get("x-ratelimit-reset", "")) - time.time())
    return None
