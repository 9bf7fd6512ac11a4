"""The failures of one try of a call, and what they mean: whether a retry can help, and after how long."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from rageval_spec.endpoints.addresses import hide_credentials
from rageval_spec.endpoints.tries import TryError
from rageval_spec.wording import make_visible

MOST_PATIENCE = 300.0
"""The most seconds that an endpoint may ask to wait; if it asks for more, the call has failed."""
WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429})
"""Statuses, besides all 5xx, after which a retry can help."""
REFUSED = 429
"""The status for too many requests."""
_SHOWN = 200
_HINTS = {
    401: "is the key right?",
    403: "does this key have permission?",
    404: "are base_url and model right?",
    405: "is base_url right?",
    407: "the proxy requires credentials",
}
_HINTS_OF_SYSTEMS = {**_HINTS, 404: "is url right?", 405: "is method right?"}


class WrongReplyError(ValueError):
    """A reply with wrong content; the message says what is wrong with it."""


class Reply(NamedTuple):
    """A complete reply, decompressed."""

    status: int
    reason: str
    headers: Message
    content: bytes


class Failure(TryError):  # noqa: N818 - not an error yet: a retry can follow
    """A try of an HTTP call that failed.

    Attributes:
        message: what happened, as the end of a sentence that begins with the URL.
        reply: the reply; None if none came.
    """

    def __init__(
        self,
        message: str,
        reply: Reply | None = None,
        *,
        is_temporary: bool = False,
        wait: float | None = None,
        most_retries: int | None = None,
    ) -> None:
        """Keep what is known about the failure."""
        is_refusal = reply is not None and reply.status == REFUSED
        super().__init__(
            message, is_temporary=is_temporary, wait=wait, is_refusal=is_refusal, most_retries=most_retries
        )
        self.message = message
        self.reply = reply


class LateError(Failure):
    """A reply that did not come in time."""


class TooLargeError(Failure):
    """A reply that is larger than the limit for replies."""


def judge_status(reply: Reply, url_key: str) -> Failure:
    """The failure that a status other than 200 stands for; `url_key` is the key of the spec that has the URL."""
    status = f"answered {reply.status} {reply.reason}".rstrip()
    if 300 <= reply.status < 400:
        place = hide_credentials(urlsplit(reply.headers.get("Location", "")))
        return Failure(f"{status}, to {place}: write that as {url_key}" if place else status, reply)
    asked = read_retry_after(reply.headers)
    if asked is not None and asked > MOST_PATIENCE:
        return Failure(f"{status} and asks to wait {asked:.0f} s, which is too long", reply)
    is_temporary = reply.status in WORTH_ANOTHER_TRY or reply.status >= 500
    hint = (_HINTS if url_key == "base_url" else _HINTS_OF_SYSTEMS).get(reply.status)
    return Failure(f"{status} ({hint})" if hint else status, reply, is_temporary=is_temporary, wait=asked)


def describe_error(error: Exception) -> str:
    """What went wrong with a connection, as the end of a sentence that begins with the URL."""
    if isinstance(error, ConnectionRefusedError):
        return "refuses connections (is it running?)"
    if isinstance(error, socket.gaierror):
        return f"cannot be found: {error.strerror or error}"
    text = getattr(error, "strerror", None) or str(error)
    return f"broke the connection: {type(error).__name__}" + (f": {make_visible(text)[:_SHOWN]}" if text else "")


def read_retry_after(headers: Message) -> float | None:
    """The seconds to wait, from either form of `Retry-After` or from OpenAI's `retry-after-ms`."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            if (seconds := float(headers.get(name, "")) * unit) >= 0:
                return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
