"""An endpoint: one URL that is asked over HTTP, with the headers that say who asks.

What a user is told of a failed call holds the URL without credentials, the status and the beginning of the reply. Every
secret is masked before anybody sees the reply. Redirects are not followed: they would carry a key to another host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

from rageval_spec.endpoints.addresses import hide_credentials
from rageval_spec.endpoints.bodies import MOST_BYTES, hold_body
from rageval_spec.endpoints.connections import Connections, Request
from rageval_spec.endpoints.failures import Failure, Reply, WrongReplyError, judge_status
from rageval_spec.endpoints.proxies import authorize, find_proxy, list_credentials
from rageval_spec.errors import UsageError
from rageval_spec.plugin.redaction import Redactor
from rageval_spec.plugin.secret import Secret
from rageval_spec.wording import count_noun, make_visible

R = TypeVar("R")

SHOWN = 200
"""Characters of a reply that an error message holds."""
_LOOKED_AT = 64 * SHOWN
_KEY = re.compile(r"key|token|secret|signature|^sig$|password|^pass$|^code$|auth", re.IGNORECASE)


class Endpoint:
    """A URL that JSON is exchanged with, from any number of threads, until it is closed."""

    def __init__(
        self,
        url: str,
        where: str,
        *,
        headers: Mapping[str, Secret],
        timeout: float = 60.0,
        url_key: str = "base_url",
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Open nothing yet. `where` begins every error message, `timeout` are the seconds of one try, all in all.

        `url_key` is the key of the spec to correct where the URL is wrong. A reply of more than `most_bytes` is
        refused.

        Raises:
            UsageError: a header cannot be sent, or the environment names a proxy that cannot be used.
        """
        self._where = where
        self._url = urlsplit(url)
        self._url_key = url_key
        self._most_bytes = most_bytes
        proxy = find_proxy(self._url)
        sent = {"content-type": "application/json", "accept": "application/json", "user-agent": "rageval-spec"}
        for name, value in headers.items():
            sent[name.lower()] = _check_header(where, name, value.reveal())
        self._connections = Connections(self._url, proxy, sent, timeout)
        secrets = [value.reveal() for value in headers.values() if str(value) != value.reveal()]
        self._redactor = Redactor([*secrets, *_list_query_secrets(self._url), *_list_proxy_secrets(proxy)])

    @property
    def where(self) -> str:
        """What begins every error message: `models.judge`."""
        return self._where

    @contextmanager
    def exchange(self, body: bytes | None, *, method: str = "POST", query: str = "") -> Iterator[Reply]:
        """Send a body of JSON once, and give what comes back, whatever its status; no secret that was sent is in it.

        `query` is put after the URL's own. Until the end of the `with` block no other large reply is read.

        Raises:
            Failure: there is no whole reply, or it is too large.
        """
        with hold_body(self._most_bytes, lambda: self._connections.is_closed) as held:
            reply = self._connections.exchange(Request(method, body, query), held)
            yield reply._replace(content=self._redactor.redact_bytes(reply.content))

    def read(self, reply: Reply, read: Callable[[Any], R]) -> R:
        """What `read` makes of the JSON of a reply with status 200; it raises `WrongReplyError` where that is wrong.

        Raises:
            Failure: the status is another, it is not JSON, or it is wrong.
        """
        if reply.status != 200:
            raise self.judge(reply)
        try:
            return read(json.loads(reply.content))
        except WrongReplyError as error:
            raise Failure(f"answered 200, but {error}", shorten(reply)) from error
        except (ValueError, RecursionError) as error:
            raise Failure("answered 200 with something that is not JSON", shorten(reply)) from error

    def judge(self, reply: Reply) -> Failure:
        """What a status other than 200 means."""
        return judge_status(shorten(reply), self._url_key)

    def redact(self, text: str) -> str:
        """The text without the secrets that are sent."""
        return self._redactor.redact(text)

    def explain(self, failure: Failure, tries: int) -> str:
        """What a user is told of a call that failed for good: no secret is in it."""
        message = f"{self._where}: {hide_credentials(self._url)} {failure.message}"
        if tries > 1:
            message += f", after {count_noun(tries, 'try', 'tries')}"
        if failure.reply is not None and (text := self._beginning(failure.reply.content)):
            message += f": {text}"
        return self._redactor.redact(message)

    def close(self) -> None:
        """Close connections, and end the calls that nobody waits for any longer, as after Ctrl-C."""
        self._connections.close()

    def _beginning(self, content: bytes) -> str:
        text = self._redactor.redact(content[:_LOOKED_AT].decode("utf-8", "replace"))
        if len(content) > _LOOKED_AT:
            # The end may be the beginning of a secret that was cut.
            text = text[: max(0, len(text) - self._redactor.longest)]
        text = make_visible(" ".join(text.split()))
        return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def shorten(reply: Reply) -> Reply:
    """A reply as a failure keeps it: nobody reads more than the beginning, and a failure may be kept for long."""
    return reply if len(reply.content) <= 8 * _LOOKED_AT else reply._replace(content=reply.content[: 8 * _LOOKED_AT])


def _list_query_secrets(url: SplitResult) -> list[str]:
    """The values in a URL's query whose names say that they are keys."""
    return [value for name, value in parse_qsl(url.query) if _KEY.search(name)]


def _list_proxy_secrets(proxy: SplitResult | None) -> list[str]:
    credentials = list_credentials(proxy)
    return [*credentials[1:], *(authorize(proxy).values() if proxy is not None else ())]


def _check_header(where: str, name: str, value: str) -> str:
    value = value.strip()
    if not name.isascii() or any(character in name for character in " :\r\n\t") or not name:
        raise UsageError(f"{where}: {name!r} cannot be the name of a header")
    if not value.isprintable() or not value.encode("latin-1", "ignore").decode("latin-1") == value:
        raise UsageError(f"{where}: the value of the header {name!r} has characters that no header may have")
    return value
