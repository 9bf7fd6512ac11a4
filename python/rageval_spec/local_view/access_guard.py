"""Lets only the person who started the server use it: programs and sites that reach its port get 403.

The address that the command prints has a token. The first request with it gets a cookie, which scripts cannot read and
browsers send from no other site. A site that gives its own name this machine's address (DNS rebinding) is refused by
the `Host` header, and a form or script of another site by the `Origin` header.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from starlette.requests import Request
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
        from starlette.requests import Request

        request = Request(scope)
        reply = self._refuse(request) or self._admit(request)
        await (self._app if reply is None else reply)(scope, receive, send_guarded)

    def _refuse(self, request: Request) -> ASGIApp | None:
        host, port = request.headers.get("host"), request.scope["server"][1]
        if host not in {f"{name}:{port}" for name in HOSTS}:
            return _reply(403, f"This server answers only at http://127.0.0.1:{port}.")
        if request.method not in ("GET", "HEAD") and urlsplit(request.headers.get("origin", "")).netloc != host:
            return _reply(403, "This request comes from another site, so it was not carried out.")
        return None

    def _admit(self, request: Request) -> ASGIApp | None:
        cookie = f"rageval-view-{request.scope['server'][1]}"
        if self._knows(request.cookies.get(cookie, "")):
            return None
        if request.method == "GET" and self._knows(request.query_params.get("token", "")):
            # A redirect from another site (a terminal in a browser) would not send the new cookie; a refresh does.
            held = f"{cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            place = "/" + quote(request.scope["path"].lstrip("/\\"))  # two slashes would name another host
            return _reply(200, "Opening the view.", {"set-cookie": held, "refresh": f"0; url={place}"})
        told = "Open the whole address that 'rageval-spec view' printed: it ends with a token, which this one lacks."
        return _reply(403, told)

    def _knows(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _reply(status: int, text: str, headers: dict[str, str] | None = None) -> ASGIApp:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(f"{text}\n", status, headers)
