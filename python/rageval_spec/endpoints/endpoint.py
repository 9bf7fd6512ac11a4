"""An endpoint: one URL that is called over HTTP, with headers that authenticate the caller.

The message about a failed call has the URL without credentials, the status and the beginning of the reply. Secrets are
masked in every reply. Redirects are not followed, because they would send a key to another host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from rageval_spec.diagnostics import make_visible
from rageval_spec.endpoints.addresses import authorize, find_proxy, hide_credentials, join_path, list_credentials
from rageval_spec.endpoints.connections import MOST_BYTES, Connections, HttpRequest, hold_body
from rageval_spec.endpoints.tries import Reply, TryFailure, WrongReplyError, classify_status
from rageval_spec.errors import UsageError
from rageval_spec.plugin.secrets import Redactor, Secret
from rageval_spec.wording import count_noun

R = TypeVar("R")

SHOWN = 200
"""Characters of a reply that an error message shows."""
_LOOKED_AT = 64 * SHOWN
_KEY = re.compile(r"key|token|secret|signature|^sig$|password|^pass$|^code$|auth", re.IGNORECASE)


class Endpoint:
    """Exchanges JSON with a URL until it is closed; safe to use from several threads."""

    def __init__(
        self,
        url: str,
        where: str,
        *,
        headers: Mapping[str, Secret],
        timeout: float = 60.0,
        url_key: str = "base_url",
        most_bytes: int = MOST_BYTES,
        further_secrets: Sequence[str] = (),
    ) -> None:
        """Open nothing yet. `where` begins every error message; `timeout` is the most seconds of one whole try.

        `url_key` is the key of the spec to correct if the URL is wrong. Replies of more than `most_bytes` are
        refused. `further_secrets` are masked in addition to those in headers, the URL and the URL of a proxy.
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
        secrets += [*further_secrets, *(value for name, value in parse_qsl(self._url.query) if _KEY.search(name))]
        if proxy is not None:
            secrets += [*list_credentials(proxy)[1:], *authorize(proxy).values()]
        self._redactor = Redactor(secrets)

    @property
    def where(self) -> str:
        return self._where

    @contextmanager
    def exchange(
        self, body: bytes | None, *, method: str = "POST", query: str = "", path: str = "", content_type: str = ""
    ) -> Iterator[Reply]:
        """Send a body once and give the reply, whatever its status, with the secrets that were sent masked.

        `path` and `query` are appended to the URL's own; the body is JSON unless `content_type` says otherwise. Until
        the end of the `with` block no other large reply is read.
        """
        with hold_body(self._most_bytes, lambda: self._connections.is_closed) as held:
            headers = {"content-type": content_type} if content_type else {}
            reply = self._connections.exchange(HttpRequest(method, body, query, path, headers), held)
            yield reply._replace(content=self._redactor.redact_bytes(reply.content))

    def read(self, reply: Reply, read: Callable[[Any], R]) -> R:
        """What `read` makes of the JSON of a reply with status 200; it raises `WrongReplyError` if that is wrong."""
        if reply.status != 200:
            raise self.judge(reply)
        try:
            return read(json.loads(reply.content))
        except WrongReplyError as error:
            raise TryFailure(f"answered 200, but {error}", shorten(reply)) from error
        except (ValueError, RecursionError) as error:
            raise TryFailure("answered 200 with something that is not JSON", shorten(reply)) from error

    def judge(self, reply: Reply) -> TryFailure:
        return classify_status(shorten(reply), self._url_key)

    def redact(self, text: str) -> str:
        return self._redactor.redact(text)

    def explain(self, failure: TryFailure, tries: int, path: str = "") -> str:
        """The message about a call to `path` that failed for good; it contains no secret."""
        url = self._url._replace(path=join_path(self._url.path, path))
        message = f"{self._where}: {hide_credentials(url)} {failure.message}"
        if tries > 1:
            message += f", after {count_noun(tries, 'try', 'tries')}"
        if failure.reply is not None and (text := self._beginning(failure.reply.content)):
            message += f": {text}"
        return self._redactor.redact(message)

    def close(self) -> None:
        self._connections.close()

    def _beginning(self, content: bytes) -> str:
        text = self._redactor.redact(content[:_LOOKED_AT].decode("utf-8", "replace"))
        if len(content) > _LOOKED_AT:
            # The end can be the beginning of a secret that was cut off.
            text = text[: max(0, len(text) - self._redactor.longest)]
        text = make_visible(" ".join(text.split()))
        return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def shorten(reply: Reply) -> Reply:
    """The reply, shortened for a failure: messages show only its beginning, and failures can live long."""
    return reply if len(reply.content) <= 8 * _LOOKED_AT else reply._replace(content=reply.content[: 8 * _LOOKED_AT])


def _check_header(where: str, name: str, value: str) -> str:
    value = value.strip()
    if not name.isascii() or any(character in name for character in " :\r\n\t") or not name:
        raise UsageError(f"{where}: {name!r} is not a valid header name")
    if not value.isprintable() or not value.encode("latin-1", "ignore").decode("latin-1") == value:
        raise UsageError(f"{where}: the value of the header {name!r} has characters that are not allowed in headers")
    return value
