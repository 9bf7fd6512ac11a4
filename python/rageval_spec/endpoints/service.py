"""The HTTP API of a tool: requests to several paths below one URL, paced and retried as calls to models are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from rageval_spec.dataclass import dataclass, field
from rageval_spec.endpoints import tries
from rageval_spec.endpoints.endpoint import Endpoint, shorten
from rageval_spec.endpoints.pacing import Clock, StoppedError
from rageval_spec.errors import RagevalError
from rageval_spec.plugin.secrets import Secret

T = TypeVar("T")
Parameters = Sequence[tuple[str, str]]

LIMITS = tries.Limits(concurrency=4, retries=4)
"""How calls are made by default: four at a time, and as fast as the tool accepts them."""
TIMEOUT = 60.0
_CONFLICT = 409
_LATE_RETRIES = 1
"""Retries of a call whose reply did not come in time: a tool that hangs would cost minutes."""


@dataclass(eq=False)
class ServiceError(RagevalError):
    """A call that failed for good; the message has the URL, the reason and the beginning of the reply.

    `status` and `content`, the beginning of the reply's body, are empty if none came. `is_too_large` says that the
    reply is larger than the limit, so that asking for less can help.
    """

    message: str
    status: int | None = None
    content: bytes = b""
    is_too_large: bool = field(default=False, kw_only=True)

    def __str__(self) -> str:
        return self.message


class Service:
    """Calls a tool's API until `close`; safe to use from several threads.

    Calls are retried after 408, 425, 429, 5xx and broken connections. `Retry-After` is honoured, and a tool that
    refuses with 429 is asked more slowly. Redirects are not followed. NaN and infinities, which JSON does not have but
    some servers write, are read as null.
    """

    def __init__(
        self,
        url: str,
        where: str,
        *,
        headers: Mapping[str, Secret] | None = None,
        limits: tries.Limits = LIMITS,
        timeout: float = TIMEOUT,
        url_key: str = "url",
        clock: Clock | None = None,
        secrets: Sequence[Secret] = (),
        hides_path: bool = False,
    ) -> None:
        """Open nothing yet. `where` begins every message; `url_key` is the setting to correct if the URL is wrong.

        `secrets` are masked in messages and replies as the secrets of headers are: the parts of an encoded header.
        `hides_path` says that messages show `***` for the path of `url`.
        """
        hidden = [secret.reveal() for secret in secrets]
        self._endpoint = Endpoint(
            url, where, headers=headers or {}, timeout=timeout, url_key=url_key, further_secrets=hidden,
            hides_path=hides_path,
        )  # fmt: skip
        self._tries = tries.Tries(limits, clock or Clock(), str)
        self._url_key = url_key

    def get(self, path: str, parameters: Parameters = ()) -> Any:
        """The JSON at a path. Raises `ServiceError`, as the other methods do."""
        return self.call("GET", path, parameters=parameters)

    def post(self, path: str, content: Any, parameters: Parameters = (), *, repeatable: bool = True) -> Any:
        """Post JSON and return the reply's; null if the reply is empty.

        `repeatable` says that posting the same twice does no harm. If not, only a refusal with 429 is retried.
        """
        body = json.dumps(content, allow_nan=False).encode("ascii")
        return self.call("POST", path, body, parameters=parameters, repeatable=repeatable)

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        parameters: Parameters = (),
        content_type: str = "",
        repeatable: bool = True,
    ) -> Any:
        """Send a request and return the reply's JSON; null if the reply is empty."""

        def attempt() -> Any:
            with self._endpoint.exchange(
                body, method=method, query=urlencode(parameters), path=path, content_type=content_type
            ) as reply:
                return self._read(reply)

        return self._make(attempt, path, repeatable=repeatable)

    def send(self, path: str, body: bytes, content_type: str) -> bytes:
        """POST bytes and return the body of the reply: anything but a web page. The call can be repeated."""

        def attempt() -> bytes:
            with self._endpoint.exchange(body, path=path, content_type=content_type) as reply:
                self._refuse_others(reply)
                if "html" in reply.headers.get_content_type() and reply.content.strip():
                    message = f"answered {reply.status} with a web page; is {self._url_key} right?"
                    raise tries.TryFailure(message, shorten(reply))
                return reply.content

        return self._make(attempt, path)

    def hand_over(self, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        """POST JSON to a receiver of which only the status counts; `headers` have names in lower case."""

        def attempt() -> None:
            with self._endpoint.exchange(body, path=path, headers=headers) as reply:
                self._refuse_others(reply)

        self._make(attempt, path)

    def close(self) -> None:
        self._tries.stop()
        self._endpoint.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _make(self, attempt: Callable[[], T], path: str, *, repeatable: bool = True) -> T:
        def attempt_once() -> T:
            try:
                return attempt()
            except tries.TryFailure as failure:
                if isinstance(failure, tries.LateError):
                    failure.most_retries = _LATE_RETRIES
                if not repeatable:  # it may have come after the tool had done what it was asked
                    failure.is_temporary &= failure.is_refusal
                raise

        try:
            return self._tries.make(attempt_once)
        except tries.TryFailure as failure:
            status, content = (None, b"") if failure.reply is None else (failure.reply.status, failure.reply.content)
            message = self._endpoint.explain(failure, failure.tries, path)
            is_too_large = isinstance(failure, tries.TooLargeError)
            raise ServiceError(message, status, content, is_too_large=is_too_large) from failure.__cause__
        except tries.BrokenDownError as error:
            raise ServiceError(f"{self._endpoint.where}: {error}") from None
        except StoppedError:
            raise ServiceError(f"{self._endpoint.where}: stopped before it replied") from None

    def _refuse_others(self, reply: tries.Reply) -> None:
        if not 200 <= reply.status < 300:
            failure = self._endpoint.judge(reply)
            failure.is_temporary &= reply.status != _CONFLICT  # here a conflict says that something exists already
            failure.is_about_request = 400 <= reply.status < 500 and not failure.is_refusal
            raise failure

    def _read(self, reply: tries.Reply) -> Any:
        self._refuse_others(reply)
        if not reply.content.strip():
            return None
        try:
            return json.loads(reply.content, parse_constant=lambda _: None)
        except (ValueError, RecursionError) as error:
            is_page = "html" in reply.headers.get_content_type()
            found = "a web page" if is_page else "something that is not JSON"
            hint = f"; is {self._url_key} right?" if is_page else ""
            shown = reply._replace(content=b"") if is_page else shorten(reply)
            raise tries.TryFailure(f"answered {reply.status} with {found}{hint}", shown) from error


def quote_part(name: str) -> str:
    """A name as one part of a path: with its slashes and all other special characters percent-encoded."""
    return quote(name, safe="")


def list_pages(fetch: Callable[[str | None], tuple[T, str | None]], where: str) -> Iterator[T]:
    """Each page that `fetch` gives; it takes a cursor, None for the first page, and returns the next with the page."""
    cursor: str | None = None
    seen: set[str] = set()
    while True:
        page, cursor = fetch(cursor)
        yield page
        if not cursor:
            return
        if cursor in seen:
            raise ServiceError(f"{where}: gave the page {cursor[:60]!r} twice, so its pages would never end")
        seen.add(cursor)


def expect(content: Any, key: str, kind: type[T], what: str) -> T:
    """The value of a key of a JSON object; raises `WrongReplyError` if it is missing or of another type."""
    value = content.get(key) if isinstance(content, dict) else None
    if not isinstance(value, kind):
        raise tries.WrongReplyError(f"{what} has no {key!r} of the type {kind.__name__}")
    return value
