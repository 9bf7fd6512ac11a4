"""An HTTP server in a thread of its own: what serves pages, checks answers or receives spans.

Also what its users write: the address, and the variable with the token.
"""

from __future__ import annotations

import hmac
import os
import re
import socket
from threading import Thread
from typing import TYPE_CHECKING

from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.libraries import compile_later

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from starlette.applications import Starlette
    from starlette.requests import Request

MOST_CONNECTIONS = 256
"""The most connections at a time; a request on a further one is answered with 503."""
GRACE = 3
"""Seconds that a request has for its answer once the server stops, or once its time is over."""
PATIENCE = 10.0
"""Seconds for a whole request, from its first byte to its last one."""
_IDLE = 5
"""Seconds after which a connection without a request is closed."""
_LINGER = 1.0
"""Seconds in which the rest of a request that is too large is read, and thrown away."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HOST = r"\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^\s:/\[\]]*)"
_ADDRESS = compile_later(rf"(?:{_HOST})(?::(?P<port>\d{{1,5}}))?", re.ASCII)


class Refusal(Exception):  # noqa: N818 - an answer, not a fault of the program
    """A request that is not taken: the status, and why or what to send instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def split_address(text: str, usual_port: int) -> tuple[str, int]:
    """The host and the port of `127.0.0.1:4318`, `[::1]:4318`, `:4318`, `4318` or `localhost`.

    Without a port it is the usual one of who listens. Raises `ValueError` if it is no address.
    """
    written = text.strip()
    found = _ADDRESS.fullmatch(f":{written}" if written.isdecimal() else written)
    port = usual_port if found is None or found["port"] is None else int(found["port"])
    if found is None or not written or port >= 1 << 16:
        raise ValueError(f"{text!r} is not an address; write a host and a port: 127.0.0.1:{usual_port}")
    return found["six"] or found["name"] or "127.0.0.1", port


def is_local(host: str) -> bool:
    """Whether only programs of this machine reach what listens there."""
    return host in _LOOPBACK


def read_token(variable: str | None) -> str | None:
    """The token in an environment variable, which requests must send; None if no variable is named.

    Raises:
        UsageError: the variable is not set, or empty.
    """
    token = None if variable is None else os.environ.get(variable, "").strip()
    if variable is not None and not token:
        found = "is empty" if variable in os.environ else "is not set"
        raise UsageError(f"--token-env {variable}: the variable {found}; set it to the token that clients send")
    return token


def knows_token(authorization: bytes, token: str) -> bool:
    """Whether the header `authorization` of a request has the token, as `Bearer TOKEN`."""
    scheme, _, given = authorization.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), token.encode())


async def read_body(
    request: Request, largest: int, patience: float, advice: str, hold: Callable[[int], None] = lambda _: None
) -> bytes:
    """The body of a request of at most `largest` bytes that comes whole within `patience` seconds.

    `advice` is what to do about a larger one. `hold` gets the size of each part that is kept, and can refuse it.

    Raises:
        Refusal: the request is too large, too slow, or breaks off.
    """
    import asyncio

    from starlette.requests import ClientDisconnect

    is_too_large = int(request.headers.get("content-length", "0")) > largest
    parts, size, stream = list[bytes](), 0, request.stream()
    try:
        if not is_too_large:
            async with asyncio.timeout(patience):
                async for part in stream:
                    size += len(part)
                    if size > largest:
                        is_too_large = True
                        break
                    hold(len(part))
                    parts.append(part)
        async with asyncio.timeout(_LINGER):
            async for _ in stream:  # many clients read no reply before they have sent everything
                pass
    except ClientDisconnect:
        raise Refusal(400, "the request broke off") from None
    except TimeoutError:
        if not is_too_large:
            raise Refusal(408, f"the request did not come within {patience:g} s") from None
    if is_too_large:
        raise Refusal(413, f"a request has at most {largest:,} bytes; {advice}")
    return b"".join(parts)


class Server:
    """Listens in a thread of its own until it is closed. `url` is where."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        most_connections: int = MOST_CONNECTIONS,
        patience: float = PATIENCE + GRACE,
    ) -> None:
        """Listen at once; port 0 is any free one.

        `patience` are the seconds after which a connection is closed that has not sent a whole request.

        Raises:
            RagevalError: the address cannot be used.
        """
        import uvicorn

        config = uvicorn.Config(
            app, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, limit_concurrency=most_connections, timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=GRACE, http=_make_protocol(patience), loop="asyncio", interface="asgi3",
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=128)
        except (OSError, OverflowError) as error:
            raise RagevalError(f"{host}:{port}: cannot listen: {getattr(error, 'strerror', None) or error}") from error
        # Otherwise the body of a reply waits for the client's kernel to acknowledge its head, which takes 40 ms.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name, number = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{name}]' if ':' in name else name}:{number}"
        self._thread = Thread(target=self._server.run, args=([self._socket],), name="http server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer what is under way, then stop listening."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _make_protocol(patience: float) -> type[asyncio.Protocol]:
    """HTTP/1.1 as uvicorn speaks it, with a deadline for each whole request.

    uvicorn itself waits for the head of a request for as long as its sender likes.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class DeadlineProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expire = self.loop.call_later(patience, self._end)

        def on_response_complete(self) -> None:
            self._expire.cancel()
            self._expire = self.loop.call_later(patience, self._end)
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._expire.cancel()
            super().connection_lost(exc)

        def _end(self) -> None:
            """Close the connection, unless its request came whole and is being answered."""
            if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
                self.transport.abort()

    return DeadlineProtocol
