"""An HTTP server in a thread of its own: what serves pages, checks answers or receives spans."""

from __future__ import annotations

import socket
from threading import Thread
from typing import TYPE_CHECKING, Any

from rageval_spec.errors import RagevalError

if TYPE_CHECKING:
    from starlette.applications import Starlette

MOST_CONNECTIONS = 256
"""The most connections at a time; a request on a further one is answered with 503."""
GRACE = 3
"""Seconds that a request has for its answer once the server stops."""
_IDLE = 5
"""Seconds after which a connection without a request is closed."""


class Server:
    """Listens in a thread of its own until it is closed. `url` is where."""

    def __init__(
        self, app: Starlette, host: str, port: int, most_connections: int = MOST_CONNECTIONS, **settings: Any
    ) -> None:
        """Listen at once; port 0 is any free one. `settings` are further ones of uvicorn.

        Raises:
            RagevalError: the address cannot be used.
        """
        import uvicorn

        config = uvicorn.Config(
            app, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, limit_concurrency=most_connections, timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=GRACE, **settings,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=128)
        except (OSError, OverflowError) as error:
            raise RagevalError(f"{host}:{port}: cannot listen: {getattr(error, 'strerror', None) or error}") from error
        name, number = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{name}]' if ':' in name else name}:{number}"
        self._thread = Thread(target=self._server.run, args=([self._socket],), name="http server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer what is under way, then stop listening."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
