"""Lets only the person who started the server use it: programs and sites that reach its port get 403.

The address that the command prints has a token. The first request with it gets a cookie, which scripts cannot read and
browsers send from no other site. A site that gives its own name this machine's address (DNS rebinding) is refused by
the `Host` header, and a form or script of another site by the `Origin` header.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost")
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class AccessGuard:
    """Answers requests without the token with 403, before anything of their bodies is read."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        """Guard an application with a token of letters and digits."""
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with 403 and what to do."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        port = scope["server"][1]
        cookie = f"rageval-view-{port}"
        reply = self._refuse(scope, headers, port) or self._admit(scope, headers, cookie)
        await (self._app if reply is None else reply)(scope, receive, send_guarded)

    def _refuse(self, scope: Scope, headers: dict[str, str], port: int) -> ASGIApp | None:
        own = {f"{host}:{port}" for host in HOSTS}
        if headers.get("host", "") not in own:
            return _reply(403, f"This server answers only at http://127.0.0.1:{port}.")
        if scope["method"] not in ("GET", "HEAD") and urlsplit(headers.get("origin", "")).netloc != headers["host"]:
            return _reply(403, "This request comes from another site, so it was not carried out.")
        return None

    def _admit(self, scope: Scope, headers: dict[str, str], cookie: str) -> ASGIApp | None:
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(cookie)
        except CookieError:
            kept = None
        if kept is not None and self._knows(kept.value):
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if scope["method"] == "GET" and self._knows(query.get("token", "")):
            # A redirect from another site (a terminal in a browser) would not send the new cookie; a refresh does.
            held = f"{cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            return _reply(200, "Opening the view.", {"set-cookie": held, "refresh": f"0; url={_quote(scope['path'])}"})
        told = "Open the whole address that 'rageval-spec view' printed: it ends with a token, which this one lacks."
        return _reply(403, told)

    def _knows(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _quote(path: str) -> str:
    from urllib.parse import quote

    return "/" + quote(path.lstrip("/\\"))  # two slashes would name another host


def _reply(status: int, text: str, headers: dict[str, str] | None = None) -> ASGIApp:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(f"{text}\n", status, headers)
